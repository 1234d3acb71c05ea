//===- RoundingErrorFunctions.cpp - errors of functions and choices -------===//
#include "lib/Accuracy/Bounds/RoundingErrorRules.h"
#include <cmath>

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Lemma E6. The lowering may scale the argument by log₂ e. Shared errors may come from a running
/// maximum, as in the online softmax; each rescale then adds an error (Lemma E8).
ErrorValue ErrorRules::exponential(ErrorValue x, double base, const ErrorExpr &rescales, const std::string &what) {
  ErrorExpr factor(base == 2 ? 0.69314718055994531 : 1);
  bool isCascade = !x.exponential && !x.shared.empty();
  ErrorValue result;
  result.exponential = isCascade;
  if (isCascade)
    combineShared(result.shared, x.shared, factor.getConstant().value_or(1));
  else
    x = collapse(std::move(x));
  merge(result, x);
  ErrorExpr ofArgument = ErrorExpr(3) * arithmetic * factor * x.magnitude;
  result.relative = factor * absorb(distanceWithoutShared(x), result.facts) + exponentialRounding + ofArgument;
  if (isCascade) {
    ErrorExpr ofArguments = ErrorExpr(4) * arithmetic * factor * x.magnitude;
    result.relative += rescales * (exponentialRounding + ErrorExpr(2) * arithmetic) + ofArguments;
  }
  result.magnitude = x.nonpositive ? ErrorExpr(1) : pool.exp(factor * x.magnitude);
  result.nonnegative = true;
  addAbsolute(result, pool.tiny());
  limitMagnitude(result);
  return result;
}

/// Lemma E6: the absolute error of log x is the relative error of x.
ErrorValue ErrorRules::logarithm(ErrorValue x, double factor, const std::string &what) {
  x = collapse(toRelative(std::move(x), what));
  ErrorValue result;
  merge(result, x);
  result.absolute = ErrorExpr(factor) * absorb(x.relative, result.facts);
  result.magnitude = ErrorExpr(factor) * pool.max(x.magnitude, reciprocal(x.least, what));
  result.distance = result.absolute;
  return rounded(std::move(result), functionRounding);
}

ErrorValue ErrorRules::squareRoot(ErrorValue x, const std::string &what) {
  // An argument of unknown sign may be computed as a negative number.
  if (!x.nonnegative && !x.isExact())
    x = toRelative(std::move(x), what);
  x = x.tight ? collapse(std::move(x)) : toAbsolute(std::move(x));
  ErrorValue result;
  merge(result, x);
  // |√(r·x + β) − √(r·x)| ≤ √|β|
  result.relative = ErrorExpr(0.5) * x.relative;
  if (!x.absolute.isZero())
    result.absolute = pool.sqrt(x.absolute);
  result.magnitude = pool.sqrt(x.magnitude);
  if (!x.least.isZero())
    result.least = pool.sqrt(x.least);
  result.nonnegative = true;
  return rounded(std::move(result), ErrorExpr(4) * arithmetic);
}

ErrorValue ErrorRules::reciprocalRoot(ErrorValue x, const std::string &what) {
  x = collapse(toRelative(std::move(x), what));
  ErrorValue result;
  merge(result, x);
  result.relative = ErrorExpr(0.5) * x.relative;
  result.magnitude = reciprocal(pool.sqrt(x.least), what);
  result.nonnegative = true;
  return rounded(std::move(result), ErrorExpr(4) * arithmetic);
}

ErrorValue ErrorRules::power(ErrorValue x, double exponent, const std::string &what) {
  if (exponent == 2)
    return rounded(multiply(x, x, /*isSquare=*/true), functionRounding);
  if (exponent < 0 || !x.absolute.isZero() || !x.tight)
    x = toRelative(std::move(x), what);
  x = collapse(std::move(x));
  ErrorValue result;
  merge(result, x);
  result.relative = ErrorExpr(std::abs(exponent)) * x.relative;
  bool isWhole = exponent == std::floor(exponent) && exponent > 0 && exponent <= 8;
  if (isWhole) {
    result.magnitude = ErrorExpr(1);
    for (int k = 0; k < exponent; ++k)
      result.magnitude = result.magnitude * x.magnitude;
  } else {
    result.magnitude = pool.unknown("no bound on a power of " + what);
  }
  result.nonnegative = x.nonnegative || (isWhole && std::fmod(exponent, 2) == 0);
  return rounded(std::move(result), functionRounding);
}

/// Lemma E7.
ErrorValue ErrorRules::bounded(ErrorValue x, double slope, double bound, bool odd, const ErrorExpr &rounding) {
  if (!odd || !x.tight)
    x = toAbsolute(std::move(x));
  ErrorExpr moved = ErrorExpr(slope) * distance(x);
  x = collapse(std::move(x));
  ErrorValue result;
  merge(result, x);
  result.relative = x.relative;
  result.absolute = ErrorExpr(slope) * x.absolute;
  result.distance = moved;
  result.magnitude = ErrorExpr(bound);
  result.nonnegative = odd && x.nonnegative;
  return rounded(std::move(result), rounding);
}

//===----------------------------------------------------------------------===//
// Extremes and choices
//===----------------------------------------------------------------------===//

ErrorValue ErrorRules::extreme(ErrorValue x, ErrorValue y) {
  // With an exact 0, a factor r is kept: max(r·x, 0) = r·max(x, 0).
  auto isZero = [](const ErrorValue &value) { return value.constant == 0.0; };
  bool keeps =
      x.tight && y.tight && (x.nonnegative || isZero(x) || isZero(y)) && (y.nonnegative || isZero(x) || isZero(y));
  x = keeps ? collapse(std::move(x)) : toAbsolute(std::move(x));
  y = keeps ? collapse(std::move(y)) : toAbsolute(std::move(y));
  ErrorValue result;
  merge(result, x);
  merge(result, y);
  result.relative = pool.max(x.relative, y.relative);
  result.absolute = pool.max(x.absolute, y.absolute);
  result.magnitude = pool.max(x.magnitude, y.magnitude);
  return result;
}

ErrorValue ErrorRules::reduceExtreme(ErrorValue x) {
  bool keeps = x.tight && x.nonnegative;
  if (keeps && x.exponential)
    return x;
  return keeps ? collapse(std::move(x)) : toAbsolute(std::move(x));
}

ErrorValue ErrorRules::step(ErrorValue x) {
  if (!x.isExact()) {
    x = toAbsolute(std::move(x));
    x.absolute += ErrorExpr(1);
  }
  x.magnitude += ErrorExpr(1);
  x.least = ErrorExpr();
  x.constant.reset();
  x.nonpositive = x.nonnegative = false;
  return x;
}

ErrorValue ErrorRules::select(ErrorValue x, ErrorValue y) {
  if (!haveSameShared(x, y)) {
    x = collapse(std::move(x));
    y = collapse(std::move(y));
  }
  ErrorValue result;
  result.exponential = x.exponential;
  result.shared = x.shared;
  if ((x.distance || y.distance) && !x.exponential) {
    ErrorExpr ofY = distanceWithoutShared(y), ofX = distanceWithoutShared(x);
    result.distance = pool.max(ofX, ofY);
  }
  result.relative = pool.max(x.relative, y.relative);
  result.absolute = pool.max(x.absolute, y.absolute);
  result.magnitude = pool.max(x.magnitude, y.magnitude);
  result.least = x.least.isZero() || y.least.isZero() ? ErrorExpr() : pool.min(x.least, y.least);
  result.tight = x.tight && y.tight;
  result.nonnegative = x.nonnegative && y.nonnegative;
  result.nonpositive = x.nonpositive && y.nonpositive;
  merge(result, x);
  merge(result, y);
  return result;
}

ErrorValue ErrorRules::reduceProduct(ErrorValue x, const ErrorExpr &extent, const std::string &what) {
  if (!x.absolute.isZero())
    x = toRelative(std::move(x), what);
  x = collapse(std::move(x));
  ErrorValue result;
  merge(result, x);
  result.relative = extent * (x.relative + arithmetic);
  result.tight = x.tight;
  result.nonnegative = x.nonnegative;
  result.magnitude = pool.unknown("no bound on the product over " + what);
  result.facts.insert(fact({"nothing underflows in the product over " + what, std::nullopt, 0}));
  limitMagnitude(result);
  return result;
}

/// A rounding of the specification: x and x̂ may round to different neighbours.
ErrorValue ErrorRules::round(ErrorValue x, const OperandFormat &format) {
  if (auto constant = x.magnitude.getConstant(); format.limit < overflow && !(constant && *constant <= format.limit))
    x.facts.insert(fact({"a magnitude stays below the overflow threshold", x.magnitude, format.limit}));
  if (x.isExact()) {
    x.magnitude = ErrorExpr(1 + format.relative) * x.magnitude + ErrorExpr(format.absolute);
    x.least = ErrorExpr();
    x.constant.reset();
    return x;
  }
  double unit = -std::log1p(-format.relative) * (1 + 1e-9);
  x.least = ErrorExpr();
  x = rounded(std::move(x), ErrorExpr(2 * unit));
  addAbsolute(x, ErrorExpr(2 * format.absolute));
  x.distance.reset();
  x.magnitude = ErrorExpr(1 + format.relative) * x.magnitude + ErrorExpr(format.absolute);
  return x;
}
