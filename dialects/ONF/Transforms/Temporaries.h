//===- Temporaries.h - arrays of the workspace --------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H
#define MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::onf {

/// What the specification calls a state, or the kind of the state.
llvm::StringRef nameOf(AccOp acc);
/// The elements of a state: those of its array, or its own type.
mlir::Type elementOf(AccOp acc);
/// The elements of a temporary that holds values of a type; null for none.
mlir::Type storedType(mlir::Type type);

/// A further temporary of the kernel; its name is `wish`, with a number behind it if there is such
/// an array or symbol.
mlir::BlockArgument addTemporary(KernelOp kernel, llvm::StringRef wish,
                                 llvm::ArrayRef<SymExpr> shape, mlir::Type element,
                                 mlir::Location loc);
/// The strides of an array's axes, as coefficients of its indices.
mlir::ArrayAttr stridesOf(KernelOp kernel, mlir::BlockArgument array);

/// Stores a value at one index per axis, as the type that the array has for it (`storedType`).
void storeValue(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel, mlir::Value value,
                mlir::BlockArgument array, mlir::ValueRange indices);
/// Loads what `storeValue` has stored of this type.
mlir::Value loadValue(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel, mlir::Type type,
                      mlir::BlockArgument array, mlir::ValueRange indices);

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_TEMPORARIES_H
