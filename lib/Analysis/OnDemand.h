//===- OnDemand.h - which elements a kernel needs ---------------*- C++ -*-===//
//
// An element is read where its value is needed: of `select` only the chosen
// operand is, of `and` and `or` the right one only where the left one does not
// decide. Most loads are inside their array for every index of their loops and
// may be read at any time; the others must wait for the conditions.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ONDEMAND_H
#define MOA_ANALYSIS_ONDEMAND_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace moa {

/// True if the operand is needed only where the op's first operand says so.
bool isOnDemand(mlir::Operation *op, unsigned operand);

/// Whether an expression of sizes, which are not negative, is not: a sum of products and quotients
/// of such.
bool isNonNegative(const SymExpr &expr);

class OnDemand {
public:
  explicit OnDemand(onf::KernelOp kernel) : kernel(kernel) {}
  /// True if the load stays in its array for all indices of the loops around.
  bool isInBounds(onf::LoadOp load);
  /// True if a load the value or the op is computed from may not.
  bool mayFault(mlir::Value value);
  bool mayFault(mlir::Operation *op);
  /// True if a quotient by what is neither a number nor an extent is computed for the
  /// value, outside of folds.
  bool mayDivideByZero(mlir::Value value);
  /// True if the op is needed whatever select, and, or choose.
  bool isAlwaysNeeded(mlir::Operation *op);
  /// True if the op may be run for every index: conditions protect no load of it.
  bool isUnconditional(mlir::Operation *op) { return isAlwaysNeeded(op) || !mayFault(op); }

private:
  struct Range {
    SymExpr low, high; // both included
  };
  using MaybeRange = std::optional<Range>;
  MaybeRange rangeOf(mlir::Value value);
  MaybeRange rangeOfIndex(mlir::BlockArgument index);
  MaybeRange rangeOfQuotient(mlir::Value dividend, const SymExpr &divisor);
  MaybeRange scaled(MaybeRange range, const SymExpr &factor);
  bool divides(const SymExpr &divisor, const SymExpr &value);
  bool computeInBounds(onf::LoadOp load);
  void collectNeeded();
  void collectFolds(mlir::Value value, const SymExpr &extent,
                    llvm::DenseSet<mlir::Operation *> &seen,
                    llvm::SmallVectorImpl<mlir::Operation *> &folds);

  onf::KernelOp kernel;
  llvm::DenseMap<mlir::Operation *, bool> inBounds, faults, divisions;
  llvm::DenseSet<mlir::Operation *> needed;
  bool collected = false;
};

} // namespace moa

#endif // MOA_ANALYSIS_ONDEMAND_H
