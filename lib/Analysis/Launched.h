//===- Launched.h - conditions that hold if a nest is launched --*- C++ -*-===//
//
// A host launches a nest only if x > y for each pair of onf::kLaunchIfAttr and the requirements of the
// kernel hold.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_LAUNCHED_H
#define MOA_ANALYSIS_LAUNCHED_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"

namespace moa {

/// Returns true if an expression over the symbols is known to be at least 1 whenever the nest is
/// launched. It must be a product of a number, of symbols x ≥ 1 and of quotients ⌊e/c⌋ with e ≥ c.
bool isPositive(const SymExpr &expr, onf::ForOp nest);

/// Returns true if a nest is launched and selected only when `other` is.
bool runsWithin(onf::ForOp nest, onf::ForOp other);

} // namespace moa

#endif // MOA_ANALYSIS_LAUNCHED_H
