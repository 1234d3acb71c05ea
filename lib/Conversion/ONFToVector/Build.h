//===- Build.h - shorthands for building ops --------------------*- C++ -*-===//
//
// All functions accept scalars and vectors. Constants fold as they are built. Addresses are LLVM
// pointers with offsets in elements.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_BUILD_H
#define MOA_CONVERSION_ONFTOVECTOR_BUILD_H

#include "dialects/MoA/IR/Monoid.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace moa::rows {

/// A builder and a location, with shorthands for index arithmetic.
struct Build {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value index(int64_t value) const { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  mlir::Value truth(bool value) const { return mlir::arith::ConstantOp::create(b, loc, b.getBoolAttr(value)); }
  mlir::Value add(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::AddIOp>(loc, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::SubIOp>(loc, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::MulIOp>(loc, x, y); }
  mlir::Value mul(mlir::Value x, int64_t y) const { return mul(x, index(y)); }
  mlir::Value add(mlir::Value x, int64_t y) const { return add(x, index(y)); }
  mlir::Value min(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::MinSIOp>(loc, x, y); }
  mlir::Value max(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::MaxSIOp>(loc, x, y); }
  /// ⌈x / y⌉ for x ≥ 0.
  mlir::Value ceilDiv(mlir::Value x, int64_t y) const {
    mlir::Value divisor = index(y);
    return div(add(x, y - 1), divisor);
  }
  /// x / y and x mod y for x ≥ 0.
  mlir::Value div(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::DivUIOp>(loc, x, y); }
  mlir::Value rem(mlir::Value x, mlir::Value y) const { return b.createOrFold<mlir::arith::RemUIOp>(loc, x, y); }
  mlir::Value div(mlir::Value x, int64_t y) const { return div(x, index(y)); }
  mlir::Value rem(mlir::Value x, int64_t y) const { return rem(x, index(y)); }
  mlir::Value cmp(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y) const {
    return b.createOrFold<mlir::arith::CmpIOp>(loc, predicate, x, y);
  }
  mlir::Value slt(mlir::Value x, mlir::Value y) const { return cmp(mlir::arith::CmpIPredicate::slt, x, y); }
  mlir::Value sle(mlir::Value x, mlir::Value y) const { return cmp(mlir::arith::CmpIPredicate::sle, x, y); }
  mlir::Value eq(mlir::Value x, mlir::Value y) const { return cmp(mlir::arith::CmpIPredicate::eq, x, y); }
  /// Emits x ≠ y. Floats compare unordered, so NaN differs from everything.
  mlir::Value differs(mlir::Value x, mlir::Value y) const {
    if (llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x)))
      return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::UNE, x, y);
    return cmp(mlir::arith::CmpIPredicate::ne, x, y);
  }
  /// Returns the conjunction, where a null operand means true.
  mlir::Value both(mlir::Value x, mlir::Value y) const {
    if (!x || !y)
      return x ? x : y;
    return b.createOrFold<mlir::arith::AndIOp>(loc, x, y);
  }
  mlir::Value either(mlir::Value x, mlir::Value y) const {
    if (!x || !y)
      return x ? x : y;
    return b.createOrFold<mlir::arith::OrIOp>(loc, x, y);
  }
  /// Returns `ok` and that the reference `now` differs from its singular value. A null `ok` means true.
  mlir::Value bothRegular(mlir::Value ok, mlir::Value now, mlir::Attribute singular) const {
    auto value = llvm::dyn_cast<mlir::FloatAttr>(singular);
    if (!value || value.getValue().isNaN() || value.getType() != mlir::getElementTypeOrSelf(now))
      return ok;
    return both(ok, differs(now, constant(now.getType(), value)));
  }
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y) const {
    return b.createOrFold<mlir::arith::SelectOp>(loc, c, x, y);
  }
  /// Returns the vector with `x` in each lane. Returns vectors unchanged.
  mlir::Value splat(mlir::Value x, int64_t lanes) const {
    if (llvm::isa<mlir::VectorType>(x.getType()))
      return x;
    auto type = mlir::VectorType::get({lanes}, x.getType());
    return mlir::vector::BroadcastOp::create(b, loc, type, x);
  }
  /// Returns a constant of a scalar type or, for a vector type, the constant in each lane.
  mlir::Value constant(mlir::Type type, mlir::TypedAttr value) const {
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
      return mlir::arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(vector, mlir::Attribute(value)));
    return mlir::arith::ConstantOp::create(b, loc, value);
  }
  mlir::Value identity(Monoid monoid, mlir::Type type) const {
    return constant(type, getIdentity(monoid, mlir::getElementTypeOrSelf(type)));
  }
  /// Emits x ⊕ y. The sign of a zero that is a max or min of zeros is unspecified.
  mlir::Value combine(Monoid monoid, mlir::Value x, mlir::Value y) const {
    bool isFloat = llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x));
    auto nsz = mlir::arith::FastMathFlags::nsz;
    if (isFloat && monoid == Monoid::max)
      return mlir::arith::MaximumFOp::create(b, loc, x, y, nsz);
    if (isFloat && monoid == Monoid::min)
      return mlir::arith::MinimumFOp::create(b, loc, x, y, nsz);
    return buildMonoid(b, loc, monoid, x, y);
  }
  /// Returns sum + term, and `rest` plus the rounding error of this addition (Knuth's TwoSum). The
  /// rest becomes 0 if the error is NaN, because the sum is not finite.
  std::pair<mlir::Value, mlir::Value> addCompensated(mlir::Value sum, mlir::Value rest, mlir::Value term) const {
    auto plus = [&](mlir::Value x, mlir::Value y) { return combine(Monoid::add, x, y); };
    auto minus = [&](mlir::Value x, mlir::Value y) -> mlir::Value { return mlir::arith::SubFOp::create(b, loc, x, y); };
    mlir::Value total = plus(sum, term), added = minus(total, sum);
    mlir::Value lostOfTerm = minus(term, added), lostOfSum = minus(sum, minus(total, added));
    mlir::Value lost = plus(rest, plus(lostOfSum, lostOfTerm));
    mlir::Value zero = identity(Monoid::add, lost.getType());
    return {total, select(differs(lost, lost), zero, lost)};
  }
  mlir::Value i64(mlir::Value index) const {
    mlir::Type type = b.getI64Type();
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(index.getType()))
      type = vector.clone(type);
    return b.createOrFold<mlir::arith::IndexCastOp>(loc, type, index);
  }
  /// Returns the address of element `offset`, which is an index or a vector of indices.
  mlir::Value address(mlir::Type element, mlir::Value pointer, mlir::Value offset) const {
    mlir::Type type = mlir::LLVM::LLVMPointerType::get(b.getContext());
    if (auto vector = llvm::dyn_cast<mlir::VectorType>(offset.getType()))
      type = vector.clone(type);
    return mlir::LLVM::GEPOp::create(b, loc, type, element, pointer, mlir::ValueRange{i64(offset)});
  }
  mlir::Value load(mlir::Type type, mlir::Value pointer, unsigned align) const {
    return mlir::LLVM::LoadOp::create(b, loc, type, pointer, align);
  }
  void store(mlir::Value value, mlir::Value pointer, unsigned align) const {
    mlir::LLVM::StoreOp::create(b, loc, value, pointer, align);
  }
  /// Returns whether any lane of a boolean vector is true. Returns scalars unchanged.
  mlir::Value any(mlir::Value x) const {
    if (!llvm::isa<mlir::VectorType>(x.getType()))
      return x;
    return mlir::vector::ReductionOp::create(b, loc, mlir::vector::CombiningKind::OR, x);
  }
  mlir::Value all(mlir::Value x) const {
    if (!llvm::isa<mlir::VectorType>(x.getType()))
      return x;
    return mlir::vector::ReductionOp::create(b, loc, mlir::vector::CombiningKind::AND, x);
  }
};

/// Returns the memory type of an element: i64 for index, i8 for a boolean or an 8-bit float.
inline mlir::Type storageType(mlir::Type element) {
  if (element.isIndex())
    return mlir::IntegerType::get(element.getContext(), 64);
  if (element.isInteger(1) || llvm::isa<mlir::Float8E4M3FNType>(element))
    return mlir::IntegerType::get(element.getContext(), 8);
  return element;
}
/// Returns the type in which elements move: the storage type, with 16-bit floats as integers.
inline mlir::Type movedType(mlir::Type element) {
  mlir::Type storage = storageType(element);
  if (llvm::isa<mlir::FloatType>(storage) && storage.getIntOrFloatBitWidth() == 16)
    return mlir::IntegerType::get(storage.getContext(), 16);
  return storage;
}
inline int64_t storageBytes(mlir::Type element) { return storageType(element).getIntOrFloatBitWidth() / 8; }

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_BUILD_H
