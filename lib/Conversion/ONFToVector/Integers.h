//===- Integers.h - floats that are integers --------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H
#define MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H

#include "mlir/IR/Value.h"

namespace moa::rows {

/// Returns the i8 element that a float holds after conversions without rounding, or null. Floats of
/// 16 bits and more hold every integer up to 2^7.
mlir::Value getIntegerOf(mlir::Value value);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H
