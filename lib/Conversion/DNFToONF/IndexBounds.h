//===- IndexBounds.h - conditions that bound an index -----------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H
#define MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H

#include "lib/Conversion/DNFToONF/Expr.h"

namespace moa {

/// The conditions that `condition` is the conjunction of; none for null.
llvm::SmallVector<Expr> conjunctsOf(Expr condition);

/// The last index that j ≤ x, j < x and the same the other way round or with terms on the other
/// side admit, which knows no j; null for others.
Expr lastOf(ExprContext &exprs, Expr condition, Expr j);

/// The first index that x ≤ j, x < j and the like admit; null for others.
Expr firstOf(ExprContext &exprs, Expr condition, Expr j);

/// How much x grows at most, on average over many, with each step of an index, if it never falls:
/// sums, multiples and quotients of it by numbers, and extremes of such. Nothing for others.
std::optional<double> growthWith(Expr x, int64_t index);

/// Whether an index 0 ≤ j < size is within all of `conditions`, without a pass over it; null where
/// one of them is no bound of j.
Expr anyWithin(ExprContext &exprs, Expr size, llvm::ArrayRef<Expr> conditions, Expr j);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_INDEXBOUNDS_H
