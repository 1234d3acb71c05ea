//===- HalfFloat.h - 16-bit floats in memory --------------------*- C++ -*-===//
#ifndef MOA_SUPPORT_HALFFLOAT_H
#define MOA_SUPPORT_HALFFLOAT_H

#include <cstdint>

namespace moa {

/// The nearest 16-bit float, ties to even, from a float64 in one rounding.
uint16_t toBFloat16(double value);
uint16_t toFloat16(double value);
double fromBFloat16(uint16_t bits);
double fromFloat16(uint16_t bits);

} // namespace moa

#endif // MOA_SUPPORT_HALFFLOAT_H
