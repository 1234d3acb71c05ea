//===- Expressions.h - scalar operations as C++ -----------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_EXPRESSIONS_H
#define MOA_TARGET_CUDA_EXPRESSIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <set>
#include <string>

namespace moa::cuda {

/// A text and its C++ precedence (larger binds tighter).
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
  /// Returns the text as an operand of an operator with precedence `least`.
  std::string at(int least) const { return level < least ? "(" + text + ")" : text; }
};

std::string printConstant(mlir::Attribute value);

/// Prints one digit of `name`, which has `count` values, times a weight.
std::string printDigit(const std::string &name, int64_t count, int64_t stride, int64_t size, int64_t weight);

/// Returns whether a value may reach an operand of CUDA's math library, unchanged or negated.
bool entersLibrary(mlir::Value value);

/// Prints one arith or math op on printed operands, or returns nothing if it has no C++ equivalent.
/// Every float operation rounds as in the IR: sums use __fadd_rn and the like, which nvcc never
/// fuses with a product.
std::optional<Expr> printOperation(mlir::Operation *op, llvm::ArrayRef<Expr> operands, std::set<std::string> &helpers);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_EXPRESSIONS_H
