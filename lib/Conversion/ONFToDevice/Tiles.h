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
/// Whether a nest sums up products of operands of 16 bits, which tensor cores are for.
bool contractsHalves(onf::ForOp nest);
/// Whether a nest is lifted to warpgroups.
bool isLiftedToTiles(onf::ForOp nest);
/// The plan of a nest that is lifted to warpgroups, in the shape that its
/// attributes say, or why it has none.
std::optional<TilePlan> planTiles(onf::ForOp nest, std::string &why);
/// Bytes of shared memory that lists of tiles take, where a kernel has some.
int64_t tileListBytes(const TilePlan &plan);
/// Writes the kernel.
mlir::LogicalResult lowerTiles(const TilePlan &plan, device::ProgramOp program,
                               unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_H
