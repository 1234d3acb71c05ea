//===- Tiles.h - a nest as a kernel of warpgroups ---------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Schedule/GpuSchedule.h"

namespace moa {

/// An operand that is copied by tiles: an element X[…, r, …, k] with r the row or
/// the key along `rowAxis` and k along the last axis.
struct TileOperand {
  mutable onf::LoadOp load;
  unsigned rowAxis = 0;
  int64_t columns = 0; ///< of the last axis
  /// Whether the fold's index runs along the last axis, and `columns` along `rowAxis`.
  bool isTransposed = false;
  int64_t getBytes() const { return load.getResult().getType().getIntOrFloatBitWidth() / 8; }
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

/// What a nest would be as a kernel of tiles, without a shape, or why it is none.
std::optional<TilePlan> findTiles(onf::ForOp nest, std::string &why);
/// The temporaries of a kernel whose last axis is interleaved in memory (`getInterleaved` of
/// device.contract), by the numbers of their arguments: carried operands of 8 bits.
llvm::SmallVector<int64_t> findInterleaved(onf::KernelOp kernel);
/// The attribute of a kernel, while it is lowered, that says which these are.
inline constexpr llvm::StringLiteral kInterleavedAttr = "moa.interleaved";
/// Whether it says so of an array.
bool isInterleaved(mlir::Value array);
/// Whether a nest sums up products of floats of 16 bits or integers of 8, which tensor
/// cores are for.
bool contractsNarrow(onf::ForOp nest);
/// Whether a nest is lifted to warpgroups.
bool isLiftedToTiles(onf::ForOp nest);
/// The plan of a nest that is lifted to warpgroups, in the shape that its
/// attributes say, or why it has none.
std::optional<TilePlan> planTiles(onf::ForOp nest, std::string &why);
/// The type of 16 bits of outputs over the axis of a state that tiles of rows do not have;
/// null if there is none. Its tiles pass through a ring of their own, of so many columns.
mlir::Type getResultElement(const TilePlan &plan);
int64_t getResultColumns(const TilePlan &plan);
/// Bytes of shared memory that lists of tiles take, where a kernel has some.
int64_t tileListBytes(const TilePlan &plan);
/// Writes the kernel.
mlir::LogicalResult lowerTiles(const TilePlan &plan, device::ProgramOp program,
                               unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_H
