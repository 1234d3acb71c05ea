//===- Delivered.h - errors in the measures of tolerances -------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_DELIVERED_H
#define MOA_TOOLS_MOA_RUN_DELIVERED_H

#include "moa/Compiler.h"

namespace moa {

struct ComparedElements {
  std::vector<std::vector<int64_t>> indices;
  std::vector<double> found, expected;
};

/// The error of a result in the measure of its tolerance (docs/Spec.md, Def 25): the largest over
/// the compared elements.
struct DeliveredError {
  double error = 0;
  /// Its index: of the leading axes for a relative error, else of an element.
  std::vector<int64_t> worst;

  bool operator<=(const AllowedError &allowed) const { return error <= allowed.epsilon; }
};

/// Returns the number of trailing axes that the relative error of a result sums over: at most two.
inline size_t getErrorAxes(size_t rank) { return rank < 2 ? rank : 2; }

/// Returns the relative L2 error per index of the leading axes. Differences of at most `least`
/// count as 0.
DeliveredError getRelativeError(const ComparedElements &elements, double least);

/// Returns the error of the elements relative to their magnitudes. Differences of at most `least`,
/// the least positive number of the element type, count as 0.
DeliveredError getComponentwiseError(const ComparedElements &elements, const std::vector<double> &magnitudes,
                                     double least);

double getLeastPositive(const std::string &elementType);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_DELIVERED_H
