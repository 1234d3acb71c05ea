//===- Epilogue.h - results of a tile kernel --------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_EPILOGUE_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_EPILOGUE_H

#include "lib/Conversion/ONFToDevice/Tiles/Rings.h"

namespace moa::tiles {

/// A result that is staged in a ring and written by TMA bulk stores.
struct TileResult {
  mutable onf::ForOp loop;
  mutable onf::StoreOp store;
  llvm::SmallVector<unsigned> accumulators;
  unsigned rowAxis;
  mlir::Value ring;
  bool isReused; // an earlier result was staged in the ring
};

/// Returns the results that are stored by tiles. Each gets a ring of its own if the block has room,
/// so that no result waits for the store of the one before. The first of each type uses the ring of
/// `Rings::forResults`.
llvm::SmallVector<TileResult> planResults(ScalarCode &code, const TileContext &context, const Rings &rings);

/// Emits the epilogue of a warpgroup, for each row or each element of an accumulator.
class Epilogue : BlockPart {
public:
  /// Rebinds the block's numbers: they are reread from shared memory, and the warpgroup's number is
  /// computed again. Hence none of them takes a register while the tiles run.
  Epilogue(const TileContext &context, ScalarCode &code, const BlockRows &block, llvm::ArrayRef<TileResult> results);
  /// `finals` are the states without axes, the accumulators, and the prologue contractions.
  void run(mlir::ValueRange finals);

private:
  mlir::Value recall(mlir::Value number);
  void bindFinals(mlir::ValueRange in, mlir::ValueRange at);
  void bindSum(unsigned number, mlir::Value value);
  Values inputsOf(mlir::ValueRange finals, llvm::ArrayRef<unsigned> accumulators);
  mlir::Value mapResult(mlir::ValueRange finals, onf::StoreOp store, llvm::ArrayRef<unsigned> accumulators,
                        mlir::Value loopIndex);
  mlir::Value isInside(mlir::ValueRange at, int64_t extent);
  bool storesPairs(onf::StoreOp store, mlir::Value loopIndex, unsigned accumulator);
  void writeElements(mlir::ValueRange finals, mlir::Block &block, llvm::ArrayRef<unsigned> accumulators,
                     mlir::Value loopIndex);
  void writeTile(mlir::ValueRange finals, const TileResult &result);

  llvm::ArrayRef<TileResult> results;
  llvm::SmallVector<device::KeptOp> recalled;
  WarpgroupRows rows;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_EPILOGUE_H
