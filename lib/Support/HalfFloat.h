//===- HalfFloat.h - floats of 16 and 8 bits in memory ----------*- C++ -*-===//
#ifndef MOA_SUPPORT_HALFFLOAT_H
#define MOA_SUPPORT_HALFFLOAT_H

#include <cstdint>

namespace moa {

/// The nearest 16-bit float, ties to even, from a float64 in one rounding.
uint16_t toBFloat16(double value);
uint16_t toFloat16(double value);
double fromBFloat16(uint16_t bits);
double fromFloat16(uint16_t bits);
/// The nearest float of 8 bits, of which 4 are the exponent's (E4M3FN: no infinities, the largest
/// is 448, which takes the place of all above it; P. Micikevicius et al., FP8 formats for deep
/// learning, 2022).
uint8_t toFloat8(double value);
double fromFloat8(uint8_t bits);

} // namespace moa

#endif // MOA_SUPPORT_HALFFLOAT_H
