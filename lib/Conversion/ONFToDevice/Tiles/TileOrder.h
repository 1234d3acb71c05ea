//===- TileOrder.h - the tiles of keys that a block visits ------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_TILEORDER_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_TILEORDER_H

#include "lib/Conversion/ONFToDevice/Tiles/FoldFacts.h"
#include "lib/Conversion/ONFToDevice/Tiles/GuardTiles.h"

namespace moa::tiles {

/// The tiles that a block visits: first the masked ones, then those that all its rows see in full.
class TileOrder : protected BlockPart {
public:
  virtual ~TileOrder() = default;
  /// Returns the tile at a position. `masked` is true or false if the kind of the tile is known.
  virtual mlir::Value tileAt(mlir::Value position, std::optional<bool> masked) = 0;
  /// Returns the first key of the tile at a position.
  mlir::Value firstKeyAt(mlir::Value position, std::optional<bool> masked);

  mlir::Value numTiles, numMasked; // set by the constructors of both orders

protected:
  /// Finds the tiles that some row of the block needs. `chosen` tells whether the nest is selected;
  /// null: always.
  TileOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const BlockRows &block,
            mlir::Value chosen);
  std::pair<mlir::Value, mlir::Value> interval(mlir::AffineMap lower, mlir::AffineMap upper);
  mlir::Value hasAllRows();

  const FoldFacts &facts;
  const BlockRows &block;
  mlir::Value chosen;
  mlir::Value firstTile, endTile;
};

/// Visits one interval of tiles, with the full ones as a contiguous part.
class IntervalOrder : public TileOrder {
public:
  IntervalOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const BlockRows &block,
                mlir::Value chosen);
  mlir::Value tileAt(mlir::Value position, std::optional<bool> masked) override;

private:
  mlir::Value scoresKeepOrder();

  mlir::Value firstFull, endFull; // the tiles that every row of the block sees
};

/// Visits the tiles of two lists in shared memory (TileLists.cpp).
class ListOrder : public TileOrder {
public:
  ListOrder(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const BlockRows &block,
            mlir::Value chosen, GuardTiles &guard);
  mlir::Value tileAt(mlir::Value position, std::optional<bool> masked) override;

private:
  llvm::SmallVector<TileRange> loadRowRanges(GuardTiles &guard);
  Values classify(GuardTiles &guard, mlir::Value tile, mlir::Value size, mlir::Value keys,
                  llvm::SmallVector<TileRange> &found, mlir::Value all);

  int64_t listRoom; // capacity of each list
  mlir::Value partialTiles, fullTiles, numListed, listedEnd;
};

/// Finds the tiles of a block. `guard` has the arrays of the guard, if it is more than intervals.
std::unique_ptr<TileOrder> orderTiles(const TileContext &context, ScalarCode &code, const FoldFacts &facts,
                                      const BlockRows &block, mlir::Value chosen, std::optional<GuardTiles> &guard);
/// Returns the bytes of the longest lists that a kernel may need.
int64_t longestListBytes(const TileContext &context);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_TILEORDER_H
