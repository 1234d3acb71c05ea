//===- MathText.h - normal forms as readable mathematics --------*- C++ -*-===//
#ifndef MOA_ANALYSIS_MATHTEXT_H
#define MOA_ANALYSIS_MATHTEXT_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <vector>

namespace moa {

/// Prints the definitions of a dnf.kernel, or the loops and folds of an onf.kernel (lifted or not),
/// as mathematics in UTF-8. Each definition or statement takes one line; arrays and definitions
/// have the user's names. Returns an empty string for other operations.
std::string printMathematics(mlir::Operation *kernel);

/// One definition of a dnf.kernel: its head, S(b, n) or O[b, n], and the expression that defines
/// it.
struct MathDefinition {
  mlir::Operation *op; ///< the dnf.let or dnf.output
  std::string head, text;
};
/// Returns the definitions of a dnf.kernel in order. ψ-reduction may be incomplete: arrays that are
/// not reduced yet are printed in the operators of the language. `letName` returns the name of a
/// dnf.let, by default its symbol; `wanted` selects definitions, by default all. A subterm of more
/// than 64 KiB is printed as `…`.
std::vector<MathDefinition> getMathDefinitions(mlir::Operation *kernel,
                                               llvm::function_ref<std::string(mlir::Operation *)> letName = nullptr,
                                               llvm::function_ref<bool(mlir::Operation *)> wanted = nullptr);

/// Prints the fold indices that a tile of rows needs, one fold of a lifted onf.kernel per line.
/// Returns an empty string if no fold has intervals.
std::string printIntervals(mlir::Operation *kernel);

} // namespace moa

#endif // MOA_ANALYSIS_MATHTEXT_H
