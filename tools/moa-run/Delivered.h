//===- Delivered.h - errors in the measures of tolerances -------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_DELIVERED_H
#define MOA_TOOLS_MOA_RUN_DELIVERED_H

#include "moa/Compiler.h"

namespace moa {

/// The elements of a result that are compared.
struct ComparedElements {
  std::vector<std::vector<int64_t>> indices;
  std::vector<double> found, expected;
};

/// The error of a result in the measure of its tolerance (docs/Spec.md, Def 25), the
/// largest over what is compared.
struct DeliveredError {
  double error = 0;
  /// Where it is: an index of the axes that a relative error is per, else an element's.
  std::vector<int64_t> worst;

  bool operator<=(const AllowedError &allowed) const { return error <= allowed.epsilon; }
};

/// The axes at the end of a result of this rank that its relative error runs over: the last
/// two, or as many as there are.
inline size_t getErrorAxes(size_t rank) { return rank < 2 ? rank : 2; }

/// The relative L2 error per index of the leading axes. Differences of at most `least`, as below,
/// are none.
DeliveredError getRelativeError(const ComparedElements &elements, double least);

/// The error of the elements relative to their magnitudes. A difference of at most
/// `least`, the least positive number of the element type, is none.
DeliveredError getComponentwiseError(const ComparedElements &elements,
                                     const std::vector<double> &magnitudes, double least);

/// The least positive number of an element type.
double getLeastPositive(const std::string &elementType);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_DELIVERED_H
