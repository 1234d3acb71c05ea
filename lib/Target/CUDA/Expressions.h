//===- Expressions.h - scalar operations as C++ -----------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_EXPRESSIONS_H
#define MOA_TARGET_CUDA_EXPRESSIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <set>
#include <string>

namespace moa::cuda {

/// Text and how tightly it binds, by C++'s precedence (larger binds tighter).
struct Expr {
  std::string text;
  int level = primary;
  enum Level {
    choice,
    disjunction,
    conjunction,
    bitOr,
    bitXor,
    bitAnd,
    equality,
    relation,
    shift,
    sum,
    product,
    unary,
    primary
  };
  /// The text as an operand of an operator of `least` or above.
  std::string at(int least) const { return level < least ? "(" + text + ")" : text; }
};

/// A constant of a scalar type.
std::string printConstant(mlir::Attribute value);

/// Whether a value may come to an operand of CUDA's library as it is, or with another
/// sign.
bool entersLibrary(mlir::Value value);

/// One operation of arith or math on operands already printed; nothing if it has
/// no C++ here. The rounding of every float operation is fixed: sums go
/// through __fadd_rn and its like, which nvcc never fuses with a product.
std::optional<Expr> printOperation(mlir::Operation *op, llvm::ArrayRef<Expr> operands,
                                   std::set<std::string> &helpers);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_EXPRESSIONS_H
