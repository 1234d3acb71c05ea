//===- ReadModule.h - the text of a level ------------------------*- C++ -*-===//
#ifndef MOA_PIPELINES_READMODULE_H
#define MOA_PIPELINES_READMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace moa {

/// The module of a file NAME.mlir; null after an error, which says in the words of
/// docs/Dialects what the text lacks there, and which operation was meant.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef text, llvm::StringRef name,
                                             mlir::MLIRContext *context);

/// From here on, what MLIR says by itself in this context is in the words of docs/Dialects
/// for the handlers that are there already.
void addRewording(mlir::MLIRContext &context);

} // namespace moa

#endif // MOA_PIPELINES_READMODULE_H
