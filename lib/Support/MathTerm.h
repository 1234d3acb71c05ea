//===- MathTerm.h - scalar operations as readable mathematics ---*- C++ -*-===//
#ifndef MOA_SUPPORT_MATHTERM_H
#define MOA_SUPPORT_MATHTERM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// A text in UTF-8 and its binding strength. For example, a sum inside a product needs parentheses.
struct MathTerm {
  enum Strength { Any, Or, And, Compare, Sum, Product, Unary, Atom };
  std::string text;
  Strength strength = Atom;

  /// Returns the text, in parentheses if it binds less than `least`.
  std::string at(Strength least) const { return strength < least ? "(" + text + ")" : text; }
};

/// Returns the sign of arith.cmpi or arith.cmpf with a predicate, with blanks.
llvm::StringRef getComparison(bool isFloat, int64_t predicate);

/// Prints an operation of the arith or math dialect on `operands`. `isTruth` is true if its result
/// is a boolean, and `type` is its printed type. Comparisons use `predicate`.
MathTerm makeMathTerm(llvm::StringRef operation, llvm::ArrayRef<MathTerm> operands, bool isTruth, llvm::StringRef type,
                      int64_t predicate = 0);

/// Prints a constant, for example 0.5 or −∞.
std::string formatNumber(double value);

/// Returns Σ, Π, max, min, ∀, ∃ for add, mul, max, min, and, or.
llvm::StringRef getReductionSymbol(llvm::StringRef monoid);

} // namespace moa

#endif // MOA_SUPPORT_MATHTERM_H
