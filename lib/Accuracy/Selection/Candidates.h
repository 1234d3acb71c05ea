//===- Candidates.h - scores and weighted sums of a nest --------*- C++ -*-===//
#ifndef MOA_ACCURACY_CANDIDATES_H
#define MOA_ACCURACY_CANDIDATES_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/OnDemand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace moa::accuracy {

/// A factor of a contraction over the whole of `axis`: an element of an array, perhaps widened.
struct Operand {
  mutable onf::LoadOp load;
  unsigned axis = 0;
  mlir::BlockArgument array() const;
  unsigned rank() const { return load.getArray().getType().getRank(); }
};

/// A score s(i, j) = Σ_k row(i, k)·key(j, k): a fold inside a fold over j, in a nest over i.
struct ScoreFold {
  mutable onf::FoldOp outer, fold;
  Operand row, key;
  /// The axis of the keys that j alone runs over, if there is one.
  std::optional<unsigned> keyAxis;
  /// The score, multiplied by `factor` if the factor does not depend on the fold.
  mlir::Value value, factor;
  mutable mlir::arith::MulFOp scaled;
  /// The results of the outer fold that move with the value (Shift.h); nullopt if it has other
  /// uses.
  std::optional<llvm::SmallVector<unsigned>> moved;
};

/// A weighted sum t(i, d) = Σ_j w(i, j)·v(j, d): an accumulator of a fold over j.
struct WeightedSum {
  mutable onf::FoldOp outer;
  mutable onf::AccOp acc;
  mutable onf::LoadOp load;       // of v
  unsigned keyAxis = 0, axis = 0; // of v, for j and d
  mlir::Value weight;
  bool isNormalised = false; // 0 ≤ w ≤ 1
  /// The result Σ_j w(i, j) of the fold, if there is one.
  std::optional<unsigned> total;
  unsigned result = 0;
};

/// Returns the axis of this extent that the index alone addresses in the load, if there is one.
std::optional<unsigned> findAxis(onf::LoadOp load, mlir::Value index, ExprAttr extent);

mlir::Value getTerm(onf::AccOp acc);
/// Returns the load of a factor that is an element of an array, perhaps widened; null otherwise.
onf::LoadOp getElement(mlir::Value factor);

/// Returns the weighted sums of a nest with 0 ≤ w ≤ 1 or, with `anyWeights`, any computed weights.
llvm::SmallVector<WeightedSum> findWeightedSums(onf::ForOp nest, OnDemand &onDemand, bool anyWeights = false);

/// Collects the loop indices that a value depends on; returns false if it is not computed from
/// indices and loads alone.
bool collectIndices(mlir::Value value, llvm::SmallPtrSetImpl<mlir::Value> &indices);

/// Most terms of a score: f32 holds the sum of 256 products of 8-bit integers exactly, and tensor
/// cores take rows of 256.
inline constexpr int64_t kMostTerms = 256;

/// Returns the scores of a nest with at most `kMostTerms` terms.
llvm::SmallVector<ScoreFold> findScores(onf::ForOp nest, OnDemand &onDemand);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_CANDIDATES_H
