//===- TilePredicate.h - what a guard says of a whole tile ------*- C++ -*-===//
//
// A guard p(i, j) of a fold over j in a nest whose last index is i, evaluated for a
// tile of rows and a tile of indices at once, in three values: it holds nowhere in
// the tile, it holds everywhere, or neither is known. Integers are evaluated as
// ranges (R. E. Moore, Interval Analysis, 1966), predicates in the logic of
// S. C. Kleene (1952).
//
// What reads memory and depends on one side of the tile only, the rows or the
// indices, is a *term*: its range over a tile of rows, or over a tile of indices, is a
// pair of numbers, computed once for each tile from the arrays. With all terms the
// workspace is proportional to the numbers of tiles. A term is as large as can be: of
// i + w[i] ≥ j the whole left side is one, so that its range is exact.
//
// What reads memory at every pair of a row and an index, as an array of truths, has no
// such numbers: of it nothing is known here, and `needsPairs` says so.
//
// Comparisons are read as signs of sums Σ c·x, whose parts of one side are taken
// together; max(x, y) ≤ z is x ≤ z and y ≤ z.
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

/// Σ coefficient · value, of integers that are functions of the row alone or of the
/// fold's index alone; a boolean counts as 0 or 1.
struct TileTerm {
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 2> values;
  bool ofRow = false;
  bool operator==(const TileTerm &other) const {
    return ofRow == other.ofRow && values == other.values;
  }
};

/// Bounds of an integer over a tile, both inclusive, of type index.
struct TileRange {
  mlir::Value low, high;
};

/// Booleans: whether a predicate holds nowhere, and everywhere, in a tile.
struct TileTruth {
  mlir::Value never, always;
};

class TilePredicate {
public:
  /// Reads the guard of a fold. Without a guard, or where nothing is known of any
  /// tile, `tells` is false.
  TilePredicate(onf::ForOp nest, onf::FoldOp fold);

  bool tells() const { return root != nullptr; }
  /// Whether a part of the guard reads memory at pairs of a row and an index, so that only
  /// its evaluation at them tells more, and can be evaluated anywhere: it asks for no fold.
  bool needsPairs() const { return readsPairs; }
  mlir::Value getGuard() const { return guard; }
  /// The terms whose ranges `emit` needs.
  llvm::ArrayRef<TileTerm> getTerms() const { return terms; }
  /// Whether a value is the same for all rows and indices of a nest and its fold.
  bool isUniform(mlir::Value value) { return sidesOf(value) == 0; }

  /// What `emit` is given: where to write, how to evaluate a scalar that is the same for
  /// the whole tile, the tile's rows and indices, and the ranges of the terms.
  struct Tile {
    mlir::OpBuilder &builder;
    mlir::Location loc;
    llvm::function_ref<mlir::Value(mlir::Value)> evaluate;
    TileRange rows, indices;
    llvm::ArrayRef<TileRange> terms;
  };
  /// The predicate over a tile of at least one row and one index, in ops of arith.
  TileTruth emit(const Tile &tile) const;

  /// Whether a value is below 2^48 in size, in plain sight.
  static bool isSmall(mlir::Value value, unsigned depth = 6);

  /// Numbers beyond ±2^48 are bounds at infinity: `low` becomes −2^56 or at most 2^48,
  /// `high` 2^56 or at least −2^48. Ranges of terms must have gone through this, so that
  /// no sum of theirs overflows; extents are below 2^48.
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
