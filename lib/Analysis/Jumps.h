//===- Jumps.h - discontinuities of results ---------------------*- C++ -*-===//
//
// Rounding errors of sums usually change the results that depend on them continuously, by a similar
// amount in each row. If an error moves a value across a discontinuity, a few rows are far off, and
// a sample of rows seldom shows it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_JUMPS_H
#define MOA_ANALYSIS_JUMPS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa {

struct Jump {
  mlir::Operation *op = nullptr; // the discontinuous operation
  unsigned result = 0;           // the number of a kernel array that it reaches
};

/// Returns a discontinuous operation that depends on `values` of a nest and reaches a store.
/// Returns nothing if every dependence is continuous [Def 31]. Poles do not count. Discontinuous
/// are:
/// - comparisons, unless all selects that they control have equal operands at the threshold;
/// - roundings to integers;
/// - every operation that is not known to be continuous.
std::optional<Jump> findJump(llvm::ArrayRef<mlir::Value> values);

/// Returns the results of an operation and, for the terminators of regions, those of the enclosing
/// operation.
llvm::SmallVector<mlir::Value> getMade(mlir::Operation *user);

llvm::SmallVector<onf::StoreOp> findStores(mlir::Operation *op);

/// Describes the operation, its place and the remedy.
std::string describeJump(const Jump &jump);

} // namespace moa

#endif // MOA_ANALYSIS_JUMPS_H
