//===- ColumnRuns.h - kernels that transpose their input --------*- C++ -*-===//
//
// A nest without folds is a transposition if it stores along its last axis, the columns, elements
// that it loads along another axis, the rows. The lanes of a warp are neighbouring rows, so that
// loads coalesce. Each lane has a run of columns, which it writes by accesses of 16 bytes. Two
// lanes have the two runs of a row that fill a sector, if half as many rows still fill a sector of
// the loads. Conditions of selections on the column alone are evaluated once per run.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H
#define MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"

namespace moa {

/// The shape of such a kernel: a block has 32 or 64 rows and four runs of `width` columns.
struct ColumnRuns {
  mutable onf::ForOp nest;
  unsigned rowAxis = 0;
  int64_t width = 8; ///< columns of a lane
  /// Rows of a lane: 32 apart, or adjacent if one access loads both. With two, fewer blocks start
  /// in vain.
  int64_t rowsPerLane = 1;
  /// Conditions of selections that depend on the column, not on the row, and read no memory.
  llvm::SmallVector<mlir::Value> conditions = {};
  unsigned columnAxis() const { return nest.getExtents().size() - 1; }
};

/// Returns the shape of a nest, or nullopt if it is no transposition.
std::optional<ColumnRuns> findColumnRuns(onf::ForOp nest);
/// Returns whether a nest is bound to runs of columns.
bool isLiftedToColumnRuns(onf::ForOp nest);
mlir::LogicalResult lowerColumnRuns(const ColumnRuns &form, device::ProgramOp program, unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H
