//===- Monoid.h - monoids and their declared laws ---------------*- C++ -*-===//
//
// All monoids are commutative, the user's by their claim. A second operation ⊗ distributes over a
// monoid's ⊕ when a ⊗ (x ⊕ y) = (a ⊗ x) ⊕ (a ⊗ y); the unit tests check every
// declared property on random values.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_MONOID_H
#define MOA_DIALECTS_MOA_IR_MONOID_H

#include "dialects/MoA/IR/MoA.h"

namespace moa {

/// The identity of the monoid in a type: 0, 1, −∞, +∞, true, false. Integer
/// max and min take the type's extreme values.
mlir::TypedAttr getIdentity(Monoid monoid, mlir::Type type);
/// The identity as a float64 value (booleans as 0 and 1).
double getIdentityValue(Monoid monoid);
/// x ⊕ y on float64 values.
double applyMonoid(Monoid monoid, double x, double y);
/// x ⊕ y as scalar IR (arith ops) on values of one type.
mlir::Value buildMonoid(mlir::OpBuilder &builder, mlir::Location loc, Monoid monoid, mlir::Value x,
                        mlir::Value y);
/// True for the named monoids of booleans.
inline bool isLogical(Monoid monoid) { return monoid == Monoid::and_ || monoid == Monoid::or_; }
/// Whether the monoid is one of the type: `and` and `or` of booleans, the
/// other named ones of numbers, the user's of any scalars.
bool isDefinedOn(Monoid monoid, mlir::Type type);
/// True if multiplication by any factor distributes over ⊕ (add).
bool mulDistributesOver(Monoid monoid);
/// True if multiplication by a non-negative factor distributes (add, max, min).
bool nonNegativeMulDistributesOver(Monoid monoid);
/// True if addition of a constant distributes over ⊕ (max, min).
bool addDistributesOver(Monoid monoid);

/// The `moa.monoid` that the reduction or state `op` names as its function; null
/// for a named monoid and where there is none of that name.
MonoidOp lookupMonoid(mlir::Operation *op);
/// C: exactly the monoid `user` has a function, a `moa.monoid` on `element`.
mlir::LogicalResult verifyMonoidUse(mlir::Operation *op, Monoid monoid,
                                    mlir::FlatSymbolRefAttr function, mlir::Type element,
                                    llvm::StringRef rule, mlir::SymbolTableCollection &symbols);
/// As getIdentity, of the monoid of `op`, the user's included.
mlir::TypedAttr getIdentityOf(mlir::Operation *op, Monoid monoid, mlir::Type type);

} // namespace moa

#endif // MOA_DIALECTS_MOA_IR_MONOID_H
