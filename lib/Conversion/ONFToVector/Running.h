//===- Running.h - folds that are scans along an axis of their nest -*- C++ -*-===//
//
// The fold of a nest may run over the indices below t, where t is an axis of the nest. Then the
// fold for t + 1 extends the fold for t by one index (a scan):
//
//   ⊕ over j < t + 1 of F(j) = (⊕ over j < t of F(j)) ⊕ F(t).
//
// So t runs in order within a row, and the work is linear instead of quadratic in the range (G. E.
// Blelloch, "Prefix sums and their applications", 1990). The results are those of separate folds
// that combine their terms in order. A fold over the indices from t on runs backwards:
//
//   ⊕ over j ≥ t − 1 of F(j) = F(t − 1) ⊕ (⊕ over j ≥ t of F(j)).
//
// The terms of a sum may have weights w(t − 1 − j) of their distance to t, with
// w(m + n) = w(m) · w(n), as in exponential moving averages. The next step then multiplies the sum
// so far by w(1):
//
//   Σ over j < t + 1 of w(t − j) · F(j) = w(1) · (Σ over j < t of w(t − 1 − j) · F(j)) + F(t).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_RUNNING_H
#define MOA_CONVERSION_ONFTOVECTOR_RUNNING_H

#include "dialects/ONF/IR/ONF.h"
#include <optional>

namespace moa::rows {

struct RunningFold {
  mutable onf::FoldOp fold;
  unsigned axis = 0;     ///< an axis of the nest but not the last; has one index more than the fold
  bool descends = false; ///< the fold runs from the index of the axis on
  /// The weights of each state's terms. With `axis` at 2 and the fold's index at 0 they evaluate to
  /// w(1).
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 1>> weights;
};

/// Returns the running fold if it is the only op of the nest's body besides stores. Nothing may
/// rescale its states, they have no axes, and their terms do not depend on t. As an exception, sums
/// over j < t may have weights of the distance.
std::optional<RunningFold> findRunningFold(onf::ForOp nest);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_RUNNING_H
