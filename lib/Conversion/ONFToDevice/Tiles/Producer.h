//===- Producer.h - the warpgroup that copies tiles -------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_PRODUCER_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_PRODUCER_H

#include "lib/Conversion/ONFToDevice/Tiles/BlockOrder.h"
#include "lib/Conversion/ONFToDevice/Tiles/Rings.h"
#include "lib/Conversion/ONFToDevice/Tiles/TileOrder.h"

namespace moa::tiles {

/// The way in which tiles reach shared memory.
class TileCopies {
public:
  virtual ~TileCopies() = default;
  /// Copies the tile of an operand from row or key `first` on into a stage of a ring. Announces its
  /// bytes at the stage's barrier for full stages.
  virtual void copy(const TileOperand &operand, mlir::Value first, const Ring &ring, mlir::Value stage) = 0;
  /// Loads what the copies of a tile of keys need, before any stage is awaited.
  virtual void prepare(mlir::Value first) {}
  /// The same for a tile of the left operand of `plan.product`, with keys from `first` on.
  virtual void copyLeft(mlir::Value first, const Ring &ring, mlir::Value stage) = 0;
};

/// Copies by TMA, which announces the bytes itself.
class TmaCopies : public TileCopies, BlockPart {
public:
  TmaCopies(const TileContext &context, ScalarCode &code, const BlockRows &block)
      : BlockPart(context, code), block(block) {}
  void copy(const TileOperand &operand, mlir::Value first, const Ring &ring, mlir::Value stage) override;
  void prepare(mlir::Value first) override;
  void copyLeft(mlir::Value first, const Ring &ring, mlir::Value stage) override;

private:
  void copyPages(const TileOperand &operand, const Ring &ring, mlir::Value stage);
  void copyAt(const TileOperand &operand, mlir::Value first, mlir::Value column, const Ring &ring, mlir::Value stage);

  const BlockRows &block;
  /// For each operand with pages, the coordinates of each part of the tile.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Values>> places;
};

/// Fills the rings with the tiles of a part of the fold, as soon as consumers release stages.
class Producer : BlockPart {
public:
  Producer(const TileContext &context, ScalarCode &code, const Rings &rings, TileCopies &copies, TileOrder &order,
           const BlockRows &block, const FoldPart &part, bool isPersistent)
      : BlockPart(context, code), rings(rings), copies(copies), order(order), block(block), part(part),
        isPersistent(isPersistent) {}
  void run();

private:
  struct Numbers {
    mlir::Value stage, free, first;
  };
  Numbers numbersOf(mlir::Value n);
  void fill(const Numbers &at, llvm::ArrayRef<TileOperand> operands, llvm::ArrayRef<Ring> into);

  const Rings &rings;
  TileCopies &copies;
  TileOrder &order;
  const BlockRows &block;
  const FoldPart &part;
  bool isPersistent;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_PRODUCER_H
