//===- Assumption.h - the clause 'assume' -----------------------*- C++ -*-===//
#ifndef MOA_FRONTEND_ASSUMPTION_H
#define MOA_FRONTEND_ASSUMPTION_H

#include "lib/Frontend/Signature.h"

namespace moa::frontend {

/// Returns the text of an assumption for the kernel's attributes: a predicate over the symbols, the
/// scalar parameters and elements of parameters. The names of index variables precede it in
/// brackets. They are universally quantified: each has no bound and must be a whole subscript
/// somewhere.
mlir::FailureOr<std::string> assumptionText(const Expr &expr, const Signature &signature, const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_ASSUMPTION_H
