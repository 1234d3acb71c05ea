//===- Integers.h - floats that are integers --------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H
#define MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H

#include "mlir/IR/Value.h"

namespace moa::rows {

/// Returns the element of i8 that a float is, by conversions of which none rounds it, or null:
/// floats of 16 bits and more hold every integer up to 2^7.
mlir::Value getIntegerOf(mlir::Value value);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_INTEGERS_H
