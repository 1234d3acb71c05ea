//===- HalfFloat.h - floats of 16 and 8 bits in memory ----------*- C++ -*-===//
#ifndef MOA_SUPPORT_HALFFLOAT_H
#define MOA_SUPPORT_HALFFLOAT_H

#include <cstdint>

namespace moa {

/// Round a float64 once to the nearest 16-bit float, ties to even.
uint16_t toBFloat16(double value);
uint16_t toFloat16(double value);
double fromBFloat16(uint16_t bits);
double fromFloat16(uint16_t bits);
/// Rounds to the nearest 8-bit float with 4 exponent bits (E4M3FN). The format has no infinities;
/// larger magnitudes saturate at 448 (P. Micikevicius et al., FP8 formats for deep learning, 2022).
uint8_t toFloat8(double value);
double fromFloat8(uint8_t bits);

} // namespace moa

#endif // MOA_SUPPORT_HALFFLOAT_H
