//===- ReadModule.h - the text of a level ------------------------*- C++ -*-===//
#ifndef MOA_PIPELINES_READMODULE_H
#define MOA_PIPELINES_READMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace moa {

/// Reads a file NAME.mlir. Returns null after an error, which uses the words of docs/Dialects and
/// proposes the operation that was meant.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef text, llvm::StringRef name, mlir::MLIRContext *context);

/// Rewords MLIR's own diagnostics in this context, in the words of docs/Dialects, for the handlers
/// that are registered already.
void addRewording(mlir::MLIRContext &context);

} // namespace moa

#endif // MOA_PIPELINES_READMODULE_H
