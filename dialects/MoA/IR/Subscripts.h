//===- Subscripts.h - source text of subscripts and reductions --*- C++ -*-===//
//
// The location of a ψ holds, next to its source position, the text of each index and the names of
// the index variables. The location of a reduction holds its text. This information is part of the
// location and not of the operation, so that equal operations stay equal.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H
#define MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace moa {

/// An index in the source: its text (may be empty), its position, and, if the indexed array is
/// itself read through an index, that outer index.
struct SourceIndex {
  llvm::StringRef text;
  mlir::Location place;
  mlir::LocationAttr from;
};

/// Adds to `place`, the location of a ψ, one entry per index and the names of the axes of the
/// result. An entry is null or made by makeSourceIndex; a name may be empty.
mlir::Location withSubscripts(mlir::Location place, llvm::ArrayRef<mlir::LocationAttr> subscripts,
                              llvm::ArrayRef<llvm::StringRef> names = {});
mlir::Location withoutSubscripts(mlir::Location place);
/// Also removes the name of the definition.
mlir::Location getBarePlace(mlir::Location place);

/// Returns the entries or names that withSubscripts added; empty if there are none.
llvm::SmallVector<mlir::LocationAttr> getSubscripts(mlir::Location place);
llvm::SmallVector<llvm::StringRef> getAxisNames(mlir::Location place);

/// Adds the source text of an operation to its location. The location must have no NameLoc.
mlir::Location withText(mlir::Location place, llvm::StringRef text);
/// Returns the text that withText added, or "".
llvm::StringRef getText(mlir::Location place);

mlir::LocationAttr makeSourceIndex(mlir::MLIRContext *context, llvm::StringRef text, mlir::Location place);
/// Returns the index `written` of an array that is itself read through the index `from`.
mlir::LocationAttr reachedFrom(mlir::LocationAttr written, mlir::LocationAttr from);
SourceIndex readSourceIndex(mlir::LocationAttr written);

} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H
