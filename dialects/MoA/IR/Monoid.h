//===- Monoid.h - monoids and their declared laws ---------------*- C++ -*-===//
//
// All monoids are commutative; for a user's monoid that is the user's claim. An operation ⊗
// distributes over ⊕ if a ⊗ (x ⊕ y) = (a ⊗ x) ⊕ (a ⊗ y). Unit tests check every declared property
// on random values.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_MONOID_H
#define MOA_DIALECTS_MOA_IR_MONOID_H

#include "dialects/MoA/IR/MoA.h"

namespace moa {

/// Returns the identity of the monoid in a type: 0, 1, −∞, +∞, true, false. Integer max and min
/// take the type's extreme values.
mlir::TypedAttr getIdentity(Monoid monoid, mlir::Type type);
/// Returns the identity as a float64 value (booleans as 0 and 1).
double getIdentityValue(Monoid monoid);
double applyMonoid(Monoid monoid, double x, double y);
/// Emits x ⊕ y in arith ops on two values of one type.
mlir::Value buildMonoid(mlir::OpBuilder &builder, mlir::Location loc, Monoid monoid, mlir::Value x, mlir::Value y);
/// Returns true for the named monoids of booleans.
inline bool isLogical(Monoid monoid) { return monoid == Monoid::and_ || monoid == Monoid::or_; }
/// Returns true if the monoid is defined on the type: `and` and `or` on booleans, the other named
/// monoids on numbers, a user's monoid on any scalar.
bool isDefinedOn(Monoid monoid, mlir::Type type);
/// Returns true if multiplication by any factor distributes over ⊕ (add).
bool mulDistributesOver(Monoid monoid);
/// Returns true if multiplication by a non-negative factor distributes (add, max, min).
bool nonNegativeMulDistributesOver(Monoid monoid);
/// Returns true if addition of a constant distributes over ⊕ (max, min).
bool addDistributesOver(Monoid monoid);

/// Returns the `moa.monoid` that the attribute `function` of a reduction or state names. Returns
/// null for a named monoid or an unknown name.
MonoidOp lookupMonoid(mlir::Operation *op);
/// Checks that exactly the monoid `user` has a `function`, and that it names a `moa.monoid` on
/// `element`. `rule` is the constraint number in the message.
mlir::LogicalResult verifyMonoidUse(mlir::Operation *op, Monoid monoid, mlir::FlatSymbolRefAttr function,
                                    mlir::Type element, llvm::StringRef rule, mlir::SymbolTableCollection &symbols);
/// Returns the identity of the monoid of `op`, which may be a user's.
mlir::TypedAttr getIdentityOf(mlir::Operation *op, Monoid monoid, mlir::Type type);

} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_MONOID_H
