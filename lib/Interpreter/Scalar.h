//===- Scalar.h - scalar operations on float64 and integers -----*- C++ -*-===//
#ifndef MOA_INTERPRETER_SCALAR_H
#define MOA_INTERPRETER_SCALAR_H

#include "dialects/MoA/IR/Monoid.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace moa::interp {

/// One scalar: a float64 or an integer. Integers of more than one bit are kept
/// sign-extended, booleans as 0 and 1.
union Cell {
  double f;
  int64_t i;
};
inline Cell ofFloat(double f) {
  Cell cell;
  cell.f = f;
  return cell;
}
inline Cell ofInt(int64_t i) {
  Cell cell;
  cell.i = i;
  return cell;
}

/// The representation of an element type's scalars: an integer width, or 0 for float64.
struct Form {
  unsigned width = 0;
  bool isFloat() const { return width == 0; }
  static Form of(mlir::Type type);
};

/// Truncates an integer to the width, sign-extended.
int64_t wrap(int64_t value, unsigned width);
Cell fromDouble(double value, Form form);
inline double toDouble(Cell cell, Form form) { return form.isFloat() ? cell.f : static_cast<double>(cell.i); }
/// Returns the value stored in an array of form `to`: an integer is truncated to the width of an
/// integer element.
inline double toStored(Cell cell, Form from, Form to) {
  if (from.isFloat() || to.isFloat())
    return toDouble(cell, from);
  return toDouble(ofInt(wrap(cell.i, to.width)), to);
}
std::optional<Cell> ofAttribute(mlir::Attribute attr);

/// Rounds floats to one type as roundTo does. The type is looked up once.
class Rounding {
public:
  explicit Rounding(mlir::Type type);
  double operator()(double value) const {
    switch (kind) {
    case Kind::none:
      return value;
    case Kind::single:
      return static_cast<float>(value);
    case Kind::float8:
      return toEightBits(value);
    case Kind::other:
      break;
    }
    return toPrecision(value);
  }

private:
  enum class Kind { none, single, float8, other };
  static double toEightBits(double value);
  double toPrecision(double value) const {
    int exponent = int(llvm::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;
    if (exponent > highest)
      return std::isnan(value) ? value : std::copysign(HUGE_VAL, value);
    // A float64 from 2^(52 + n) to twice that is a multiple of 2^n. So the sum rounds to the unit
    // in the last place of the type.
    int place = std::max(exponent, lowest) - (precision - 1);
    double shift = llvm::bit_cast<double>(uint64_t(place + 52 + 1023) << 52);
    double rounded = std::fabs(value) + shift - shift;
    return std::copysign(rounded >= limit ? HUGE_VAL : rounded, value);
  }

  Kind kind = Kind::none;
  int precision = 0, lowest = 0, highest = 0; // digits; exponents of normal numbers
  double limit = 0;                           // the power of two after the largest number
};

enum class Code {
  // floats
  Id,
  NegF,
  AbsF,
  Exp,
  Exp2,
  ExpM1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sqrt,
  RSqrt,
  Cbrt,
  Tanh,
  Sinh,
  Cosh,
  Sin,
  Cos,
  Tan,
  Atan,
  Erf,
  Erfc,
  Floor,
  Ceil,
  Round,
  RoundEven,
  TruncF,
  AddF,
  SubF,
  MulF,
  DivF,
  RemF,
  ModF,
  MaximumF,
  MinimumF,
  MaxNumF,
  MinNumF,
  PowF,
  Atan2,
  CopySign,
  Fma,
  PiecewiseExp2,
  CmpF,
  // integers
  NegI,
  AbsI,
  NotI,
  AddI,
  SubI,
  MulI,
  DivSI,
  DivUI,
  FloorDivSI,
  CeilDivSI,
  CeilDivUI,
  RemSI,
  RemUI,
  ModI,
  AndI,
  OrI,
  XorI,
  ShlI,
  ShrSI,
  ShrUI,
  MaxSI,
  MinSI,
  MaxUI,
  MinUI,
  CmpI,
  // conversions
  RoundF,
  SIToF,
  UIToF,
  FToSI,
  FToUI,
  FToBool,
  SignedToI,
  UnsignedToI,
  IToBool
};

struct Instr {
  Code code = Code::Id;
  unsigned width = 0;         // of the operands, where they are integers
  unsigned resultWidth = 0;   // of the result, where it is an integer
  int predicate = 0;          // arith's number, for comparisons
  mlir::Type round;           // RoundF, SIToF, UIToF: the float type to round to
  double times = 1, plus = 0; // PiecewiseExp2: of the exponent
};

/// Return NaN if an operand is NaN.
inline double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(a, b);
}
inline double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(a, b);
}

/// Performs the operation. Returns an error about the operands, or null.
const char *perform(const Instr &instr, const Cell *v, Cell &result);

/// Returns true if the operation gives a float that real hardware rounds.
bool isRounded(Code code);

/// Returns the operation of a point-wise function on an element type. Returns nothing for `select`,
/// which is no operation on cells.
std::optional<Instr> instrOf(ScalarFn fn, mlir::Type element);
/// Returns the conversion between element types; an `exact` one never rounds.
Instr castOf(mlir::Type from, mlir::Type to, bool exact);
/// Returns the operation of an arith or math op with one result, or nothing for other ops.
std::optional<Instr> instrOf(mlir::Operation *op);

Cell combine(Monoid monoid, Form form, Cell x, Cell y);
Cell identityOf(Monoid monoid, mlir::Type type);

class UserMonoid;

/// A reduction in progress; `user` is set for a user-defined monoid. Sums of floats are compensated
/// (Neumaier), so that the oracle's own rounding error does not grow with the range.
class Accumulator {
public:
  Accumulator(Monoid monoid, mlir::Type type, const UserMonoid *user = nullptr);
  void add(Cell x) {
    if (user)
      return addByUser(x);
    if (!sums) {
      state = combine(monoid, form, state, x);
      return;
    }
    double s = state.f, t = s + x.f;
    rest += std::abs(s) >= std::abs(x.f) ? (s - t) + x.f : (x.f - t) + s;
    state.f = t;
  }
  Cell get() const;
  /// Returns an error about the operands of the user's function, or null.
  const char *getFault() const { return fault; }

private:
  void addByUser(Cell x);
  Monoid monoid;
  Form form;
  Cell state;
  bool sums;
  double rest = 0;
  const UserMonoid *user;
  const char *fault = nullptr;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_SCALAR_H
