//===- Temporaries.h - arrays of the workspace ------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H
#define MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::onf {

/// Returns the name of a state in the specification, or else the acc's own name.
llvm::StringRef nameOf(AccOp acc);
mlir::Type elementOf(AccOp acc);
/// Returns the element type of a temporary that holds values of `type`, or null if none can.
mlir::Type storedType(mlir::Type type);

/// Adds a temporary to the kernel. Its name is `wish`, with a number appended if an array or symbol
/// has that name.
mlir::BlockArgument addTemporary(KernelOp kernel, llvm::StringRef wish, llvm::ArrayRef<SymExpr> shape,
                                 mlir::Type element, mlir::Location loc);

/// Stores a value at one index per axis, in the array's type for it (`storedType`).
void storeValue(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::BlockArgument array,
                mlir::ValueRange indices);
/// Loads a value of this type that `storeValue` has stored.
mlir::Value loadValue(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, mlir::BlockArgument array,
                      mlir::ValueRange indices);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H
