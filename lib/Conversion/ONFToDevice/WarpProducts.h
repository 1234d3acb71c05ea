//===- WarpProducts.h - a nest as one product per warp ----------*- C++ -*-===//
//
// A nest whose one fold sums up products x(i, j) · y(j, d) of 16-bit operands, i its last
// axis and d the axis that the state carries, runs with 64 rows per block, 16 per warp: the
// operands are read, or computed, straight into the registers that mma.sync takes them
// from, so that they may be anything with any strides, and the state stays in registers.
// It is for folds that are short: rows share what they read by way of the caches alone.
//
// The columns may also be an axis of the nest, c = c₀ + d, whose size only the run knows: the axis
// before the last one. A block then has 64 of them, and its results are whatever the nest stores of
// the sum at (i, c). Such a sum may be long: every 1024 terms are a sum of their own, and these are
// added up with compensation.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H
#define MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include <string>

namespace moa {

/// What such a nest is made of.
struct WarpProduct {
  mutable onf::ForOp nest;
  mutable onf::FoldOp fold;
  mutable onf::AccOp acc;
  mutable onf::ForOp stores;     // the loop over the axis that is carried, if one is
  mlir::Value column;            // the index of that axis in the fold, or the nest's
  std::optional<int64_t> length; ///< of the fold, if it is known
  int64_t columns = 0;           ///< of a block
  mlir::Type element;            ///< of both operands
  llvm::SmallVector<mlir::Value> rowFactors, keyFactors;
  /// Conditions of the guard on the row alone, and on what rows share.
  llvm::SmallVector<mlir::Value> rowConditions, keyConditions;
};

/// The product that a nest is, or nothing.
std::optional<WarpProduct> findWarpProduct(onf::ForOp nest);
/// Whether a nest is lifted to warps without warpgroups.
bool isLiftedToWarps(onf::ForOp nest);
/// Writes the kernel.
mlir::LogicalResult lowerWarpProduct(const WarpProduct &product, device::ProgramOp program,
                                     unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H
