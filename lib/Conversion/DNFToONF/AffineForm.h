//===- AffineForm.h - index expressions as linear combinations --*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_AFFINEFORM_H
#define MOA_CONVERSION_DNFTOONF_AFFINEFORM_H

#include "lib/Conversion/DNFToONF/Expr.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/MapVector.h"

namespace moa {

/// Σ coefficient · term + constant, over index expressions.
struct AffineForm {
  llvm::MapVector<Expr, SymExpr> terms;
  SymExpr constant;

  /// Adds factor · e. Sums, differences and products with symbols are taken apart; other
  /// expressions are opaque terms.
  void add(Expr e, const SymExpr &factor);
  /// Returns the constant if no term is left.
  std::optional<SymExpr> getSymbolic() const;
  /// Returns the form as an expression.
  Expr build(ExprContext &exprs) const;
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_AFFINEFORM_H
