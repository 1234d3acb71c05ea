//===- Candidates.h - contractions that may take fewer bits -----*- C++ -*-===//
#ifndef MOA_PRECISION_CANDIDATES_H
#define MOA_PRECISION_CANDIDATES_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/OnDemand.h"

namespace moa::precision {

/// A factor of a contraction: an element of an array, perhaps widened. The contraction runs
/// over the whole of one of its axes.
struct Operand {
  mutable onf::LoadOp load;
  unsigned axis = 0;
  mlir::BlockArgument array() const;
};

/// s(i, j) = Σ_k row(i, k) · key(j, k), an inner fold of one over j in a nest over i.
struct Score {
  mutable onf::FoldOp outer, fold;
  Operand row, key;
};

/// The loop indices that a value is computed from; false where it is not computed from
/// indices and loads alone.
bool collectIndices(mlir::Value value, llvm::SmallPtrSetImpl<mlir::Value> &indices);

/// The scores of a nest whose last axis is i, with rows of at most `most` elements.
llvm::SmallVector<Score> findScores(onf::ForOp nest, OnDemand &onDemand, int64_t most);

} // namespace moa::precision

#endif // MOA_PRECISION_CANDIDATES_H
