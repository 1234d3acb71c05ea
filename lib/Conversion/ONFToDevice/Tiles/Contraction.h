//===- Contraction.h - products of tiles on tensor cores --------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_CONTRACTION_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_CONTRACTION_H

#include "lib/Conversion/ONFToDevice/Tiles/Rings.h"
#include "lib/Conversion/ONFToDevice/Tiles/Running.h"

namespace moa::tiles {

/// Starts and awaits the products of a warpgroup, and releases the stages that they have read.
class Contraction : WarpgroupPart {
public:
  /// `heldRows` are the row operands in registers; empty if products read them from their rings.
  Contraction(const TileContext &context, ScalarCode &code, const Rings &rings, const WarpgroupRows &rows,
              Values heldRows)
      : WarpgroupPart(context, code, rows), rings(rings), heldRows(std::move(heldRows)) {}
  /// Emits the prologue contractions, each of which is one contraction of the rows.
  Values contractPrologue(mlir::Value firstRow);

  //===--- Scores ---------------------------------------------------------===//
  /// Starts the scores of the tile at position n, in the warpgroup's turn.
  Values startScores(mlir::Value n, mlir::Value stage, mlir::Value parity);
  /// Awaits the scores, after which `pending` products of accumulators may be in flight, releases
  /// the stages of keys, and passes the turn.
  void awaitScores(Values &scores, mlir::Value stage, int64_t pending);

  //===--- Accumulators ---------------------------------------------------===//
  /// Returns the number of products that a tile adds to the accumulators.
  int64_t countAccumulatorProducts() const;
  /// Loads the weights of a tile of `plan.product`.
  mlir::Value loadWeights(mlir::Value stage);
  void packWeights(Running &running);
  void startAccumulators(mlir::Value n, llvm::StringRef stageName, Running &running);
  void finishAccumulators(mlir::Value n, llvm::StringRef stageName, Running &running);

private:
  void awaitTurn(mlir::Value n);
  void passTurn();

  const Rings &rings;
  Values heldRows;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_CONTRACTION_H
