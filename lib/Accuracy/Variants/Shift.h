//===- Shift.h - scores shifted by a constant -------------------*- C++ -*-===//
//
// Let s(i, j) be a value in a fold over j. If s becomes s − c(i), each value of the fold either
// decreases by c too (it moves) or does not change, provided that s is only
//
//   - added to a value that does not move, or has one subtracted from it: the result moves;
//   - subtracted from a value that moves, as a score from the running maximum: no change;
//   - the term of a maximum or minimum: the state moves, as max_j (s − c) = max_j s − c.
//
// Then the fold may run on s − c, and c is added to those results that have moved (law B1 of
// docs/Accuracy/Bounds.md).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_SHIFT_H
#define MOA_ACCURACY_SHIFT_H

#include "dialects/ONF/IR/ONF.h"
#include <optional>

namespace moa::accuracy {

/// Returns the results of the fold that move with `value`; nullopt if it has other uses.
std::optional<llvm::SmallVector<unsigned>> findMoved(onf::FoldOp fold, mlir::Value value);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_SHIFT_H
