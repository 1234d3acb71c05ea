//===- ScalarBuilder.cpp - scalar functions as arith and math ops ---------===//
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

static Value intConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, value));
}

static Value compare(OpBuilder &b, Location loc, ScalarFn fn, Value x, Value y) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr std::tuple<ScalarFn, F, I> predicates[] = {
      {ScalarFn::eq, F::OEQ, I::eq},  {ScalarFn::ne, F::UNE, I::ne},  {ScalarFn::lt, F::OLT, I::slt},
      {ScalarFn::le, F::OLE, I::sle}, {ScalarFn::gt, F::OGT, I::sgt}, {ScalarFn::ge, F::OGE, I::sge}};
  const auto *found = llvm::find_if(predicates, [&](const auto &entry) { return std::get<ScalarFn>(entry) == fn; });
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, std::get<F>(*found), x, y);
  return arith::CmpIOp::create(b, loc, std::get<I>(*found), x, y);
}

/// Builds the remainder with the sign of the divisor. The exact remainder has the sign of the
/// dividend, so the divisor is added if the signs differ.
static Value floatModulo(OpBuilder &b, Location loc, Value x, Value y) {
  Value rest = arith::RemFOp::create(b, loc, x, y);
  Value zero = arith::ConstantOp::create(b, loc, FloatAttr::get(x.getType(), 0.0));
  Value inexact = compare(b, loc, ScalarFn::ne, rest, zero);
  Value divisorSign = compare(b, loc, ScalarFn::lt, y, zero);
  Value restSign = compare(b, loc, ScalarFn::lt, rest, zero);
  Value opposite = compare(b, loc, ScalarFn::ne, divisorSign, restSign);
  Value corrects = arith::AndIOp::create(b, loc, inexact, opposite);
  Value moved = arith::AddFOp::create(b, loc, rest, y);
  return arith::SelectOp::create(b, loc, corrects, moved, rest);
}

/// Builds functions of floats, or the float form of functions of any type; null for others.
static Value buildFloat(OpBuilder &b, Location loc, ScalarFn fn, ValueRange v) {
  switch (fn) {
  case ScalarFn::neg:
    return arith::NegFOp::create(b, loc, v[0]);
  case ScalarFn::abs:
    return math::AbsFOp::create(b, loc, v[0]);
  case ScalarFn::exp:
    return math::ExpOp::create(b, loc, v[0]);
  case ScalarFn::exp2:
    return math::Exp2Op::create(b, loc, v[0]);
  case ScalarFn::log:
    return math::LogOp::create(b, loc, v[0]);
  case ScalarFn::log2:
    return math::Log2Op::create(b, loc, v[0]);
  case ScalarFn::sqrt:
    return math::SqrtOp::create(b, loc, v[0]);
  case ScalarFn::rsqrt:
    return math::RsqrtOp::create(b, loc, v[0]);
  case ScalarFn::tanh:
    return math::TanhOp::create(b, loc, v[0]);
  case ScalarFn::sin:
    return math::SinOp::create(b, loc, v[0]);
  case ScalarFn::cos:
    return math::CosOp::create(b, loc, v[0]);
  case ScalarFn::erf:
    return math::ErfOp::create(b, loc, v[0]);
  case ScalarFn::floor:
    return math::FloorOp::create(b, loc, v[0]);
  case ScalarFn::ceil:
    return math::CeilOp::create(b, loc, v[0]);
  case ScalarFn::add:
    return arith::AddFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::sub:
    return arith::SubFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::mul:
    return arith::MulFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::div:
    return arith::DivFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::min:
    return arith::MinimumFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::max:
    return arith::MaximumFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::pow:
    return math::PowFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::atan2:
    return math::Atan2Op::create(b, loc, v[0], v[1]);
  case ScalarFn::fmod:
    return arith::RemFOp::create(b, loc, v[0], v[1]);
  case ScalarFn::mod:
    return floatModulo(b, loc, v[0], v[1]);
  default:
    return Value();
  }
}

static Value buildInteger(OpBuilder &b, Location loc, ScalarFn fn, ValueRange v) {
  Type type = v[0].getType();
  switch (fn) {
  case ScalarFn::neg:
    return arith::SubIOp::create(b, loc, intConstant(b, loc, type, 0), v[0]);
  case ScalarFn::abs: {
    Value zero = intConstant(b, loc, type, 0);
    Value negated = arith::SubIOp::create(b, loc, zero, v[0]);
    return arith::MaxSIOp::create(b, loc, v[0], negated);
  }
  case ScalarFn::not_:
    return arith::XOrIOp::create(b, loc, v[0], intConstant(b, loc, type, -1));
  case ScalarFn::add:
    return arith::AddIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::sub:
    return arith::SubIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::mul:
    return arith::MulIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::div:
    return arith::FloorDivSIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::mod: {
    Value q = arith::FloorDivSIOp::create(b, loc, v[0], v[1]);
    q = arith::MulIOp::create(b, loc, v[1], q);
    return arith::SubIOp::create(b, loc, v[0], q);
  }
  case ScalarFn::min:
    return arith::MinSIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::max:
    return arith::MaxSIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::and_:
    return arith::AndIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::or_:
    return arith::OrIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::xor_:
    return arith::XOrIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::shl:
    return arith::ShLIOp::create(b, loc, v[0], v[1]);
  case ScalarFn::shr:
    return arith::ShRSIOp::create(b, loc, v[0], v[1]);
  default:
    return Value();
  }
}

Value moa::detail::buildScalarFn(OpBuilder &b, Location loc, ScalarFn fn, ValueRange v) {
  if (fn == ScalarFn::id)
    return v[0];
  if (fn == ScalarFn::select)
    return arith::SelectOp::create(b, loc, v[0], v[1], v[2]);
  if (fn >= ScalarFn::eq && fn <= ScalarFn::ge)
    return compare(b, loc, fn, v[0], v[1]);
  if (isa<FloatType>(v[0].getType()))
    return buildFloat(b, loc, fn, v);
  return buildInteger(b, loc, fn, v);
}

/// Converts a float to a float, integer or boolean.
static Value castFromFloat(OpBuilder &b, Location loc, Value value, Type type) {
  Type from = value.getType();
  if (auto to = dyn_cast<FloatType>(type)) {
    unsigned w0 = from.getIntOrFloatBitWidth(), w1 = to.getWidth();
    if (w0 < w1)
      return arith::ExtFOp::create(b, loc, type, value);
    if (w0 > w1)
      return arith::TruncFOp::create(b, loc, type, value);
    // Conversions between bf16 and f16 go through f32.
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
    return arith::TruncFOp::create(b, loc, type, wide);
  }
  if (type.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, loc, FloatAttr::get(from, 0.0));
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value, zero);
  }
  if (type.isIndex()) {
    Value wide = arith::FPToSIOp::create(b, loc, b.getI64Type(), value);
    return arith::IndexCastOp::create(b, loc, type, wide);
  }
  return arith::FPToSIOp::create(b, loc, type, value);
}

static Value castFromInteger(OpBuilder &b, Location loc, Value value, Type type) {
  Type from = value.getType();
  bool isBool = from.isInteger(1);
  if (isa<FloatType>(type)) {
    if (from.isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return isBool ? arith::UIToFPOp::create(b, loc, type, value).getResult()
                  : arith::SIToFPOp::create(b, loc, type, value).getResult();
  }
  if (type.isInteger(1))
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, intConstant(b, loc, from, 0));
  if (from.isIndex() || type.isIndex())
    return isBool ? arith::IndexCastUIOp::create(b, loc, type, value).getResult()
                  : arith::IndexCastOp::create(b, loc, type, value).getResult();
  unsigned w0 = from.getIntOrFloatBitWidth(), w1 = type.getIntOrFloatBitWidth();
  if (w0 > w1)
    return arith::TruncIOp::create(b, loc, type, value);
  return isBool ? arith::ExtUIOp::create(b, loc, type, value).getResult()
                : arith::ExtSIOp::create(b, loc, type, value).getResult();
}

Value moa::detail::buildCast(OpBuilder &b, Location loc, Value value, Type type, bool round) {
  Type from = value.getType();
  if (from == type)
    return value;
  Value result = isa<FloatType>(from) ? castFromFloat(b, loc, value, type) : castFromInteger(b, loc, value, type);
  bool rounds = isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp>(result.getDefiningOp());
  if (round && rounds)
    result.getDefiningOp()->setAttr("moa.round", b.getUnitAttr());
  return result;
}
