//===- TilePredicate.h - guards evaluated per tile --------------*- C++ -*-===//
//
// Consider a fold over j in a nest whose last index is i. Its guard p(i, j) is evaluated once for a
// tile of rows and a tile of fold indices. The value is never true in the tile, always true, or
// unknown. This gives block-sparse skipping of tiles. Integers are evaluated as ranges (R. E.
// Moore, Interval Analysis, 1966), predicates in the logic of S. C. Kleene (1952).
//
// A *term* is an expression that reads memory and depends on one side of the tile only, the rows or
// the fold indices. Its range over a tile is a pair of numbers, computed once per tile from the
// arrays, so the workspace is proportional to the number of tiles. Terms are maximal: the whole
// left side of i + w[i] ≥ j is one term, and its range is exact.
//
// An expression that reads memory at every pair of a row and an index, such as a boolean mask
// array, has no such range. The value of such an expression is unknown here, and `needsPairs`
// returns true.
//
// Comparisons are evaluated as signs of sums Σ c·x, with all parts of one side combined; max(x, y)
// ≤ z becomes x ≤ z and y ≤ z.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_TILEPREDICATE_H
#define MOA_ANALYSIS_TILEPREDICATE_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include <memory>
#include <vector>

namespace moa {

/// Σ coefficient · value over integers that depend on the row alone or on the fold index alone. A
/// boolean counts as 0 or 1.
struct TileTerm {
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 2> values;
  bool ofRow = false;
  bool operator==(const TileTerm &other) const { return ofRow == other.ofRow && values == other.values; }
};

/// Inclusive bounds of an integer over a tile, of type index.
struct TileRange {
  mlir::Value low, high;
};

/// Two booleans: the predicate holds at no pair, or at every pair, of a tile.
struct TileTruth {
  mlir::Value never, always;
};

class TilePredicate {
public:
  /// Reads the guard of a fold. `tells` is false if there is no guard or its value is unknown for
  /// every tile.
  TilePredicate(onf::ForOp nest, onf::FoldOp fold);

  bool isUseful() const { return root != nullptr; }
  /// Returns true if a part of the guard reads memory at pairs of a row and an index, so that only
  /// its evaluation at pairs can decide more. The guard then depends on no fold and can be
  /// evaluated anywhere.
  bool needsPairs() const { return readsPairs; }
  mlir::Value getGuard() const { return guard; }
  llvm::ArrayRef<TileTerm> getTerms() const { return terms; }
  /// Returns true if a value is the same for all rows and fold indices.
  bool isUniform(mlir::Value value) { return sidesOf(value) == 0; }

  /// The inputs of `emit`: the builder, a callback that evaluates a scalar that is uniform in the
  /// tile, the tile's rows and fold indices, and the ranges of the terms.
  struct Tile {
    mlir::OpBuilder &builder;
    mlir::Location loc;
    llvm::function_ref<mlir::Value(mlir::Value)> evaluate;
    TileRange rows, indices;
    llvm::ArrayRef<TileRange> terms;
  };
  /// Emits the predicate over a tile of at least one row and one index, in ops of arith.
  TileTruth emit(const Tile &tile) const;

  /// Returns true if the magnitude of a value is obviously below 2^48.
  static bool isSmall(mlir::Value value, unsigned depth = 6);

  /// Clamps a range: magnitudes beyond 2^48 become infinite bounds. `low` becomes −2^56 or at most
  /// 2^48, `high` becomes 2^56 or at least −2^48. Ranges of terms must be clamped, so that no sum
  /// of them overflows. Extents are below 2^48.
  static TileRange limit(mlir::OpBuilder &b, mlir::Location loc, TileRange range);

  struct Number;
  struct Truth;
  using NumberRef = std::shared_ptr<const Number>;
  using TruthRef = std::shared_ptr<const Truth>;

private:
  /// Σ coefficient · value + constant.
  struct Sum {
    llvm::SmallMapVector<mlir::Value, int64_t, 4> terms;
    int64_t constant = 0;
  };
  enum Side : unsigned { None = 0, Rows = 1, Indices = 2, Unusable = 4 };

  unsigned sidesOf(mlir::Value value);
  bool readsMemory(mlir::Value value);
  bool needsFold(mlir::Value value);
  std::optional<std::pair<mlir::Value, mlir::Value>> remainderOf(mlir::Value value);
  bool flatten(mlir::Value value, int64_t factor, Sum &sum);
  NumberRef number(mlir::Value value);
  NumberRef structure(mlir::Value value);
  NumberRef sumOf(const Sum &sum);
  NumberRef term(TileTerm term);
  TruthRef truth(mlir::Value value);
  TruthRef structureOfTruth(mlir::Value value);
  TruthRef nonNegative(Sum sum, unsigned splits);
  TruthRef comparison(mlir::Operation *op);

  onf::ForOp nest;
  onf::FoldOp fold;
  llvm::DenseMap<mlir::Value, unsigned> sides;
  llvm::DenseMap<mlir::Value, bool> reads, folded;
  std::vector<TileTerm> terms;
  TruthRef root;
  mlir::Value guard; // null: there is none
  bool readsPairs = false;
};

} // namespace moa

#endif // MOA_ANALYSIS_TILEPREDICATE_H
