//===- RealRange.cpp - intervals of computed reals ------------------------===//
#include "lib/Validation/RealRange.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Widens an interval for rounding and approximation: a bound moves by 2^-10 of itself plus 2^-14.
static RealRange widened(RealRange x) {
  return {x.low - std::abs(x.low) * 0x1p-10 - 0x1p-14, x.high + std::abs(x.high) * 0x1p-10 + 0x1p-14};
}

static double timesBound(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static RealRange times(RealRange x, RealRange y) {
  double parts[] = {timesBound(x.low, y.low), timesBound(x.low, y.high), timesBound(x.high, y.low),
                    timesBound(x.high, y.high)};
  return {*std::min_element(parts, parts + 4), *std::max_element(parts, parts + 4)};
}

RealRange validation::rangeOfInteger(Term term) {
  RealRange any;
  switch (term->kind) {
  case TermKind::Number:
    return {double(term->value), double(term->value)};
  case TermKind::Symbol:
  case TermKind::Index:
    return {0, INFINITY};
  case TermKind::Sum: {
    RealRange sum{double(term->value), double(term->value)};
    for (auto [part, coefficient] : llvm::zip_equal(term->operands, term->coefficients)) {
      RealRange x = times(rangeOfInteger(part), {double(coefficient), double(coefficient)});
      sum.low += x.low, sum.high += x.high;
    }
    return sum;
  }
  case TermKind::Select: {
    RealRange a = rangeOfInteger(term->operands[1]), b = rangeOfInteger(term->operands[2]);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  case TermKind::Scalar: {
    if (term->name != "min" && term->name != "max")
      return any;
    RealRange a = rangeOfInteger(term->operands[0]), b = rangeOfInteger(term->operands[1]);
    return term->name == "min" ? RealRange{std::min(a.low, b.low), std::min(a.high, b.high)}
                               : RealRange{std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  default:
    return any;
  }
}

RealRange validation::rangeOfReal(Term term) {
  RealRange any;
  if (term->is(TermKind::Constant)) {
    double value = cast<FloatAttr>(term->attribute).getValueAsDouble();
    return std::isnan(value) ? any : RealRange{value, value};
  }
  if (!term->is(TermKind::Scalar))
    return any;
  StringRef name = term->name;
  if (name == "sitofp")
    return widened(rangeOfInteger(term->operands[0]));
  SmallVector<RealRange> x;
  for (Term operand : term->operands)
    x.push_back(isa<FloatType>(operand->type) ? rangeOfReal(operand) : any);
  if (name == "cast")
    return widened(x[0]);
  if (name == "addf")
    return widened({x[0].low + x[1].low, x[0].high + x[1].high});
  if (name == "subf")
    return widened({x[0].low - x[1].high, x[0].high - x[1].low});
  if (name == "mulf")
    return widened(times(x[0], x[1]));
  if (name == "divf" && x[1].low == x[1].high && x[1].low != 0)
    return widened(times(x[0], {1 / x[1].low, 1 / x[1].low}));
  if (name == "remf") {
    double most = std::max(std::abs(x[1].low), std::abs(x[1].high)); // the remainder is closer to 0 than both operands
    return {std::min(0.0, std::max(x[0].low, -most)), std::max(0.0, std::min(x[0].high, most))};
  }
  if (name == "maxf")
    return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
  if (name == "minf")
    return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
  if (name == "log2" && x[0].low > 0)
    return widened({std::log2(x[0].low), std::log2(x[0].high)});
  if (name == "log" && x[0].low > 0)
    return widened({std::log(x[0].low), std::log(x[0].high)});
  if (name == "exp" || name == "exp2" || name == "absf" || name == "sqrt")
    return {0, INFINITY};
  if (name == "sin" || name == "cos" || name == "tanh" || name == "erf")
    return widened({-1, 1});
  if (name == "atan2")
    return widened({-M_PI, M_PI});
  if (name == "floor" || name == "ceil")
    return {std::floor(x[0].low), std::ceil(x[0].high)};
  return any;
}
