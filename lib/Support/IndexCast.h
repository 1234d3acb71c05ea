//===- IndexCast.h - integers as indices and back ---------------*- C++ -*-===//
#ifndef MOA_SUPPORT_INDEXCAST_H
#define MOA_SUPPORT_INDEXCAST_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace moa {

/// Converts `value` to `type`; one of the two is index (or a vector of it). Narrowing truncates an
/// i64, because canonicalisation folds an arith.index_cast from index to iN and back to nothing.
inline mlir::Value castIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type type) {
  using namespace mlir;
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (integer && integer.getWidth() < 64) {
    auto vector = dyn_cast<VectorType>(type);
    Type wide = vector ? Type(vector.clone(b.getI64Type())) : b.getI64Type();
    value = arith::IndexCastOp::create(b, loc, wide, value);
    return arith::TruncIOp::create(b, loc, type, value);
  }
  return arith::IndexCastOp::create(b, loc, type, value);
}

} // namespace moa

#endif // MOA_SUPPORT_INDEXCAST_H
