//===- HalfFloat.cpp - floats of 16 and 8 bits in memory ------------------===//

#include "lib/Support/HalfFloat.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>

namespace moa {

/// Rounds to a float with `mantissa` fraction bits and the given exponent bias.
static uint16_t roundTo(double value, int mantissa, int bias) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinity = uint16_t((2 * bias + 1) << mantissa);
  if (std::isnan(value))
    return sign | infinity | uint16_t(1 << (mantissa - 1));
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return sign | infinity;
  int exponent = int(llvm::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
  if (exponent < 1 - bias) // subnormal: the spacing of the smallest normals
    exponent = 1 - bias;
  if (exponent > bias)
    return sign | infinity;
  // Units in the last place: an integer below 2^(mantissa + 1), or equal to it if rounding carries.
  // The carry yields the encoding of the next exponent. A float64 in [2^(52 + n), 2^(53 + n)) has
  // units of 2^n, so the sum rounds to them.
  double shift = llvm::bit_cast<double>(uint64_t(exponent - mantissa + 52 + 1023) << 52);
  auto units = uint32_t(llvm::bit_cast<uint64_t>(magnitude + shift) - llvm::bit_cast<uint64_t>(shift));
  uint32_t bits = units + (uint32_t(exponent + bias - 1) << mantissa);
  return sign | uint16_t(bits < infinity ? bits : infinity);
}

uint16_t toBFloat16(double value) { return roundTo(value, 7, 127); }
uint16_t toFloat16(double value) { return roundTo(value, 10, 15); }

uint8_t toFloat8(double value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return sign | 0x7f;
  // Units in the last place; a carry yields the encoding of the next exponent.
  double magnitude = std::min(std::fabs(value), 448.0);
  int exponent = magnitude == 0 ? -6 : std::max(std::ilogb(magnitude), -6);
  auto units = uint32_t(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  return sign | uint8_t(units + (uint32_t(exponent + 6) << 3));
}

double fromFloat8(uint8_t bits) {
  double sign = bits & 0x80 ? -1 : 1;
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f)
    return NAN;
  return sign * (exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9));
}

double fromBFloat16(uint16_t bits) { return llvm::bit_cast<float>(uint32_t(bits) << 16); }

double fromFloat16(uint16_t bits) {
  double sign = bits & 0x8000 ? -1 : 1;
  if ((bits & 0x7c00) == 0x7c00)
    return bits & 1023 ? NAN : sign * INFINITY;
  // Exponent and fraction move to their places in a float64. The factor corrects the exponent's
  // bias, also for subnormal numbers.
  return sign * (llvm::bit_cast<double>(uint64_t(bits & 0x7fff) << 42) * 0x1p1008);
}

} // namespace moa
