//===- RealRange.h - intervals of computed reals ----------------*- C++ -*-===//
#ifndef MOA_VALIDATION_REALRANGE_H
#define MOA_VALIDATION_REALRANGE_H

#include "lib/Validation/Term.h"
#include <cmath>

namespace moa::validation {

/// low ≤ x ≤ high for every value of a term that is not NaN (Lemma 13).
struct RealRange {
  double low = -INFINITY, high = INFINITY;
};

RealRange rangeOfReal(Term term);

/// The same for an integer.
RealRange rangeOfInteger(Term term);

} // namespace moa::validation

#endif // MOA_VALIDATION_REALRANGE_H
