//===- Work.cpp - how many terms a value takes -----------------------------===//
//
// Counts of terms decide which values are stored. Unknown sizes count as 4,096. The work of a
// reduction over j is
//
//   W(⊕_j F) = n · (1 + Σ W(r)) + Σ W(s),
//
// with n indices j, r the outermost reductions in F that depend on j, and s those that do not. It
// is the number of terms evaluated for one element if nothing is stored.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

/// Returns the number of terms that are evaluated for one element of a value.
double Derivation::workOf(Expr value) {
  if (auto known = work.find(value); known != work.end())
    return known->second;
  double terms = 0;
  if (value->kind == ExprKind::Reduce) {
    const double indices = nominal(value->extent.getValue());
    llvm::SetVector<Expr> inner;
    for (Expr operand : value->operands)
      for (Expr each : outermostReductions(operand))
        inner.insert(each);
    terms = indices;
    for (Expr each : inner)
      terms += workOf(each) * (each->dependsOn(-int64_t(value->height)) ? indices : 1);
  } else {
    for (Expr each : outermostReductions(value))
      terms += workOf(each);
  }
  return work[value] = terms;
}
