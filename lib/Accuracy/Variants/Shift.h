//===- Shift.h - scores that may be moved by a constant ---------*- C++ -*-===//
//
// A fold over j, a value s(i, j) in it, and a c(i). If s becomes s − c, some values of the
// fold become smaller by c too and the others do not change at all, where s is only
//
//   - added to what does not move, or has such a thing subtracted from it: moves;
//   - subtracted from what moves, as a score from the maximum of scores: does not change;
//   - the term of a maximum or minimum: the state moves, as max_j (s − c) = max_j s − c.
//
// Then the fold may run on s − c, and c is added to those of its results that have moved
// (law B1 of docs/Accuracy/Bounds.md). Nothing here knows what the values are.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_SHIFT_H
#define MOA_ACCURACY_SHIFT_H

#include "dialects/ONF/IR/ONF.h"
#include <optional>

namespace moa::accuracy {

/// The results of the fold that move with the value, by number; nothing where the value is
/// used in another way.
std::optional<llvm::SmallVector<unsigned>> findMoved(onf::FoldOp fold, mlir::Value value);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_SHIFT_H
