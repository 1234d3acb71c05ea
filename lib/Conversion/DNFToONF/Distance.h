//===- Distance.h - weights that are powers of a distance -------*- C++ -*-===//
//
// A weight w(i, j) = E(n(i, j)) splits at every index r between j and the last index x(i) of its
// range:
//
//   E(n(i, j)) = E(n(i, r)) · E(n(·, j) − n(·, r)),
//
// where the second factor does not depend on i. E is exp, exp2 or a power of a base b, and n is
// linear in the distance x(i) − j. For example, decay weights γ^(i − j) split. Apart from terms of
// i alone, the three exponents have one sign, so that neither factor leaves the range of the type
// if the product does not.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_DISTANCE_H
#define MOA_CONVERSION_DNFTOONF_DISTANCE_H

#include "lib/Conversion/DNFToONF/FoldRules.h"

namespace moa {

/// Returns whether `e` is such a weight of the indices `row` and `j`, with j ≤ `last` = x(row).
bool isDistanceWeight(ExprContext &exprs, FoldRules &rules, Expr e, int64_t row, int64_t j, Expr last);

/// Returns E(n(j′) − n(r)) for a weight E(n), with `distance` = j′ − r.
Expr weightOver(ExprContext &exprs, Expr weight, int64_t j, Expr distance);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_DISTANCE_H
