//===- Tiles.h - a nest as a kernel of warpgroups ---------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"

namespace moa {

/// An operand that is copied by tiles: an element X[…, r, …, k] with r the row or
/// the key along `rowAxis` and k along the last axis.
struct TileOperand {
  mutable onf::LoadOp load;
  unsigned rowAxis = 0;
  int64_t columns = 0; ///< of the last axis
};

/// Sizes of a kernel of tiles.
struct TileShape {
  int64_t warpgroups = 2; ///< consumers, each with 64 rows
  int64_t keys = 128;     ///< per tile
  int64_t stages = 2;
  /// States may be off by a factor of 2^±repairBound before they are repaired; 0:
  /// they are repaired at every tile.
  int64_t repairBound = 8;
  /// Where rows see different numbers of keys: bytes of the keys' operands of the
  /// outer indices whose blocks run at a time, longest first; 0: index by index.
  int64_t groupBytes = 36 << 20;
  int64_t rows() const { return 64 * warpgroups; }
};

/// What a nest must be for a kernel of tiles, and its operands.
struct TilePlan {
  mutable onf::ForOp nest;
  mutable onf::FoldOp fold;
  rows::FoldPlan folded;
  llvm::SmallVector<TileOperand> rowOperands, keyOperands; // of the scores
  llvm::SmallVector<TileOperand> carried;                  // of the carriers
  TileShape shape;
};

/// The plan of a nest, or why it has none.
std::optional<TilePlan> planTiles(onf::ForOp nest, std::string &why);
/// Writes the kernel.
mlir::LogicalResult lowerTiles(const TilePlan &plan, device::ProgramOp program,
                               unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_H
