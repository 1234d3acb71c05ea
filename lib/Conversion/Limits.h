//===- Limits.h - how large the code of one element may become --*- C++ -*-===//
#ifndef MOA_CONVERSION_LIMITS_H
#define MOA_CONVERSION_LIMITS_H

#include <algorithm>
#include <cstddef>

namespace moa {

/// Most scalar operations per element of a result; with more, machine code takes minutes to
/// compile.
inline constexpr size_t kMostOps = 10000;

/// The same limit if operations in branches count, of which a run takes one side.
inline constexpr size_t kMostWritten = 10 * kMostOps;

/// Returns `most`, or eight operations for each one of the source if that is more.
inline size_t mostOps(size_t source, size_t most = kMostOps) { return std::max(most, 8 * source); }

} // namespace moa

#endif // MOA_CONVERSION_LIMITS_H
