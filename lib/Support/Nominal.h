//===- Nominal.h - counts with nominal sizes --------------------*- C++ -*-===//
#ifndef MOA_SUPPORT_NOMINAL_H
#define MOA_SUPPORT_NOMINAL_H

#include "lib/Support/SymExpr.h"

namespace moa {

/// The assumed value of an unknown size in comparisons of costs.
constexpr int64_t kNominalSize = 4096;

/// Evaluates a count with kNominalSize for every unknown size. For example, N·64 is 262,144.
/// Returns 2^63 for a count above 63 bits, and kNominalSize for a difference that is 0 or less.
double nominal(const SymExpr &count);

} // namespace moa

#endif // MOA_SUPPORT_NOMINAL_H
