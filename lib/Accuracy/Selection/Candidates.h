//===- Candidates.h - contractions that may take fewer bits -----*- C++ -*-===//
#ifndef MOA_ACCURACY_CANDIDATES_H
#define MOA_ACCURACY_CANDIDATES_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/OnDemand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace moa::accuracy {

/// A factor of a contraction: an element of an array, perhaps widened. The contraction runs
/// over the whole of one of its axes.
struct Operand {
  mutable onf::LoadOp load;
  unsigned axis = 0;
  mlir::BlockArgument array() const;
  unsigned rank() const { return load.getArray().getType().getRank(); }
};

/// s(i, j) = Σ_k row(i, k) · key(j, k), an inner fold of one over j in a nest over i.
struct Score {
  mutable onf::FoldOp outer, fold;
  Operand row, key;
  /// The axis of the keys that j runs over, if it is one of its own.
  std::optional<unsigned> keyAxis;
  /// The sum, or its product with what no index of the fold changes.
  mlir::Value value, factor;
  mutable mlir::arith::MulFOp scaled;
  /// The results of the outer fold that move with the value by a constant; nothing where it is
  /// used in a way that does not allow that.
  std::optional<llvm::SmallVector<unsigned>> moved;
};

/// t(i, d) = Σ_j w(i, j) · v(j, d), a state of a fold over j that carries an axis.
struct Carrier {
  mutable onf::FoldOp outer;
  mutable onf::AccOp acc;
  mutable onf::LoadOp load;       // of v
  unsigned keyAxis = 0, axis = 0; // of v, for j and d
  mlir::Value weight;
  bool isNormalised = false; // 0 ≤ w ≤ 1
  /// The result of the fold that is Σ_j w(i, j), if there is one.
  std::optional<unsigned> total;
  unsigned result = 0; // of the fold, which onf.at reads
};

/// The axis of the array, of this extent, that the index alone runs along in the load's address, if
/// there is one.
std::optional<unsigned> findAxis(onf::LoadOp load, mlir::Value index, mlir::StringAttr extent);

/// What a state takes in at each index.
mlir::Value getTerm(onf::AccOp acc);

/// The sums of values with an axis of a nest whose last axis is i, with 0 ≤ w ≤ 1, or `anyWeights`
/// that are computed.
llvm::SmallVector<Carrier> findCarriers(onf::ForOp nest, OnDemand &onDemand, bool anyWeights = false);

/// The loop indices that a value is computed from; false where it is not computed from
/// indices and loads alone.
bool collectIndices(mlir::Value value, llvm::SmallPtrSetImpl<mlir::Value> &indices);

/// Terms of a sum of products: f32 holds the sum of so many of 8-bit integers exactly, and tensor
/// cores take rows of so many.
inline constexpr int64_t kMostTerms = 256;

/// The scores of a nest whose last axis is i, with rows of at most `kMostTerms` elements.
llvm::SmallVector<Score> findScores(onf::ForOp nest, OnDemand &onDemand);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_CANDIDATES_H
