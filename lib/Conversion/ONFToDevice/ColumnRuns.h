//===- ColumnRuns.h - a nest that turns what it reads -----------*- C++ -*-===//
//
// A nest without folds that stores along its last axis, the columns, what it reads along
// another one, the rows, as a transposition does. The lanes of a warp are neighbouring rows,
// so that what they read is adjacent, and each has a run of columns, which it writes by
// accesses of 16 bytes; two lanes have the runs of one row that fill a sector, where what is read
// along half as many rows does. What selections ask of the column alone is asked once per run.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H
#define MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"

namespace moa {

/// How such a nest runs, 32 or 64 rows and four warps of `width` columns per block.
struct ColumnRuns {
  mutable onf::ForOp nest;
  unsigned rowAxis = 0;
  int64_t width = 8; ///< columns of a lane
  int64_t rows = 1;  ///< rows of a lane, 32 apart or, where one access has both, neighbours: blocks
                     ///< without work are fewer
  /// Conditions of selections on the column, but not on the row, that read no memory.
  llvm::SmallVector<mlir::Value> conditions = {};
  unsigned columnAxis() const { return nest.getExtents().size() - 1; }
};

/// The form of a nest, or nothing.
std::optional<ColumnRuns> findColumnRuns(onf::ForOp nest);
/// Whether a nest is lifted to runs of columns.
bool isLiftedToColumnRuns(onf::ForOp nest);
/// Writes the kernel.
mlir::LogicalResult lowerColumnRuns(const ColumnRuns &form, device::ProgramOp program,
                                    unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_COLUMNRUNS_H
