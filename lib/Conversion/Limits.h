//===- Limits.h - how large the code of one element may become --*- C++ -*-===//
#ifndef MOA_CONVERSION_LIMITS_H
#define MOA_CONVERSION_LIMITS_H

#include <algorithm>
#include <cstddef>

namespace moa {

/// Scalar operations that an element of a result may take: beyond them the machine's code
/// takes minutes.
inline constexpr size_t kMostOps = 10000;

/// The same with what branches repeat, of which a run takes one side.
inline constexpr size_t kMostWritten = 10 * kMostOps;

/// As many, or eight for each of those that it is made of.
inline size_t mostOps(size_t source, size_t most = kMostOps) { return std::max(most, 8 * source); }

} // namespace moa

#endif // MOA_CONVERSION_LIMITS_H
