//===- MonoidClaims.h - tests of user-defined monoids -----------*- C++ -*-===//
#ifndef MOA_INTERPRETER_MONOIDCLAIMS_H
#define MOA_INTERPRETER_MONOIDCLAIMS_H

#include "mlir/IR/BuiltinOps.h"

namespace moa {

/// Tests on small values that every `moa.monoid` of the module has the identity it names, commutes,
/// and associates (floats up to rounding). Reports the first counterexample. It is an error among
/// values that are not negative. Otherwise it is a warning, since the monoid may be meant only for
/// such values.
mlir::LogicalResult checkMonoidClaims(mlir::ModuleOp module);

} // namespace moa

#endif // MOA_INTERPRETER_MONOIDCLAIMS_H
