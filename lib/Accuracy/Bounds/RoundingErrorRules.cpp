//===- RoundingErrorRules.cpp - errors of scalar operations ---------------===//
//
// Every rule names the lemma of docs/Accuracy/Bounds.md that it implements.
//
//===----------------------------------------------------------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorRules.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using Atom = ErrorExpr::Atom;

/// Limit on the relative error from underflow; above it the bound is ∞.
static constexpr double kAbsorbed = 0x1p-40;

//===----------------------------------------------------------------------===//
// Forms of an error
//===----------------------------------------------------------------------===//

void moa::combineShared(std::map<std::string, SharedError> &into, const std::map<std::string, SharedError> &from,
                        double factor) {
  for (const auto &[key, shared] : from) {
    auto [it, isNew] = into.emplace(key, shared);
    it->second.coefficient = (isNew ? 0 : it->second.coefficient) + factor * shared.coefficient;
    if (it->second.coefficient == 0)
      into.erase(it);
  }
}

bool moa::haveSameShared(const ErrorValue &x, const ErrorValue &y) {
  return x.exponential == y.exponential && x.shared.size() == y.shared.size() &&
         llvm::all_of(llvm::zip(x.shared, y.shared), [](const auto &pair) {
           const auto &[a, b] = pair;
           return a.first == b.first && a.second.coefficient == b.second.coefficient;
         });
}

void ErrorRules::merge(ErrorValue &into, const ErrorValue &from) {
  into.indices.insert(from.indices.begin(), from.indices.end());
  into.facts.insert(from.facts.begin(), from.facts.end());
  into.requirements.insert(into.requirements.end(), from.requirements.begin(), from.requirements.end());
}

unsigned ErrorRules::fact(ErrorFact fact) {
  auto it = llvm::find(facts, fact);
  if (it == facts.end())
    it = facts.insert(facts.end(), std::move(fact));
  return it - facts.begin();
}

ErrorValue ErrorRules::exact(const ErrorExpr &magnitude) const {
  ErrorValue x;
  x.magnitude = magnitude;
  return x;
}

ErrorValue ErrorRules::constant(double value) const {
  ErrorValue x;
  if (std::isfinite(value))
    x.magnitude = x.least = ErrorExpr(std::abs(value));
  else
    x.magnitude = pool.unknown("the constant is not finite");
  x.nonnegative = value >= 0;
  x.nonpositive = value <= 0;
  x.constant = value;
  return x;
}

ErrorValue ErrorRules::unknown(const std::string &reason) {
  ErrorValue x;
  x.magnitude = x.absolute = pool.unknown(reason);
  x.tight = false;
  return x;
}

ErrorExpr ErrorRules::width(const ErrorValue &x) const {
  ErrorExpr width;
  for (const auto &[key, shared] : x.shared)
    width += ErrorExpr(std::abs(shared.coefficient)) * shared.bound;
  return width;
}

/// Lemma E2: shared factors become relative errors, shared summands absolute ones.
ErrorValue ErrorRules::collapse(ErrorValue x) {
  if (x.shared.empty())
    return x;
  ErrorExpr extra = width(x);
  x.shared.clear();
  if (x.exponential) {
    x.exponential = false;
    x.distance.reset();
    x.relative += extra;
  } else {
    if (x.distance)
      *x.distance += extra;
    addAbsolute(x, extra);
    // Def 28: a shared error that is not under an exponential may be a factor of a moment.
    x.facts.insert(fact({"moments are taken about their mean, not from the first element "
                         "(--disable-rule=R6)",
                         std::nullopt, 0}));
  }
  return x;
}

void ErrorRules::addAbsolute(ErrorValue &x, const ErrorExpr &amount) {
  if (amount.isZero())
    return;
  // β + amount; with a shared factor C, the amount is divided by C.
  x.absolute += x.exponential ? amount * pool.exp(width(x)) : amount;
}

ErrorExpr ErrorRules::distance(const ErrorValue &value) {
  ErrorValue x = collapse(value);
  if (x.relative.isZero() && !x.distance)
    return x.absolute;
  ErrorExpr bound = pool.expm1(x.relative) * x.magnitude;
  if (!x.absolute.isZero())
    bound += pool.exp(x.relative) * x.absolute;
  return x.distance ? pool.min(*x.distance, bound) : bound;
}

ErrorExpr ErrorRules::distanceWithoutShared(ErrorValue x) {
  x.shared.clear();
  return distance(x);
}

ErrorValue ErrorRules::toAbsolute(ErrorValue x) {
  ErrorExpr bound = distance(x);
  x = collapse(std::move(x));
  x.relative = ErrorExpr();
  x.absolute = bound;
  x.distance.reset();
  x.tight = true;
  return x;
}

ErrorValue ErrorRules::makeShared(ErrorValue x, Operation *origin, const std::string &key) {
  SharedError shared;
  shared.coefficient = 1;
  shared.bound = absorb(distance(x), x.facts);
  shared.origin = origin;
  x.relative = x.absolute = ErrorExpr();
  x.distance.reset();
  x.exponential = false;
  x.shared.clear();
  x.shared[key] = shared;
  return x;
}

/// Lemma E1.
ErrorValue ErrorRules::rounded(ErrorValue x, const ErrorExpr &rounding) {
  // A sum of shared errors is rounded with the rest.
  ErrorExpr ofShared;
  if (!x.exponential) {
    ErrorExpr shared = width(x);
    ofShared = pool.expm1(rounding) * shared;
  }
  if (x.distance) {
    ErrorExpr underflow = pool.tiny(), ofMagnitude = pool.expm1(rounding) * x.magnitude;
    x.distance = pool.exp(rounding) * *x.distance + ofMagnitude + ofShared + underflow;
  }
  x.relative += rounding;
  addAbsolute(x, ofShared);
  addAbsolute(x, pool.tiny());
  limitMagnitude(x);
  return x;
}

/// Returns true if e ≤ limit follows from extents being below 2^63.
static bool isSmall(const ErrorExpr &e, double limit) {
  double sum = 0;
  for (const auto &[factors, coefficient] : e.getTerms()) {
    int power = 0;
    for (auto [atom, exponent] : factors) {
      if (atom->kind != Atom::Kind::Extent || exponent < 0)
        return false;
      power += exponent;
    }
    sum += std::ldexp(coefficient, 63 * power);
  }
  return sum <= limit;
}

/// Requires that results are finite. The condition is checked if the magnitude has a bound.
void ErrorRules::limitMagnitude(ErrorValue &x) {
  if (isSmall(x.magnitude, overflow))
    return;
  if (x.magnitude.isUnknown())
    x.facts.insert(fact({"no intermediate result overflows", std::nullopt, 0}));
  else
    x.facts.insert(fact({"a magnitude stays below the overflow threshold", x.magnitude, overflow}));
}

//===----------------------------------------------------------------------===//
// Underflow
//===----------------------------------------------------------------------===//

static bool hasTiny(const ErrorExpr::Factors &factors) {
  return llvm::any_of(factors, [](const auto &factor) { return factor.first->kind == Atom::Kind::Tiny; });
}

/// Splits e ≤ rest + small, where `small` is the part from underflow. The underflow part of an
/// extreme is at most the sum of those of its operands.
static void splitUnderflow(ErrorExprPool &pool, const ErrorExpr &e, ErrorExpr &rest, ErrorExpr &small) {
  for (const auto &[factors, coefficient] : e.getTerms()) {
    ErrorExpr product(coefficient), extra;
    for (auto [atom, power] : factors) {
      bool isExtreme = atom->kind == Atom::Kind::Max || atom->kind == Atom::Kind::Min;
      ErrorExpr factor(atom, power), added;
      if (isExtreme && power == 1) {
        ErrorExpr parts[2];
        for (unsigned k : {0u, 1u})
          splitUnderflow(pool, atom->operands[k], parts[k], added);
        factor = atom->kind == Atom::Kind::Max ? pool.max(parts[0], parts[1]) : pool.min(parts[0], parts[1]);
      }
      ErrorExpr ofAdded = product * added;
      extra = extra * (factor + added) + ofAdded;
      product = product * factor;
    }
    (hasTiny(factors) ? small : rest) += product;
    small += extra;
  }
}

/// Replaces the terms of underflow by a constant; evaluation checks that they are below it.
ErrorExpr ErrorRules::absorb(const ErrorExpr &e, std::set<unsigned> &rests) {
  ErrorExpr rest, small;
  splitUnderflow(pool, e, rest, small);
  if (small.isZero())
    return e;
  rests.insert(fact({"the error from underflow stays below 2^-40", small, kAbsorbed}));
  return rest + ErrorExpr(kAbsorbed);
}

ErrorExpr ErrorRules::reciprocal(const ErrorExpr &least, const std::string &what) {
  return least.isZero() ? pool.unknown("nothing keeps " + what + " away from 0") : pool.recip(least);
}

/// Returns x / least, where x bounds an error. Without a lower bound on the divisor, terms of
/// underflow are dropped with an assumption, and all other terms become ∞.
ErrorExpr ErrorRules::quotient(const ErrorExpr &x, const ErrorExpr &least, const std::string &what,
                               std::set<unsigned> &rests) {
  if (x.isZero())
    return x;
  if (!least.isZero())
    return x * pool.recip(least);
  ErrorExpr rest = x.filter([](const auto &factors) { return !hasTiny(factors); });
  if (rest.getTerms().size() != x.getTerms().size())
    rests.insert(fact({"underflow is negligible compared to " + what, std::nullopt, 0}));
  if (rest.isZero())
    return rest;
  return rest * reciprocal(least, what);
}

/// Lemma E5: r·x + β = r·(1 + β/(r·x))·x, and −ln(1 − z) ≤ 1.3863·z for z ≤ 1/2.
ErrorValue ErrorRules::toRelative(ErrorValue x, const std::string &what) {
  if (!x.tight)
    x = toAbsolute(std::move(x));
  if (!x.exponential)
    x = collapse(std::move(x));
  if (x.absolute.isZero())
    return x;
  ErrorExpr ratio = quotient(x.absolute * pool.exp(ErrorExpr(2) * x.relative), x.least, what, x.facts);
  x.absolute = ErrorExpr();
  if (ratio.isZero())
    return x;
  ErrorExpr kept = absorb(ratio, x.facts);
  if (!kept.getConstant())
    x.facts.insert(fact({"the error of " + what + " is below half of it", kept, 0.5}));
  x.relative += ErrorExpr(1.3863) * kept;
  x.distance.reset();
  return x;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Lemma E3.
ErrorValue ErrorRules::add(ErrorValue x, ErrorValue y) {
  bool nonnegative = x.nonnegative && y.nonnegative;
  if (x.exponential || y.exponential)
    if (!haveSameShared(x, y)) {
      x = collapse(std::move(x));
      y = collapse(std::move(y));
    }
  ErrorValue sum;
  sum.exponential = x.exponential;
  sum.magnitude = x.magnitude + y.magnitude;
  if (nonnegative)
    sum.least = x.least + y.least;
  sum.nonnegative = nonnegative;
  sum.nonpositive = x.nonpositive && y.nonpositive;
  sum.tight = nonnegative && x.tight && y.tight;
  if (!x.exponential && !nonnegative) {
    ErrorExpr ofY = distanceWithoutShared(y), ofX = distanceWithoutShared(x);
    sum.distance = ofX + ofY;
  }
  sum.shared = x.shared;
  if (!sum.exponential)
    combineShared(sum.shared, y.shared, 1);
  sum.relative = pool.max(x.relative, y.relative);
  sum.absolute = x.absolute + y.absolute;
  merge(sum, x);
  merge(sum, y);
  return rounded(std::move(sum), arithmetic);
}

ErrorValue ErrorRules::negate(ErrorValue x) {
  std::swap(x.nonnegative, x.nonpositive);
  if (x.constant)
    x.constant = -*x.constant;
  if (!x.exponential)
    for (auto &[key, shared] : x.shared)
      shared.coefficient = -shared.coefficient;
  return x;
}

/// Lemma E4.
ErrorValue ErrorRules::multiply(ErrorValue x, ErrorValue y, bool isSquare, const std::optional<ErrorExpr> &bound) {
  if (y.constant && !x.constant)
    std::swap(x, y);
  ErrorValue product;
  if (x.constant && !y.exponential) {
    combineShared(product.shared, y.shared, *x.constant);
  } else {
    if (!x.exponential)
      x = collapse(std::move(x));
    if (!y.exponential)
      y = collapse(std::move(y));
    product.exponential = x.exponential || y.exponential;
    product.shared = x.shared;
    combineShared(product.shared, y.shared, 1);
  }
  product.relative = x.relative + y.relative;
  ErrorExpr ofBoth = x.absolute * y.absolute, ofY = x.magnitude * y.absolute;
  product.absolute = x.absolute * y.magnitude + ofY + ofBoth;
  if (x.isExact() && y.distance)
    product.distance = *y.distance * x.magnitude;
  else if (y.isExact() && x.distance)
    product.distance = *x.distance * y.magnitude;
  product.magnitude = bound ? *bound : x.magnitude * y.magnitude;
  product.least = x.least * y.least;
  product.tight = x.tight && y.tight;
  product.nonnegative = isSquare || (x.nonnegative && y.nonnegative) || (x.nonpositive && y.nonpositive);
  product.nonpositive = (x.nonnegative && y.nonpositive) || (x.nonpositive && y.nonnegative);
  merge(product, x);
  merge(product, y);
  return rounded(std::move(product), arithmetic);
}

/// Lemma E5. A quotient may be computed by multiplying with a rounded reciprocal.
ErrorValue ErrorRules::divide(ErrorValue x, ErrorValue y, const std::string &what,
                              const std::optional<ErrorExpr> &bound) {
  if (!x.exponential)
    x = collapse(std::move(x));
  y = toRelative(std::move(y), what);
  ErrorValue result;
  result.exponential = true;
  result.shared = x.shared;
  combineShared(result.shared, y.shared, -1);
  result.exponential = !result.shared.empty();
  result.relative = x.relative + y.relative;
  merge(result, x);
  merge(result, y);
  result.absolute = quotient(x.absolute, y.least, what, result.facts);
  result.magnitude = bound ? *bound : x.magnitude * reciprocal(y.least, what);
  if (y.isExact() && x.distance && !y.least.isZero())
    result.distance = *x.distance * pool.recip(y.least);
  result.tight = x.tight;
  result.nonnegative = x.nonnegative && y.nonnegative;
  result.nonpositive = x.nonpositive && y.nonnegative;
  // The reciprocal must be finite.
  ErrorValue inverse;
  inverse.magnitude = reciprocal(y.least, what);
  limitMagnitude(inverse);
  result.facts.insert(inverse.facts.begin(), inverse.facts.end());
  return rounded(std::move(result), ErrorExpr(4) * arithmetic);
}

ErrorValue ErrorRules::absolute(ErrorValue x) {
  if (!x.exponential)
    x = collapse(std::move(x));
  if (!x.tight)
    x = toAbsolute(std::move(x));
  x.nonnegative = true;
  x.nonpositive = false;
  x.constant.reset();
  return x;
}
