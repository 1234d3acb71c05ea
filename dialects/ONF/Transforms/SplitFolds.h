//===- SplitFolds.h - R4: a range in parts, nest by nest --------*- C++ -*-===//
//
// A nest whose one fold is long and whose rows are few is work for a few threads. R4 splits the
// fold's range into parts: one nest folds each of them on its own and stores the states, those
// behind it merge the parts' states with the repairs of the fold and do what the nest did with
// the results.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H
#define MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::onf {

/// Whether the fold of a nest can be split: it is the nest's only one and has no lift or pieces
/// yet; states are of types that temporaries have, their axes known; behind the fold stand stores,
/// and loops over known extents that read states at their own indices.
bool canSplitFold(ForOp nest);

/// Splits the range of the nest's fold, which can be split, into parts of `length` indices; the
/// nests that replace it stand in its place, and the states of parts are temporaries of its
/// kernel. Part p holds the indices from p·length to before (p + 1)·length, whatever the rows.
struct SplitNest {
  ForOp parts;                           ///< the axis of the parts is in front of the last one
  llvm::SmallVector<mlir::Value> states; ///< of the fold, by number, with that axis
};
SplitNest splitFold(ForOp nest, int64_t length);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_SPLITFOLDS_H
