//===- SplitFolds.h - R4: the range of a fold in parts, by nests -*- C++ -*-===//
//
// Split-K for folds. A nest with one long fold and few rows is work for only a few threads. By R4
// this pass splits the fold's range into parts: one nest folds each part separately and stores the
// states. Later nests merge these states, with the rescaling of the fold, and compute the results
// of the nest.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H
#define MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::onf {

/// Returns true if the fold of a nest can be split:
/// - It is the nest's only fold, without lift or pieces.
/// - Its states have types that temporaries can hold, and known axes.
/// - After it there are only stores, and loops over known extents that read states at their own
///   indices.
bool canSplitFold(ForOp nest);

/// Replaces a nest that canSplitFold accepts by nests over parts of `length` indices. The states of
/// parts are temporaries of the kernel. Part p holds the indices p·length to (p + 1)·length − 1,
/// whatever the rows.
struct SplitNest {
  ForOp parts;                           ///< has the axis of parts before its last one
  llvm::SmallVector<mlir::Value> states; ///< of the fold, by number, with that axis
};
SplitNest splitFold(ForOp nest, const SymExpr &length);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H
