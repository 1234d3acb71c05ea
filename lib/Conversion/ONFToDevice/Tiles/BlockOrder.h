//===- BlockOrder.h - the rows and tiles that a block computes --*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_BLOCKORDER_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_BLOCKORDER_H

#include "lib/Conversion/ONFToDevice/Tiles/Running.h"

namespace moa::tiles {

/// Binds the outer axes of the nest for the block with this number, and returns its rows.
BlockRows bindBlock(ScalarCode &code, const TileContext &context, mlir::Value block);

/// The number of a block among all without splits, and its role in a stream-K split. Without a
/// split, the rest is null.
struct BlockNumber {
  mlir::Value number;
  mlir::Value others; // multiprocessors without a first part
  mlir::Value isFirst, isSecond, slot;
};

/// The part of the fold that a block does. Without a split it is all of it, and the rest is null.
struct FoldPart {
  mlir::Value begin, end; // positions of tiles
  mlir::Value handsOver;  // 1 if the block hands over its states
  mlir::Value slot;
  bool isOfSplit() const { return handsOver != nullptr; }
  /// Returns the first position, as one thread has read it, so that all threads agree.
  mlir::Value readBegin(ScalarCode &code) const;
};

/// Stream-K split and persistent kernels (StreamK.cpp).
class StreamK : TilePart {
public:
  StreamK(const TileContext &context, const FoldFacts &facts);
  /// Returns whether the kernel is persistent: few blocks take the numbers of all from a counter.
  bool isPersistent() const;
  /// Returns the registers of a consumer and of the producer.
  std::pair<int64_t, int64_t> registersOfRoles() const;
  /// Returns the number of blocks in the grid.
  SymExpr countGrid() const;
  /// Emits a kernel that sets the counters to 0 in every call, if there is a split.
  void emitClear(const mlir::IRMapping &arrays);

  BlockNumber findBlock(ScalarCode &code);
  FoldPart findPart(ScalarCode &code, const BlockNumber &block, mlir::Value numTiles);
  /// Returns the states that the first part has handed over, or else the initial ones.
  Running loadStates(ScalarCode &code, const FoldPart &part, const WarpgroupRows &rows, const Running &inits,
                     mlir::Value begin);
  /// Hands over the states to the second part.
  void storeStates(ScalarCode &code, const FoldPart &part, const Running &running);

private:
  /// Arrays by slot: states in f32, and the number of warps that have stored theirs.
  struct Workspace {
    mlir::Value states, storedWarps;
    int64_t elements; // of the states of a slot
  };
  int64_t launchRegisters() const;
  std::pair<int64_t, int64_t> registersIfPersistent() const;
  SymExpr countBlocks() const;
  SymExpr countSplitBlocks() const;
  int64_t countCounters() const;
  mlir::Value placeOfState(ScalarCode &code, mlir::Value slot, mlir::Value row, int64_t before, Over over,
                           mlir::ValueRange at);

  const FoldFacts &facts;
  std::optional<Workspace> workspace; // if the schedule splits blocks
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_BLOCKORDER_H
