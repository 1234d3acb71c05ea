//===- MathText.h - normal forms as readable mathematics --------*- C++ -*-===//
#ifndef MOA_ANALYSIS_MATHTEXT_H
#define MOA_ANALYSIS_MATHTEXT_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <vector>

namespace moa {

/// The definitions of a dnf.kernel, or the loops and folds of an onf.kernel
/// (lifted or not), as mathematics in UTF-8: one definition or statement a
/// line, the user's names for arrays and definitions. Empty for other ops.
std::string printMathematics(mlir::Operation *kernel);

/// One definition of a dnf.kernel: S(b, n) or O[b, n], and what it is.
struct MathDefinition {
  mlir::Operation *op; ///< the dnf.let or dnf.output
  std::string head, text;
};
/// The definitions of a dnf.kernel in order, also of one that ψ-reduction is still at
/// work on: arrays that are not reduced yet are written in the language's operators.
/// `letName` gives the name of a dnf.let, by default its symbol; `wanted` says which
/// definitions to write, by default all. A subterm of more than 64 KiB is written as `…`.
std::vector<MathDefinition>
getMathDefinitions(mlir::Operation *kernel,
                   llvm::function_ref<std::string(mlir::Operation *)> letName = nullptr,
                   llvm::function_ref<bool(mlir::Operation *)> wanted = nullptr);

/// Which indices of the folds of a lifted onf.kernel a tile of rows needs, one fold a
/// line; empty where no fold has intervals.
std::string printIntervals(mlir::Operation *kernel);

} // namespace moa

#endif // MOA_ANALYSIS_MATHTEXT_H
