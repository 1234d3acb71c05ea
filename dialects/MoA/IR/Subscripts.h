//===- Subscripts.h - the text of subscripts and reductions -----*- C++ -*-===//
//
// The location of a ψ says, beside the place of the operation, how each of its
// indices was written and what the index variables are called there; that of a reduction
// how it was written. These are parts of the location and not of the operation, so that
// equal operations remain equal.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H
#define MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace moa {

/// An index as it was written: its text, which may be empty, its place, and the index by
/// which that was reached, if its array is itself read at one.
struct Written {
  llvm::StringRef text;
  mlir::Location place;
  mlir::LocationAttr from;
};

/// The location `place` of a ψ with one entry per index, each null or a location that
/// makeWritten made, and with the names of the axes of its result, some of them empty.
mlir::Location withSubscripts(mlir::Location place, llvm::ArrayRef<mlir::LocationAttr> subscripts,
                              llvm::ArrayRef<llvm::StringRef> names = {});
mlir::Location withoutSubscripts(mlir::Location place);
/// Without them, and without the name of a definition.
mlir::Location getBarePlace(mlir::Location place);

/// Those of a location; none if it has none.
llvm::SmallVector<mlir::LocationAttr> getSubscripts(mlir::Location place);
llvm::SmallVector<llvm::StringRef> getAxisNames(mlir::Location place);

/// The place of an operation with its text, of one that no definition names.
mlir::Location withText(mlir::Location place, llvm::StringRef text);
/// The text of such a place, or nothing.
llvm::StringRef getText(mlir::Location place);

mlir::LocationAttr makeWritten(mlir::MLIRContext *context, llvm::StringRef text,
                               mlir::Location place);
/// The index `written` of an array that is reached by the index `from`.
mlir::LocationAttr reachedFrom(mlir::LocationAttr written, mlir::LocationAttr from);
Written readWritten(mlir::LocationAttr written);

} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_SUBSCRIPTS_H
