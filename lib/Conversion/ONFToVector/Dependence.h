//===- Dependence.h - the loop indices a value depends on -------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H
#define MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace moa::rows {

/// Computes the set of loop indices that each scalar of an onf kernel depends on. A state also
/// depends on the indices of its fold's guard. A result of a fold does not depend on the fold's own
/// index.
class Dependence {
public:
  using Set = llvm::SmallPtrSet<mlir::Value, 4>;
  const Set &of(mlir::Value value);
  bool on(mlir::Value value, mlir::Value index) { return of(value).contains(index); }

  /// Declares that the result `value` of a fold depends on an index.
  void add(mlir::Value value, mlir::Value index) {
    extra[value].insert(index);
    sets.clear();
  }

private:
  Set compute(mlir::Value value);
  Set computeState(onf::AccOp acc);
  llvm::DenseMap<mlir::Value, Set> sets, extra;
};

/// Returns the guard of a fold, or null.
onf::GuardOp getGuard(onf::FoldOp fold);
llvm::SmallVector<onf::AccOp> getAccs(onf::FoldOp fold);
/// Returns the value that a value or rescale region yields.
mlir::Value getYielded(mlir::Region &region);
/// Returns the term of a state. A term max(x, c) of a maximum, with c the same for all keys, is
/// split into `value` x and `bound` c. The result is then max(max x, c) if the fold has a key. An
/// empty fold must not use c. Minima are treated alike.
struct SplitTerm {
  mlir::Value value, bound; // bound: null if the term is not split
};
SplitTerm splitTerm(onf::AccOp acc, mlir::Value key);
/// Returns whether the computed operands of the state's product are rounded to a narrower type.
bool roundsOperands(onf::AccOp acc);
/// Returns whether a state is a sum of floats that nothing in its fold reads and that is rescaled
/// only by factors. Partial sums of such a state can be kept apart until the end.
bool isPureSum(onf::AccOp acc);
/// Returns the load that produces a value, through widening casts, or null if the value is
/// computed.
onf::LoadOp getReadElement(mlir::Value value);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H
