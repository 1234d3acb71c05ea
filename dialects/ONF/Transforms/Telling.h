//===- Telling.h - parts that only serve error reports ----------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H
#define MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace moa::onf {

struct ReadAndWritten {
  llvm::DenseSet<mlir::Value> read, written;
};

/// For each part, returns true if it is unneeded: it writes no root, and nothing that a needed part
/// reads or writes.
llvm::SmallVector<bool> findUnneeded(llvm::ArrayRef<ReadAndWritten> parts,
                                     llvm::function_ref<bool(mlir::Value)> isRoot);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_TELLING_H
