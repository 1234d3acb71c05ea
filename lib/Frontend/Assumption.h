//===- Assumption.h - the clause 'assume' -----------------------*- C++ -*-===//
#ifndef MOA_FRONTEND_ASSUMPTION_H
#define MOA_FRONTEND_ASSUMPTION_H

#include "lib/Frontend/Signature.h"

namespace moa::frontend {

/// The text of an assumption as kernels carry it: a predicate over the symbols, the
/// scalar parameters and elements of the parameters, with the names of index variables
/// in brackets in front. An index variable stands for every index of an axis, so it
/// has no bound and is a subscript of its own somewhere.
mlir::FailureOr<std::string> assumptionText(const Expr &expr, const Signature &signature,
                                            const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_ASSUMPTION_H
