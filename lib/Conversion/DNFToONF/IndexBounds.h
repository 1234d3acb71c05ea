//===- IndexBounds.h - conditions that bound an index -----------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H
#define MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H

#include "lib/Conversion/DNFToONF/Expr.h"

namespace moa {

/// Returns the conjuncts of `condition`; none for null.
llvm::SmallVector<Expr> conjunctsOf(Expr condition);

/// Returns the last index that a comparison such as j ≤ x or x > j admits, where terms may be on
/// either side. The result does not depend on j. Returns null for other conditions.
Expr lastOf(ExprContext &exprs, Expr condition, Expr j);

/// Returns the first index that a comparison such as x ≤ j or j > x admits; null for others.
Expr firstOf(ExprContext &exprs, Expr condition, Expr j);

/// Returns the largest average growth of x per step of an index, if x never falls. Handles sums,
/// multiples and quotients by numbers, minima and maxima; returns nothing for others.
std::optional<double> growthWith(Expr x, int64_t index);

/// Returns the condition that some index 0 ≤ j < size satisfies all of `conditions`, computed
/// without a pass. Returns null if one of them does not bound j.
Expr anyWithin(ExprContext &exprs, Expr size, llvm::ArrayRef<Expr> conditions, Expr j);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H
