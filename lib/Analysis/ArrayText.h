//===- ArrayText.h - arrays of the moa level as text ------------*- C++ -*-===//
#ifndef MOA_ANALYSIS_ARRAYTEXT_H
#define MOA_ANALYSIS_ARRAYTEXT_H

#include "dialects/MoA/IR/MoA.h"
#include "lib/Support/MathTerm.h"
#include "llvm/ADT/DenseMap.h"
#include <string>

namespace moa {

/// Writes whole arrays as expressions in the operators of the language, with the
/// user's names: `exp(S − max/ S)`. Conversions that change no value are left out. A
/// name that is defined several times gets a prime for each later definition: of
/// `S = …; S = mask(p, S)` the first is S′.
class ArrayText {
public:
  /// `body` holds the operators, its arguments are the inputs.
  ArrayText(mlir::Block &body, mlir::ArrayAttr inputs);

  /// The array by its name if it has one, else by what it computes.
  MathTerm of(mlir::Value array) const;
  /// What the array computes, its operands by name where they have one.
  MathTerm definition(mlir::Value array) const;
  /// The user's name, or nothing.
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
