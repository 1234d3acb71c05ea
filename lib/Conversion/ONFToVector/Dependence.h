//===- Dependence.h - the loop indices a value depends on -------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H
#define MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace moa::rows {

/// For every scalar of an onf kernel the set of loop indices it is a function
/// of. A state depends on what its fold's guard depends on, a fold's result on
/// no index of the fold itself.
class Dependence {
public:
  using Set = llvm::SmallPtrSet<mlir::Value, 4>;
  const Set &of(mlir::Value value);
  bool on(mlir::Value value, mlir::Value index) { return of(value).contains(index); }

  /// Declares that a value, a result of a fold, depends on an index.
  void add(mlir::Value value, mlir::Value index) {
    extra[value].insert(index);
    sets.clear();
  }

private:
  Set compute(mlir::Value value);
  Set computeState(onf::AccOp acc);
  llvm::DenseMap<mlir::Value, Set> sets, extra;
};

/// The guard of a fold, or null.
onf::GuardOp getGuard(onf::FoldOp fold);
/// The states of a fold in order.
llvm::SmallVector<onf::AccOp> getAccs(onf::FoldOp fold);
/// The value a value or repair region yields.
mlir::Value getYielded(mlir::Region &region);
/// The terms of a state. Those of a maximum that are max(x, c), c a float that is the same for all
/// keys, have c apart: the maximum of some of them is max(max x, c), that of none is no c. The same
/// with minima.
struct Terms {
  mlir::Value value, bound; // no bound: null
};
Terms getTerms(onf::AccOp acc, mlir::Value key);
/// True if the computed operands of the state's product are to be rounded.
bool roundsOperands(onf::AccOp acc);
/// True for a sum of floats that nothing in its fold reads and that is repaired
/// by factors: partial sums may be kept apart until the end.
bool isPureSum(onf::AccOp acc);
/// The load a value reads its element with, through widening casts; null where
/// the value is computed.
onf::LoadOp getReadElement(mlir::Value value);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_DEPENDENCE_H
