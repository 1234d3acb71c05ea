//===- Telling.h - what only tells of results -------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H
#define MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace moa::onf {

/// The arrays that a part of a program reads, and those that it writes.
struct ReadAndWritten {
  llvm::DenseSet<mlir::Value> read, written;
};

/// Whether each part is unneeded: of all that it writes neither `isRoot` is nor what parts read or
/// write that are needed.
llvm::SmallVector<bool> findUnneeded(llvm::ArrayRef<ReadAndWritten> parts,
                                     llvm::function_ref<bool(mlir::Value)> isRoot);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H
