//===- Bf16Dots.h - bf16 dot-product instructions of a CPU ------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H
#define MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H

namespace moa {

/// The machine's instructions for sums of bf16 products in f32:
///   pairs   two products per f32 lane of a vector (`vdpbf16ps`, AVX512-BF16);
///   tiles   a 16×32 tile times a 32×16 tile (`tdpbf16ps`, AMX-BF16), next to 512-bit vectors.
/// Both treat subnormal operands, products and sums as 0 (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2, VDPBF16PS and TDPBF16PS).
enum class Bf16Dots { none, pairs, tiles };

} // namespace moa

#endif // MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H
