//===- Distance.h - weights that are powers of a distance -------*- C++ -*-===//
//
// A factor w(i, j) = E(n(i, j)), E the exponential, that to base 2 or a power of a base b, with n
// linear in the distance from an index j to the last one x(i) of its range, splits at every index r
// between them:
//
//   E(n(i, j)) = E(n(i, r)) · E(n(·, j) − n(·, r)),
//
// where the second factor knows no i. All three exponents, but for what depends on i alone, have
// one sign, so that neither factor leaves the range where the product does not.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_DISTANCE_H
#define MOA_CONVERSION_DNFTOONF_DISTANCE_H

#include "lib/Conversion/DNFToONF/FoldRules.h"

namespace moa {

/// Whether `e` is such a weight of the indices `row` and `j`, j being at most `last`, x(row).
bool isDistanceWeight(ExprContext &exprs, FoldRules &rules, Expr e, int64_t row, int64_t j,
                      Expr last);

/// E(n(j′) − n(r)) of a weight E(n), `distance` being j′ − r.
Expr weightOver(ExprContext &exprs, Expr weight, int64_t j, Expr distance);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_DISTANCE_H
