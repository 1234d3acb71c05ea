//===- RealRange.h - intervals of computed reals ----------------*- C++ -*-===//
#ifndef MOA_VALIDATION_REALRANGE_H
#define MOA_VALIDATION_REALRANGE_H

#include "lib/Validation/Term.h"
#include <cmath>

namespace moa::validation {

/// An interval low ≤ x ≤ high that holds for every value of a term except NaN (Lemma 13).
struct RealRange {
  double low = -INFINITY, high = INFINITY;
};

RealRange rangeOfReal(Term term);

/// Returns the interval of an integer.
RealRange rangeOfInteger(Term term);

} // namespace moa::validation

#endif // MOA_VALIDATION_REALRANGE_H
