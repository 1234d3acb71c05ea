//===- GuardTiles.h - arrays that tell tiles of a guard ---------*- C++ -*-===//
//
// Kernels that run before the tile kernel read the arrays of a guard once. They store in the
// workspace which tiles of keys the rows of a block may see.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_GUARDTILES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_GUARDTILES_H

#include "lib/Conversion/ONFToDevice/Tiles/Context.h"

namespace moa::tiles {

/// An array of the workspace over these axes of the nest and the tiles.
struct TileArray {
  mlir::Value array;
  llvm::SmallVector<unsigned> axes;
  SymExpr tiles;
};

/// Returns the guard as a tile predicate, if it excludes more than the intervals of the fold.
std::optional<TilePredicate> readPredicate(const TilePlan &plan);

/// The ranges of the guard's terms over tiles of rows and tiles of keys (TileRanges.cpp).
class TileRanges : TilePart {
public:
  explicit TileRanges(const TileContext &context);
  void emit(const mlir::IRMapping &arrays);
  /// Returns the range of a term. If the nest is not `chosen`, the array has not been written; null:
  /// it has.
  TileRange load(ScalarCode &code, unsigned term, mlir::Value tile, mlir::Value chosen);
  /// Returns the place of a tile in an array over these axes and the tiles.
  mlir::Value flatPlace(ScalarCode &code, const TileArray &range, mlir::Value tile);
  /// Emits `body` under the condition and, if the nest's choice is over axes of terms, under the
  /// choice too. The nest's loads may be in bounds only if the nest is selected.
  void emitIfChosen(ScalarCode &code, mlir::Value condition, llvm::function_ref<void()> body);
  /// Binds the indices of these axes to the digits of a number, whose lowest digit is the last axis.
  void bindAxes(ScalarCode &code, llvm::ArrayRef<unsigned> axes, mlir::Value number);

private:
  mlir::Value rangePlace(ScalarCode &code, const TileArray &range, mlir::Value tile);
  void writeRanges(ScalarCode &code, bool ofRow, mlir::Value tile);

  std::vector<TileArray> ranges; // per term of the predicate
  llvm::SmallVector<unsigned> rangeAxes;
};

/// Flags per 16 rows and column of tiles, from the guard's pairs (TileTable.cpp).
class TileTable : TilePart {
public:
  TileTable(const TileContext &context, TileRanges &ranges);
  void emit(const mlir::IRMapping &arrays);
  /// Returns whether the guard holds nowhere, and whether it holds everywhere, in the block's rows
  /// and a tile.
  TileTruth read(ScalarCode &code, const BlockRows &block, mlir::Value tile);

private:
  SymExpr tilesPerColumn();
  mlir::Value tablePlace(ScalarCode &code, mlir::Value strip);
  Values evaluatePairs(ScalarCode &code, const BlockRows &block, mlir::Value first);
  Values joinSeen(ScalarCode &code, mlir::ValueRange x, mlir::ValueRange y);
  Values addPairs(ScalarCode &code, const BlockRows &block, mlir::Value first, mlir::ValueRange olds);
  Values addTile(ScalarCode &code, const BlockRows &block, mlir::Value tile, mlir::ValueRange olds);
  void storeSeen(ScalarCode &code, const BlockRows &block, Values seen, mlir::Value column);

  TileRanges &ranges;
  TileArray table;
};

/// The arrays of a guard, and the kernels that write them.
struct GuardTiles {
  GuardTiles(const TileContext &context, const mlir::IRMapping &arrays);

  TileRanges ranges;
  std::optional<TileTable> table; // if the guard reads memory at every pair
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_GUARDTILES_H
