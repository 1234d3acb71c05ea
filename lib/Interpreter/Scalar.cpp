//===- Scalar.cpp - scalar operations on float64 and integers -------------===//
#include "lib/Interpreter/Scalar.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/UserMonoid.h"
#include "lib/Support/HalfFloat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

//===----------------------------------------------------------------------===//
// Forms and conversions
//===----------------------------------------------------------------------===//

Form Form::of(Type type) {
  if (isa<FloatType>(type))
    return Form{0};
  return Form{isa<IndexType>(type) ? 64u : type.getIntOrFloatBitWidth()};
}

int64_t moa::interp::wrap(int64_t value, unsigned width) {
  if (width >= 64 || width == 0)
    return value;
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
  if (width == 1 || !(low >> (width - 1)))
    return static_cast<int64_t>(low);
  return static_cast<int64_t>(low | ~((uint64_t(1) << width) - 1));
}

/// Truncates toward zero. Saturates; NaN gives 0.
static int64_t truncated(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  unsigned bits = isSigned ? width - 1 : width;
  double limit = std::ldexp(1.0, bits);
  if (value >= limit) {
    if (isSigned)
      return static_cast<int64_t>((uint64_t(1) << bits) - 1);
    return wrap(-1, width);
  }
  if (value <= (isSigned ? -limit : 0.0))
    return isSigned ? static_cast<int64_t>(~((uint64_t(1) << bits) - 1)) : 0;
  if (!isSigned)
    return wrap(static_cast<int64_t>(static_cast<uint64_t>(value)), width);
  return static_cast<int64_t>(value);
}

Cell moa::interp::fromDouble(double value, Form form) {
  if (form.isFloat())
    return ofFloat(value);
  if (form.width == 1)
    return ofInt(value != 0);
  return ofInt(wrap(truncated(value, 64, true), form.width));
}

std::optional<Cell> moa::interp::ofAttribute(Attribute attr) {
  if (auto value = dyn_cast<FloatAttr>(attr))
    return ofFloat(value.getValueAsDouble());
  if (auto value = dyn_cast<IntegerAttr>(attr)) {
    const APInt &bits = value.getValue();
    return ofInt(bits.getBitWidth() == 1 ? bits.getZExtValue() : bits.getSExtValue());
  }
  return std::nullopt;
}

Rounding::Rounding(Type type) {
  auto format = dyn_cast<FloatType>(type);
  if (!format || format.isF64())
    return;
  if (format.isF32()) {
    kind = Kind::single;
    return;
  }
  if (isa<Float8E4M3FNType>(type)) {
    kind = Kind::float8;
    return;
  }
  kind = Kind::other;
  const llvm::fltSemantics &semantics = format.getFloatSemantics();
  precision = llvm::APFloat::semanticsPrecision(semantics);
  lowest = llvm::APFloat::semanticsMinExponent(semantics);
  highest = llvm::APFloat::semanticsMaxExponent(semantics);
  limit = std::ldexp(1.0, highest + 1);
}

/// The type has no infinity: the largest number takes its place.
double Rounding::toEightBits(double value) { return fromFloat8(toFloat8(value)); }

double moa::roundTo(double value, Type type) { return Rounding(type)(value); }

double moa::roundAtRandom(double value, FloatType type, uint64_t hash) {
  if (type.isF64() || !std::isfinite(value) || value == 0)
    return value;
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  int precision = llvm::APFloat::semanticsPrecision(semantics);
  int exponent = std::max(std::ilogb(value), llvm::APFloat::semanticsMinExponent(semantics));
  int quantum = exponent - (precision - 1);
  double threshold = double(hash >> 11) * 0x1p-53; // in [0, 1)
  // Exact scaling by a power of two.
  double rounded = std::ldexp(std::floor(std::ldexp(value, -quantum) + threshold), quantum);
  if (std::fabs(rounded) >= std::ldexp(1.0, llvm::APFloat::semanticsMaxExponent(semantics) + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static uint64_t unsignedOf(int64_t value, unsigned width) {
  return width >= 64 ? value : value & ((uint64_t(1) << width) - 1);
}

static bool compareFloats(int predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (static_cast<P>(predicate)) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  return false;
}

static bool compareIntegers(int predicate, int64_t a, int64_t b, unsigned width) {
  using P = arith::CmpIPredicate;
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  if (width == 1) { // the set bit of a boolean is its sign
    a = -a;
    b = -b;
  }
  switch (static_cast<P>(predicate)) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  return false;
}

static double performUnary(Code code, double x) {
  switch (code) {
  case Code::NegF:
    return -x;
  case Code::AbsF:
    return std::fabs(x);
  case Code::Exp:
    return std::exp(x);
  case Code::Exp2:
    return std::exp2(x);
  case Code::ExpM1:
    return std::expm1(x);
  case Code::Log:
    return std::log(x);
  case Code::Log2:
    return std::log2(x);
  case Code::Log10:
    return std::log10(x);
  case Code::Log1p:
    return std::log1p(x);
  case Code::Sqrt:
    return std::sqrt(x);
  case Code::RSqrt:
    return 1 / std::sqrt(x);
  case Code::Cbrt:
    return std::cbrt(x);
  case Code::Tanh:
    return std::tanh(x);
  case Code::Sinh:
    return std::sinh(x);
  case Code::Cosh:
    return std::cosh(x);
  case Code::Sin:
    return std::sin(x);
  case Code::Cos:
    return std::cos(x);
  case Code::Tan:
    return std::tan(x);
  case Code::Atan:
    return std::atan(x);
  case Code::Erf:
    return std::erf(x);
  case Code::Erfc:
    return std::erfc(x);
  case Code::Floor:
    return std::floor(x);
  case Code::Ceil:
    return std::ceil(x);
  case Code::Round:
    return std::round(x);
  case Code::RoundEven:
    return std::nearbyint(x);
  case Code::TruncF:
    return std::trunc(x);
  default:
    return x;
  }
}

/// Returns the remainder with the sign of the divisor.
static double floatModulo(double x, double y) {
  double rest = std::fmod(x, y);
  return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
}

static double performBinary(Code code, double x, double y) {
  switch (code) {
  case Code::AddF:
    return x + y;
  case Code::SubF:
    return x - y;
  case Code::MulF:
    return x * y;
  case Code::DivF:
    return x / y;
  case Code::RemF:
    return std::fmod(x, y);
  case Code::ModF:
    return floatModulo(x, y);
  case Code::MaximumF:
    return maximum(x, y);
  case Code::MinimumF:
    return minimum(x, y);
  case Code::MaxNumF:
    return std::fmax(x, y);
  case Code::MinNumF:
    return std::fmin(x, y);
  case Code::PowF:
    return std::pow(x, y);
  case Code::Atan2:
    return std::atan2(x, y);
  default:
    return std::copysign(x, y);
  }
}

/// Quotients and remainders; the divisor is not 0 and the quotient fits.
static int64_t divide(Code code, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  int64_t q = a / b, r = a % b;
  bool inexact = r != 0, opposite = (a < 0) != (b < 0);
  switch (code) {
  case Code::DivSI:
    return q;
  case Code::FloorDivSI:
    return inexact && opposite ? q - 1 : q;
  case Code::CeilDivSI:
    return inexact && !opposite ? q + 1 : q;
  case Code::RemSI:
    return r;
  case Code::ModI:
    return inexact && opposite ? r + b : r;
  case Code::DivUI:
    return ua / ub;
  case Code::CeilDivUI:
    return ua / ub + (ua % ub != 0);
  default:
    return ua % ub;
  }
}

static const char *performDivision(const Instr &instr, const Cell *v, Cell &result) {
  int64_t a = v[0].i, b = v[1].i;
  if (b == 0)
    return "division by zero";
  bool isUnsigned = instr.code == Code::DivUI || instr.code == Code::CeilDivUI || instr.code == Code::RemUI;
  if (b == -1 && !isUnsigned && instr.width > 1) {
    bool quotient = instr.code == Code::DivSI || instr.code == Code::FloorDivSI || instr.code == Code::CeilDivSI;
    result.i = quotient ? wrap(0 - static_cast<uint64_t>(a), instr.width) : 0;
    return nullptr;
  }
  result.i = wrap(divide(instr.code, a, b, instr.width), instr.width);
  return nullptr;
}

static const char *performShift(const Instr &instr, const Cell *v, Cell &result) {
  uint64_t amount = unsignedOf(v[1].i, instr.width);
  if (amount >= instr.width)
    return "a shift by the width of its type or more";
  if (instr.code == Code::ShlI)
    result.i = static_cast<uint64_t>(v[0].i) << amount;
  else if (instr.code == Code::ShrSI)
    result.i = v[0].i >> amount;
  else
    result.i = unsignedOf(v[0].i, instr.width) >> amount;
  result.i = wrap(result.i, instr.width);
  return nullptr;
}

static int64_t performInteger(Code code, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = a, ub = b;
  switch (code) {
  case Code::NegI:
    return 0 - ua;
  case Code::AbsI:
    return a < 0 ? 0 - ua : ua;
  case Code::NotI:
    return ~ua;
  case Code::AddI:
    return ua + ub;
  case Code::SubI:
    return ua - ub;
  case Code::MulI:
    return ua * ub;
  case Code::AndI:
    return ua & ub;
  case Code::OrI:
    return ua | ub;
  case Code::XorI:
    return ua ^ ub;
  case Code::MaxSI:
    return width == 1 ? (a & b) : std::max(a, b);
  case Code::MinSI:
    return width == 1 ? (a | b) : std::min(a, b);
  case Code::MaxUI:
    return unsignedOf(a, width) > unsignedOf(b, width) ? a : b;
  default:
    return unsignedOf(a, width) < unsignedOf(b, width) ? a : b;
  }
}

static void performConversion(const Instr &instr, Cell v, Cell &result) {
  switch (instr.code) {
  case Code::RoundF:
    result.f = instr.round ? roundTo(v.f, instr.round) : v.f;
    return;
  case Code::SIToF:
    result.f = static_cast<double>(instr.width == 1 ? -v.i : v.i);
    break;
  case Code::UIToF:
    result.f = static_cast<double>(unsignedOf(v.i, instr.width));
    break;
  case Code::FToSI:
    result.i = truncated(v.f, instr.resultWidth, true);
    return;
  case Code::FToUI:
    result.i = truncated(v.f, instr.resultWidth, false);
    return;
  case Code::FToBool:
    result.i = v.f != 0;
    return;
  case Code::SignedToI:
    result.i = wrap(instr.width == 1 ? -v.i : v.i, instr.resultWidth);
    return;
  case Code::UnsignedToI:
    result.i = wrap(unsignedOf(v.i, instr.width), instr.resultWidth);
    return;
  default:
    result.i = v.i != 0;
    return;
  }
  if (instr.round)
    result.f = roundTo(result.f, instr.round);
}

const char *moa::interp::perform(const Instr &instr, const Cell *v, Cell &result) {
  Code code = instr.code;
  switch (code) {
  case Code::Id:
    result = v[0];
    return nullptr;
  case Code::AddF:
    result.f = v[0].f + v[1].f;
    return nullptr;
  case Code::MulF:
    result.f = v[0].f * v[1].f;
    return nullptr;
  case Code::PiecewiseExp2:
    result.f = onf::PiecewiseExp2Op::evaluate(instr.times * v[0].f + instr.plus);
    return nullptr;
  case Code::Fma:
    result.f = std::fma(v[0].f, v[1].f, v[2].f);
    return nullptr;
  case Code::CmpF:
    result.i = compareFloats(instr.predicate, v[0].f, v[1].f);
    return nullptr;
  case Code::CmpI:
    result.i = compareIntegers(instr.predicate, v[0].i, v[1].i, instr.width);
    return nullptr;
  default:
    break;
  }
  if (code < Code::AddF)
    result.f = performUnary(code, v[0].f);
  else if (code < Code::Fma)
    result.f = performBinary(code, v[0].f, v[1].f);
  else if (code >= Code::DivSI && code <= Code::ModI)
    return performDivision(instr, v, result);
  else if (code >= Code::ShlI && code <= Code::ShrUI)
    return performShift(instr, v, result);
  else if (code >= Code::RoundF)
    performConversion(instr, v[0], result);
  else
    result.i = wrap(performInteger(code, v[0].i, code <= Code::NotI ? 0 : v[1].i, instr.width), instr.width);
  return nullptr;
}

bool moa::interp::isRounded(Code code) {
  switch (code) {
  case Code::Id:
  case Code::NegF:
  case Code::AbsF:
  case Code::Floor:
  case Code::Ceil:
  case Code::Round:
  case Code::RoundEven:
  case Code::TruncF:
  case Code::MaximumF:
  case Code::MinimumF:
  case Code::MaxNumF:
  case Code::MinNumF:
  case Code::CopySign:
  case Code::CmpF:
    return false;
  default:
    return code < Code::NegI;
  }
}

//===----------------------------------------------------------------------===//
// Monoids
//===----------------------------------------------------------------------===//

Cell moa::interp::combine(Monoid monoid, Form form, Cell x, Cell y) {
  if (form.isFloat())
    return ofFloat(applyMonoid(monoid, x.f, y.f));
  switch (monoid) {
  case Monoid::add:
    return ofInt(wrap(uint64_t(x.i) + uint64_t(y.i), form.width));
  case Monoid::mul:
    return ofInt(wrap(uint64_t(x.i) * uint64_t(y.i), form.width));
  case Monoid::max:
    return ofInt(std::max(x.i, y.i));
  case Monoid::min:
    return ofInt(std::min(x.i, y.i));
  case Monoid::and_:
    return ofInt(x.i & y.i);
  case Monoid::or_:
    return ofInt(x.i | y.i);
  case Monoid::user:
    break;
  }
  llvm_unreachable("not a named monoid");
}

Cell moa::interp::identityOf(Monoid monoid, Type type) { return *ofAttribute(getIdentity(monoid, type)); }

Accumulator::Accumulator(Monoid monoid, Type type, const UserMonoid *user)
    : monoid(monoid), form(Form::of(type)), state(user ? user->getIdentity() : identityOf(monoid, type)),
      sums(monoid == Monoid::add && form.isFloat()), user(user) {}

void Accumulator::addByUser(Cell x) {
  if (const char *why = user->apply(state, x, state))
    fault = why;
}

Cell Accumulator::get() const {
  if (!sums || !std::isfinite(state.f) || !std::isfinite(rest))
    return state;
  return ofFloat(state.f + rest);
}
