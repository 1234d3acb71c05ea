//===- Launched.h - what holds wherever a nest is launched ------*- C++ -*-===//
//
// A host launches a nest only where x > y for each pair of onf::kRunsAttr, and what the kernel
// requires holds.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_LAUNCHED_H
#define MOA_ANALYSIS_LAUNCHED_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"

namespace moa {

/// Whether an expression over the symbols is known to be at least 1 wherever the nest is launched:
/// a product of a number, of symbols x ≥ 1 and of quotients ⌊e/c⌋ with e ≥ c.
bool isPositive(const SymExpr &expr, onf::ForOp nest);

/// Whether a nest is launched, and chosen, only where another one is.
bool runsWithin(onf::ForOp nest, onf::ForOp other);

} // namespace moa

#endif // MOA_ANALYSIS_LAUNCHED_H
