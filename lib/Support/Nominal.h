//===- Nominal.h - counts where sizes are not known -------------*- C++ -*-===//
#ifndef MOA_SUPPORT_NOMINAL_H
#define MOA_SUPPORT_NOMINAL_H

#include "lib/Support/SymExpr.h"

namespace moa {

/// A size that is not known, where costs are compared.
constexpr int64_t kNominalSize = 4096;

/// A count where every size that is not known is kNominalSize. For example N·64 is 262,144.
/// A count above 63 bits is 2^63. A difference of sizes that comes out as 0 or less is
/// kNominalSize.
double nominal(const SymExpr &count);

} // namespace moa

#endif // MOA_SUPPORT_NOMINAL_H
