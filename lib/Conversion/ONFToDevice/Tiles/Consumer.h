//===- Consumer.h - a warpgroup that computes 64 rows -----------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_CONSUMER_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_CONSUMER_H

#include "lib/Conversion/ONFToDevice/Tiles/BlockOrder.h"
#include "lib/Conversion/ONFToDevice/Tiles/Contraction.h"
#include "lib/Conversion/ONFToDevice/Tiles/States.h"
#include "lib/Conversion/ONFToDevice/Tiles/TileOrder.h"

namespace moa::tiles {

/// Folds the tiles of a block into the states of a warpgroup's rows.
class Consumer : BlockPart {
public:
  /// Awaits the rows and emits all that is computed before the first tile.
  Consumer(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const Rings &rings, TileOrder &order,
           const BlockRows &block, StreamK &streamK, const FoldPart &part);
  /// Emits the fold. `end` emits the epilogue, whose arguments are the fold's results and those of
  /// prologue contractions. A block that hands over its states has none.
  void run(llvm::function_ref<void(mlir::ValueRange)> end);

private:
  Values awaitRows();
  Running runTiles(Running running, mlir::Value start);
  Running iterate(mlir::Value n, const Running &olds, std::optional<bool> masked, bool overlapped);
  Running iterateProduct(mlir::Value n, const Running &olds, std::optional<bool> known);
  void multiply(mlir::Value n, llvm::StringRef stageName, Running &running);
  /// Returns whether a tile's weights are multiplied right after its own states. Otherwise their
  /// products overlap with, or precede, the states of the next tile.
  bool multipliesAtOnce() const { return !plan.shape.overlap && !plan.product; }
  bool hasRowsBeyond();
  llvm::SmallVector<std::pair<mlir::Value, bool>> ringsOfValues();

  const FoldFacts &facts;
  const Rings &rings;
  TileOrder &order;
  StreamK &streamK;
  const FoldPart &part;
  // The constructor emits their code in this order.
  WarpgroupRows rows;
  Contraction contraction;
  Values prologueSums;
  Masks masks;
  States states;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_CONSUMER_H
