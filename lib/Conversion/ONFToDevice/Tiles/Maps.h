//===- Maps.h - scalar functions of the elements of tiles -------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_MAPS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_MAPS_H

#include "lib/Conversion/ONFToDevice/Tiles/Context.h"

namespace moa::tiles {

using MapBody = llvm::function_ref<Values(mlir::ValueRange, mlir::ValueRange)>;

/// Emits a map with a name for readers. The body gets the inputs' elements and the element's
/// indices. Maps over a tile take few registers: values of a row are computed once per row.
Values map(ScalarCode &code, llvm::StringRef name, mlir::ValueRange inputs, Over over,
           llvm::ArrayRef<mlir::Type> elements, MapBody body);
/// The same for kernels with registers for the addresses of all elements.
Values mapAtOnce(ScalarCode &code, llvm::StringRef name, mlir::ValueRange inputs, Over over,
                 llvm::ArrayRef<mlir::Type> elements, MapBody body);
/// Emits `body` for warps in which the condition holds for an element; others take `otherwise`.
Values ifAny(ScalarCode &code, mlir::Value condition, mlir::ValueRange otherwise, llvm::function_ref<Values()> body);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_MAPS_H
