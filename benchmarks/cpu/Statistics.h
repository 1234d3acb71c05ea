//===- Statistics.h - medians and spreads of a few samples ------*- C++ -*-===//
#ifndef MOA_BENCHMARKS_CPU_STATISTICS_H
#define MOA_BENCHMARKS_CPU_STATISTICS_H

#include <algorithm>
#include <cmath>
#include <vector>

namespace moa::bench {

/// The value below which a fraction of the samples lies, interpolated.
inline double quantile(std::vector<double> samples, double fraction) {
  if (samples.empty())
    return std::nan("");
  std::sort(samples.begin(), samples.end());
  double place = fraction * (samples.size() - 1);
  size_t below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, samples.size() - 1);
  double part = place - below;
  return samples[below] * (1 - part) + samples[above] * part;
}

inline double median(const std::vector<double> &samples) { return quantile(samples, 0.5); }

/// first[k] / second[k].
inline std::vector<double> ratios(const std::vector<double> &first, const std::vector<double> &second) {
  std::vector<double> result;
  for (size_t k = 0; k < std::min(first.size(), second.size()); ++k)
    result.push_back(first[k] / second[k]);
  return result;
}

} // namespace moa::bench

#endif // MOA_BENCHMARKS_CPU_STATISTICS_H
