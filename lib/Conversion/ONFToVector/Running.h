//===- Running.h - a fold that goes on along an axis of its nest -*- C++ -*-===//
//
// A nest whose one fold has the indices below t, t being one of its axes, computes for t + 1 what
// it has computed for t, and one index more:
//
//   ⊕ over j < t + 1 of F(j) = (⊕ over j < t of F(j)) ⊕ F(t).
//
// So t runs in order inside of a row, and the fold goes on: work that grows with the range instead
// of its square (a scan: G. E. Blelloch, "Prefix sums and their applications", 1990). The results
// are those of the fold by itself where terms are combined in order. A fold with the indices from t
// on goes on the other way:
//
//   ⊕ over j ≥ t − 1 of F(j) = F(t − 1) ⊕ (⊕ over j ≥ t of F(j)).
//
// Of a sum, terms may have weights of the distance to t, w(t − 1 − j) with w(m + n) = w(m) · w(n).
// One step further all of them are multiplied with w(1):
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
  unsigned axis = 0;     ///< of the nest, not its last one, with one index more than the fold
  bool descends = false; ///< the fold has the indices from that of the axis on
  /// The weights of each state's terms: w(1) for `axis` 2 and the fold's index 0, 1 for the newest
  /// term.
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 1>> weights;
};

/// Returns the running fold that a nest is, if its body holds nothing else but stores: nothing
/// repairs its states, they carry nothing, and their terms do not know t but for weights of the
/// distance of sums over j < t.
std::optional<RunningFold> findRunningFold(onf::ForOp nest);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_RUNNING_H
