//===- Bf16Dots.h - what a CPU has for sums of products of bf16 -*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H
#define MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H

namespace moa {

/// Sums of products of bf16 in f32 that a machine has instructions for: of two for each f32 of a
/// vector (`vdpbf16ps` of AVX512-BF16), or of tiles of 16 by 32 and 32 by 16 (`tdpbf16ps` of
/// AMX-BF16), which vectors of 512 bits go with. Subnormal operands, products and sums count as 0
/// in both (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and
/// TDPBF16PS).
enum class Bf16Dots { none, pairs, tiles };

} // namespace moa

#endif // MOA_CONVERSION_ONFTOVECTOR_BF16DOTS_H
