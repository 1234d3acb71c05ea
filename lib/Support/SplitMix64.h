//===- SplitMix64.h - reproducible random numbers ---------------*- C++ -*-===//
#ifndef MOA_SUPPORT_SPLITMIX64_H
#define MOA_SUPPORT_SPLITMIX64_H

#include <cstdint>

namespace moa {

/// The generator SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014). Its numbers do not
/// depend on the machine or its libraries.
struct SplitMix64 {
  uint64_t state;

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, n), for n > 0.
  int64_t below(uint64_t n) { return int64_t(next() % n); }
  /// Returns a number in (0, 1].
  double uniform() { return double((next() >> 11) + 1) * 0x1p-53; }
};

} // namespace moa

#endif // MOA_SUPPORT_SPLITMIX64_H
