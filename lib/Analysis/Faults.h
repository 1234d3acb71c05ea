//===- Faults.h - values that may only be asked for in places ---*- C++ -*-===//
//
// A selection, `and` and `or` ask for an operand only where they need it, which may
// be what keeps an address inside of its array. Whoever evaluates an operand at
// other places has to know whether it is harmless there.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_FAULTS_H
#define MOA_ANALYSIS_FAULTS_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/DenseMap.h"

namespace moa {

/// Whether the evaluation of values of an onf.kernel may read outside of an array or
/// divide by zero at some indices of the nest and its folds. Sound and incomplete: a
/// subscript is inside where it is a sum of multiples of indices whose largest value
/// is below the extent by a sum of symbols without a minus. A result of a fold is harmless: its guards are its own.
class Faults {
public:
  bool mayFault(mlir::Value value);

private:
  bool loadMayFault(onf::LoadOp load);
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace moa

#endif // MOA_ANALYSIS_FAULTS_H
