//===- Delivered.cpp - errors in the measures of tolerances ---------------===//

#include "Delivered.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <limits>

namespace moa {

/// Returns difference / size, with 0 / 0 = 0.
static double divide(double difference, double size) {
  if (difference == 0)
    return 0;
  double quotient = difference / size;
  return std::isnan(quotient) ? std::numeric_limits<double>::infinity() : quotient;
}

namespace {
/// Keeps the largest error and its index.
class Largest {
public:
  void add(double error, const std::vector<int64_t> &where) {
    if (isEmpty || error > result.error)
      result = {error, where};
    isEmpty = false;
  }
  DeliveredError get() const { return result; }

private:
  DeliveredError result;
  bool isEmpty = true;
};

struct Squares {
  double difference = 0, norm = 0;
};
} // namespace

/// Returns true for finite elements; NaNs and infinities are compared separately.
static bool isComparable(const ComparedElements &elements, size_t k) {
  return std::isfinite(elements.found[k]) && std::isfinite(elements.expected[k]);
}

DeliveredError getRelativeError(const ComparedElements &elements, double least) {
  std::map<std::vector<int64_t>, Squares> sums;
  for (size_t k = 0; k < elements.indices.size(); ++k) {
    if (!isComparable(elements, k))
      continue;
    std::vector<int64_t> leading = elements.indices[k];
    leading.resize(leading.size() - getErrorAxes(leading.size()));
    Squares &sum = sums[leading];
    double difference = elements.found[k] - elements.expected[k];
    if (std::fabs(difference) > least)
      sum.difference += difference * difference;
    sum.norm += elements.expected[k] * elements.expected[k];
  }
  Largest largest;
  for (const auto &[leading, sum] : sums)
    largest.add(std::sqrt(divide(sum.difference, sum.norm)), leading);
  return largest.get();
}

DeliveredError getComponentwiseError(const ComparedElements &elements, const std::vector<double> &magnitudes,
                                     double least) {
  Largest largest;
  for (size_t k = 0; k < elements.indices.size(); ++k) {
    if (!isComparable(elements, k))
      continue;
    double difference = std::fabs(elements.found[k] - elements.expected[k]);
    largest.add(difference <= least ? 0 : divide(difference, magnitudes[k]), elements.indices[k]);
  }
  return largest.get();
}

double getLeastPositive(const std::string &elementType) {
  return llvm::StringSwitch<double>(elementType)
      .Case("f64", 0x1p-1074)
      .Case("f32", 0x1p-149)
      .Case("bf16", 0x1p-133)
      .Case("f16", 0x1p-24)
      .Default(0);
}

} // namespace moa
