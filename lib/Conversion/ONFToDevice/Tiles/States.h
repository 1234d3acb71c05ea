//===- States.h - states of a fold over tiles -------------------*- C++ -*-===//
//
// A state is kept as partials, one per lane of a row, which are reduced once after the last tile.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_STATES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_STATES_H

#include "lib/Conversion/ONFToDevice/Tiles/Rescaling.h"
#include "lib/Conversion/ONFToDevice/Tiles/Terms.h"

namespace moa::tiles {

class States : WarpgroupPart {
public:
  States(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const WarpgroupRows &rows, Masks &masks);
  Running initialise();
  /// Computes the states after the tile from `first` on, and the weights of the accumulators. The
  /// sums of the accumulators are not rescaled here, but by `rescaleSums`. Without `presence`,
  /// nothing is masked.
  Step step(mlir::ValueRange scores, mlir::Value first, const Presence *presence, const Running &olds);
  /// Rescales the sums of the accumulators to the references of the step.
  void rescaleSums(Step &step);
  /// Returns the fold's results: states without axes, a value per row, then the accumulators' sums.
  Values conclude(const Running &olds);

private:
  void findBounds();
  llvm::SmallVector<unsigned> statesOf(unsigned pass, const Tile &tile);
  Step startStep(const Running &olds);
  mlir::Value reduceTile(onf::AccOp acc, Tile &tile, Running &news, unsigned k);
  void reducePass(unsigned pass, const Running &olds, Step &step, Tile &tile);
  void correct(unsigned number, const Running &olds, Step &step);
  void updateReferences(unsigned pass, Running &news, llvm::StringRef name = "");
  void moveReferences(unsigned pass, Running &news, Tile &tile);
  mlir::Value joinLanes(onf::AccOp acc, mlir::Value partial, llvm::StringRef name = "");
  void rescaleWhereNeeded(const Running &olds, Step &step, Tile &tile);
  mlir::Value withStates(const Step &step);

  const FoldFacts &facts;
  Masks &masks;
  Terms terms;
  Pivots pivots;
  Rescaling rescaling;
  // Per state with a bound: its start, which is the bound for rows that see a key; null: the
  // identity.
  Values starts;
  // Per state: the bound to combine each tile's terms with, as rows may see no key; null: none.
  Values termBounds;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_STATES_H
