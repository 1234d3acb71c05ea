//===- MonoidClaims.h - what a monoid of the user claims, tried -*- C++ -*-===//
#ifndef MOA_INTERPRETER_MONOIDCLAIMS_H
#define MOA_INTERPRETER_MONOIDCLAIMS_H

#include "mlir/IR/BuiltinOps.h"

namespace moa {

/// Tries on small values that every `moa.monoid` of the module has the identity
/// that it names, commutes and associates (floats up to rounding). Reports the
/// first counterexample as an error where it is among values that are not
/// negative, and as a warning otherwise: the monoid may be meant for those only.
mlir::LogicalResult checkMonoidClaims(mlir::ModuleOp module);

} // namespace moa

#endif // MOA_INTERPRETER_MONOIDCLAIMS_H
