//===- ArrayText.h - arrays of the moa level as text ------------*- C++ -*-===//
#ifndef MOA_ANALYSIS_ARRAYTEXT_H
#define MOA_ANALYSIS_ARRAYTEXT_H

#include "dialects/MoA/IR/MoA.h"
#include "lib/Support/MathTerm.h"
#include "llvm/ADT/DenseMap.h"
#include <string>

namespace moa {

/// Prints whole arrays as expressions in the operators of the language, with the user's names, for
/// example `exp(S − max/ S)`. Conversions that change no value are left out. If a name is defined
/// several times, every definition but the last gets one prime for each later one. For example, in
/// `S = …; S = mask(p, S)` the first definition is S′.
class ArrayText {
public:
  /// `body` holds the operators; its arguments are the inputs.
  ArrayText(mlir::Block &body, mlir::ArrayAttr inputs);

  /// Returns the name of the array if it has one, and its definition otherwise.
  MathTerm of(mlir::Value array) const;
  /// Returns the expression that defines the array. Operands with a name are printed by name.
  MathTerm definition(mlir::Value array) const;
  /// Returns the user's name, or an empty string.
  llvm::StringRef name(mlir::Value array) const;

private:
  MathTerm map(MapOp op) const;
  MathTerm psi(PsiOp op) const;
  MathTerm slice(SliceOp op) const;
  MathTerm call(llvm::StringRef function, llvm::ArrayRef<std::string> arguments) const;

  llvm::DenseMap<mlir::Value, std::string> names;
};

} // namespace moa

#endif // MOA_ANALYSIS_ARRAYTEXT_H
