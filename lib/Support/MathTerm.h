//===- MathTerm.h - scalar operations as readable mathematics ---*- C++ -*-===//
#ifndef MOA_SUPPORT_MATHTERM_H
#define MOA_SUPPORT_MATHTERM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// A piece of text in UTF-8 and how strongly it holds together: a sum inside a
/// product needs parentheses.
struct MathTerm {
  enum Strength { Any, Or, And, Compare, Sum, Product, Unary, Atom };
  std::string text;
  Strength strength = Atom;

  /// The text for a place that asks for `least`.
  std::string at(Strength least) const { return strength < least ? "(" + text + ")" : text; }
};

/// The comparison of arith.cmpi or arith.cmpf with that predicate, with blanks.
llvm::StringRef getComparison(bool isFloat, int64_t predicate);

/// An operation of the arith or math dialect on `operands`; `isTruth` says that
/// its result is a truth value, and `type` is its printed type. Comparisons take
/// their `predicate`.
MathTerm makeMathTerm(llvm::StringRef operation, llvm::ArrayRef<MathTerm> operands, bool isTruth,
                      llvm::StringRef type, int64_t predicate = 0);

/// A constant: 0.5, −∞.
std::string formatNumber(double value);

/// Σ, Π, max, min, ∀, ∃ for add, mul, max, min, and, or.
llvm::StringRef getReductionSymbol(llvm::StringRef monoid);

} // namespace moa

#endif // MOA_SUPPORT_MATHTERM_H
