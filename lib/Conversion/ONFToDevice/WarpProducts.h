//===- WarpProducts.h - matrix products by single warps ---------*- C++ -*-===//
//
// A nest whose one fold sums products x(i, j) · y(j, d) of 16-bit operands runs on mma.sync. i is
// its last axis and d the axis of the state. A block has 64 rows, 16 per warp. The operands are
// loaded or computed directly in the registers of mma.sync, so that any expressions and strides are
// allowed. The state stays in registers. This suits short folds: rows share operands only through
// caches.
//
// Alternatively, the columns are an axis of the nest, c = c₀ + d, whose size is known at run time
// only: the axis before the last one. A block then has 64 columns, and the nest may store any
// function of the sum at (i, c). Such sums may be long: each 1024 terms are summed separately, and
// these partial sums are added with compensation.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H
#define MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include <string>

namespace moa {

/// The parts of such a nest.
struct WarpProduct {
  mutable onf::ForOp nest;
  mutable onf::FoldOp fold;
  mutable onf::AccOp acc;
  mutable onf::ForOp stores;     // the loop over the state's axis, if it has one
  mlir::Value column;            // index of that axis in the fold, or of the nest
  std::optional<int64_t> length; ///< of the fold, if known
  int64_t columns = 0;           ///< per block
  mlir::Type element;            ///< of both operands
  llvm::SmallVector<mlir::Value> rowFactors, keyFactors;
  /// Conjuncts of the guard on the row alone, and those that rows share.
  llvm::SmallVector<mlir::Value> rowConditions, keyConditions;
};

/// Returns the product that a nest computes, or nullopt.
std::optional<WarpProduct> findWarpProduct(onf::ForOp nest);
/// Returns whether a nest is bound to warps without warpgroups.
bool isLiftedToWarps(onf::ForOp nest);
mlir::LogicalResult lowerWarpProduct(const WarpProduct &product, device::ProgramOp program, unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_WARPPRODUCTS_H
