//===- OnDemand.h - on-demand evaluation and bounds of loads ----*- C++ -*-===//
//
// An element is read only if its value is needed. `select` needs only the chosen operand; `and` and
// `or` need the right operand only if the left one does not decide. Most loads are inside their
// array for every index of their loops and may be executed speculatively. All others are guarded by
// their conditions.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ONDEMAND_H
#define MOA_ANALYSIS_ONDEMAND_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace moa {

/// Returns true if the first operand of `op` decides whether `operand` is needed.
bool isOnDemand(mlir::Operation *op, unsigned operand);

/// Returns true if an expression of sizes is known not to be negative: a sum of products and
/// quotients of expressions that are not negative.
bool isNonNegative(const SymExpr &expr);

class OnDemand {
public:
  explicit OnDemand(onf::KernelOp kernel) : kernel(kernel) {}
  /// Returns true if the load stays inside its array for all indices of the enclosing loops.
  bool isInBounds(onf::LoadOp load);
  /// Return true if computing the value or the op may execute a load outside of its array.
  bool mayFault(mlir::Value value);
  bool mayFault(mlir::Operation *op);
  /// Returns true if computing the value, outside of folds, may divide by a divisor that is neither
  /// a non-zero constant nor an extent.
  bool mayDivideByZero(mlir::Value value);
  /// Returns true if the op is needed for every outcome of select, and, or.
  bool isAlwaysNeeded(mlir::Operation *op);
  /// Returns true if the op may be executed for every index: no condition protects a load of it.
  bool isUnconditional(mlir::Operation *op) { return isAlwaysNeeded(op) || !mayFault(op); }

private:
  struct Span {
    SymExpr low, high; // both included
  };
  using MaybeSpan = std::optional<Span>;
  MaybeSpan rangeOf(mlir::Value value);
  MaybeSpan rangeOfIndex(mlir::BlockArgument index);
  MaybeSpan rangeOfQuotient(mlir::Value dividend, const SymExpr &divisor);
  MaybeSpan scaled(MaybeSpan range, const SymExpr &factor);
  bool divides(const SymExpr &divisor, const SymExpr &value);
  bool computeInBounds(onf::LoadOp load);
  void collectNeeded();
  void collectFolds(mlir::Value value, const SymExpr &extent, llvm::DenseSet<mlir::Operation *> &seen,
                    llvm::SmallVectorImpl<mlir::Operation *> &folds);

  onf::KernelOp kernel;
  llvm::DenseMap<mlir::Operation *, bool> inBounds, faults, divisions;
  llvm::DenseSet<mlir::Operation *> needed;
  bool collected = false;
};

} // namespace moa

#endif // MOA_ANALYSIS_ONDEMAND_H
