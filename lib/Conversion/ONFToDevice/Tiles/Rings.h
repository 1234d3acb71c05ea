//===- Rings.h - rings of stages in shared memory ---------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_RINGS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_RINGS_H

#include "lib/Conversion/ONFToDevice/Tiles/Context.h"

namespace moa::tiles {

/// A ring of stages, with the barriers for full and for empty stages.
struct Ring {
  mlir::Value tiles, full, empty;
};

/// The shared memory of a block.
class Rings : BlockPart {
public:
  Rings(const TileContext &context, ScalarCode &code, bool isPersistent);
  /// Returns the stage and the parity of the block's n-th tile.
  std::pair<mlir::Value, mlir::Value> stageOf(mlir::Value n, llvm::StringRef name = "stage") const;
  /// Completes all phases of the rings after the last tile of a block, by stages without a tile.
  void complete(mlir::Value start, mlir::Value end, bool isProducer) const;
  /// Returns the ring that stages tiles of an output: that of the rows, which have been read by
  /// then, or the ring for results.
  mlir::Value forResults(mlir::Type element) const;
  /// Erases the ring for results if nothing is staged there.
  void eraseUnused();

  llvm::SmallVector<Ring> rows, keys, values, prologue;
  Ring weights;        // of `plan.product`; null without it
  mlir::Value results; // for outputs of a type that no row ring has; null: there are none
  mlir::Value turns;   // ping-pong: one barrier per warpgroup, to start the next scores; null: no turns

private:
  Ring make(llvm::StringRef name, int64_t stages, int64_t height, int64_t columns, mlir::Type element, bool withEmpty,
            bool isOdd = false, int64_t copies = 1);
  llvm::SmallVector<Ring> makeAll(llvm::ArrayRef<TileOperand> operands, int64_t stages, int64_t size, bool withEmpty,
                                  bool isOdd, const char *role);
};

/// Returns the rows of the parts of a tile of pages: each part lies in one page.
int64_t partRows(const TilePlan &plan, const TileOperand &operand);

/// Returns the bytes of shared memory that the block has left, after the rings so far and `lists`
/// bytes of lists that follow. No other block of the multiprocessor could use them.
int64_t findFreeBytes(const TileContext &context, int64_t lists);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_RINGS_H
