//===- FoldRules.cpp - splits, rescales and their guards ------------------===//
#include "lib/Conversion/DNFToONF/FoldRules.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/IndexBounds.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace moa;

bool FoldRules::free(Expr e, ArrayRef<int64_t> indices) {
  return llvm::none_of(indices, [&](int64_t i) { return e->dependsOn(i); });
}

bool FoldRules::reads(Expr e, const StateSet &states) {
  return anyNode(e, [&](Expr node) { return states.contains(node); });
}

bool FoldRules::readsState(Expr e, Expr state) {
  return anyNode(e, [&](Expr node) { return node == state; });
}

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

static Split blockedBy(Expr e) {
  Split split;
  split.blocked = e;
  return split;
}

Split FoldRules::splitMul(Expr e, const StateSet &states, ArrayRef<int64_t> indices) {
  return memoize<Split>(&Memo::product, e, [&] { return splitMulOf(e, states, indices); });
}

Split FoldRules::splitAdd(Expr e, const StateSet &states, ArrayRef<int64_t> indices) {
  return memoize<Split>(&Memo::sum, e, [&] { return splitAddOf(e, states, indices); });
}

/// Splits e = G · H.
Split FoldRules::splitMulOf(Expr e, const StateSet &states, ArrayRef<int64_t> indices) {
  Type type = e->type;
  if (!reads(e, states))
    return {e, exprs.floatConstant(1, type)};
  if (free(e, indices))
    return {exprs.floatConstant(1, type), e};
  auto parts = [&](unsigned k) { return splitMul(e->operands[k], states, indices); };
  auto same = [&](Expr a, Expr b) { return exprs.withOperands(e, {a, b}); };
  if (e->isOp("arith.mulf") || e->isOp("arith.divf")) {
    Split a = parts(0), b = parts(1);
    if (!a || !b)
      return a ? b : a;
    return {same(a.g, b.g), same(a.h, b.h)};
  }
  if (e->isOp("arith.negf")) {
    Split a = parts(0);
    return a ? Split{exprs.op("arith.negf", {a.g}), a.h} : a;
  }
  if (e->isOp("math.powf")) {
    // Integer powers always split; other positive powers split only for non-negative parts.
    Expr exponent = e->operands[1];
    auto power = floatValue(exponent);
    bool isWhole = power && *power == std::floor(*power);
    if (!isWhole && (reads(exponent, states) || !free(exponent, indices) || !isPositive(exponent)))
      return blockedBy(e);
    Split a = parts(0);
    if (a && !isWhole && !(isNonNegative(a.g) && isNonNegative(a.h)))
      return blockedBy(e);
    return a ? Split{same(a.g, exponent), same(a.h, exponent)} : a;
  }
  if (e->isOp("math.sqrt")) {
    Split a = parts(0);
    if (a && !(isNonNegative(a.g) && isNonNegative(a.h)))
      return blockedBy(e);
    return a ? Split{exprs.op("math.sqrt", {a.g}), exprs.op("math.sqrt", {a.h})} : a;
  }
  if (e->isOp("math.exp") || e->isOp("math.exp2")) {
    Split u = splitAdd(e->operands[0], states, indices);
    if (!u)
      return u;
    return {exprs.withOperands(e, {u.g}), exprs.withOperands(e, {u.h})};
  }
  if (e->isOp("arith.select") && floatValue(e->operands[2]) == 0.0 && !reads(e->operands[0], states)) {
    Split a = parts(1);
    if (!a)
      return a;
    return {exprs.op("arith.select", {e->operands[0], a.g, e->operands[2]}, type), a.h};
  }
  return blockedBy(e);
}

/// Splits e = G + H.
Split FoldRules::splitAddOf(Expr e, const StateSet &states, ArrayRef<int64_t> indices) {
  Type type = e->type;
  if (!reads(e, states))
    return {e, exprs.floatConstant(0, type)};
  if (free(e, indices))
    return {exprs.floatConstant(0, type), e};
  auto parts = [&](unsigned k) { return splitAdd(e->operands[k], states, indices); };
  auto same = [&](Expr a, Expr b) { return exprs.withOperands(e, {a, b}); };
  if (e->isOp("arith.addf") || e->isOp("arith.subf")) {
    Split a = parts(0), b = parts(1);
    if (!a || !b)
      return a ? b : a;
    // 0 stands for a missing part, and is dropped.
    auto join = [&](Expr x, Expr y) {
      if (floatValue(y) == 0.0)
        return x;
      if (floatValue(x) == 0.0)
        return e->isOp("arith.addf") ? y : exprs.op("arith.negf", {y});
      return same(x, y);
    };
    return {join(a.g, b.g), join(a.h, b.h)};
  }
  if (e->isOp("arith.negf")) {
    Split a = parts(0);
    return a ? Split{exprs.op("arith.negf", {a.g}), exprs.op("arith.negf", {a.h})} : a;
  }
  if (e->isOp("arith.mulf") || e->isOp("arith.divf")) {
    // Only by a constant: a factor of unknown sign would lose monotonicity.
    unsigned k = e->isOp("arith.mulf") && floatValue(e->operands[0]) ? 1 : 0;
    if (!floatValue(e->operands[1 - k]))
      return blockedBy(e);
    Split a = parts(k);
    if (!a)
      return a;
    auto scaled = [&](Expr x) { return k ? same(e->operands[0], x) : same(x, e->operands[1]); };
    return {scaled(a.g), scaled(a.h)};
  }
  if (e->isOp("math.log")) {
    Split a = splitMul(e->operands[0], states, indices);
    if (!a)
      return a;
    if (!isNonNegative(a.g) || !isNonNegative(a.h))
      return blockedBy(e); // log G or log H may be undefined where log e is not
    return {exprs.op("math.log", {a.g}), exprs.op("math.log", {a.h})};
  }
  return blockedBy(e);
}

//===----------------------------------------------------------------------===//
// Monotonicity and singular points
//===----------------------------------------------------------------------===//

bool FoldRules::isNonNegative(Expr e) {
  if (auto it = nonNegative.find(e); it != nonNegative.end())
    return it->second;
  bool result = findNonNegative(e);
  return nonNegative[e] = result;
}

bool FoldRules::isPositive(Expr e) {
  if (auto it = positive.find(e); it != positive.end())
    return it->second;
  bool result = findPositive(e);
  return positive[e] = result;
}

bool FoldRules::findNonNegative(Expr e) {
  if (auto value = floatValue(e))
    return *value >= 0;
  if (e->isOp("math.absf") || e->isOp("math.exp") || e->isOp("math.exp2") || e->isOp("math.sqrt") ||
      e->isOp("math.rsqrt"))
    return true;
  if (e->isOp("arith.mulf") && e->operands[0] == e->operands[1])
    return true;
  if (e->isOp("math.powf")) {
    auto power = floatValue(e->operands[1]);
    if (power && std::fmod(*power, 2) == 0)
      return true;
    return isNonNegative(e->operands[0]);
  }
  if (e->isOp("arith.mulf") || e->isOp("arith.divf") || e->isOp("arith.addf") || e->isOp("arith.maximumf") ||
      e->isOp("arith.minimumf"))
    return isNonNegative(e->operands[0]) && isNonNegative(e->operands[1]);
  if (e->isOp("arith.select"))
    return isNonNegative(e->operands[1]) && isNonNegative(e->operands[2]);
  if (e->kind == ExprKind::Reduce)
    return isNonNegative(e->operands[0]);
  return false;
}

bool FoldRules::findPositive(Expr e) {
  if (auto value = floatValue(e))
    return *value > 0;
  if (e->isOp("math.exp") || e->isOp("math.exp2"))
    return true;
  if (e->isOp("arith.maximumf") || e->isOp("arith.maxnumf"))
    return isPositive(e->operands[0]) || isPositive(e->operands[1]);
  if (e->isOp("arith.addf"))
    return (isPositive(e->operands[0]) && isNonNegative(e->operands[1])) ||
           (isNonNegative(e->operands[0]) && isPositive(e->operands[1]));
  if (e->isOp("arith.minimumf") || e->isOp("arith.mulf"))
    return isPositive(e->operands[0]) && isPositive(e->operands[1]);
  return false;
}

/// Returns the direction of a sum of two values, if it is known.
static std::optional<int> together(std::optional<int> a, std::optional<int> b) {
  if (!a || !b || *a * *b < 0)
    return std::nullopt;
  return *a != 0 ? a : b;
}

static std::optional<int> flip(std::optional<int> a) { return a ? std::optional<int>(-*a) : a; }

FoldRules::Trend FoldRules::trend(Expr e, const StateSet &states) {
  return memoize<Trend>(&Memo::trends, e, [&] { return trendOf(e, states); });
}

FoldRules::Trend FoldRules::trendOf(Expr e, const StateSet &states) {
  bool atLeastZero = isNonNegative(e);
  if (states.contains(e)) {
    if (e->monoid == Monoid::max)
      return {1, atLeastZero};
    if (e->monoid == Monoid::min)
      return {-1, atLeastZero};
    if (e->monoid == Monoid::add && atLeastZero)
      return {1, true};
    return {std::nullopt, atLeastZero};
  }
  if (!reads(e, states))
    return {0, atLeastZero};
  auto of = [&](unsigned k) { return trend(e->operands[k], states); };
  if (e->isOp("math.exp") || e->isOp("math.exp2"))
    return {of(0).direction, true};
  if (e->isOp("math.log") || e->isOp("math.sqrt"))
    return {of(0).direction, atLeastZero};
  if (e->isOp("arith.negf"))
    return {flip(of(0).direction), atLeastZero};
  if (e->isOp("arith.addf") || e->isOp("arith.maximumf") || e->isOp("arith.minimumf"))
    return {together(of(0).direction, of(1).direction), atLeastZero};
  if (e->isOp("arith.subf"))
    return {together(of(0).direction, flip(of(1).direction)), atLeastZero};
  if (e->isOp("math.powf")) {
    Trend base = of(0);
    auto power = floatValue(e->operands[1]);
    bool isKnown = power || (isPositive(e->operands[1]) && !reads(e->operands[1], states));
    if (!isKnown || !base.nonNegative)
      return {std::nullopt, atLeastZero};
    return {power && *power < 0 ? flip(base.direction) : base.direction, true};
  }
  if (e->isOp("arith.mulf") || e->isOp("arith.divf")) {
    Trend a = of(0), b = of(1);
    bool over = e->isOp("arith.divf");
    if (a.nonNegative && b.nonNegative)
      return {together(a.direction, over ? flip(b.direction) : b.direction), true};
    // A constant of either sign times a monotone value.
    for (unsigned k : {0, 1})
      if (auto value = floatValue(e->operands[k]); value && !(over && k == 0)) {
        auto direction = k ? a.direction : b.direction;
        return {*value < 0 ? flip(direction) : direction, atLeastZero};
      }
  }
  return {std::nullopt, atLeastZero};
}

/// Returns whether a value is known to be non-negative and never to grow with the states.
bool FoldRules::shrinks(Expr h, const StateSet &states) {
  Trend growth = trend(h, states);
  return growth.nonNegative && growth.direction && *growth.direction <= 0;
}

/// Evaluates one node; `operand` evaluates its operands.
static std::optional<double> evaluateNode(Expr e, llvm::function_ref<std::optional<double>(Expr)> leaf,
                                          llvm::function_ref<std::optional<double>(Expr)> operand) {
  if (auto value = leaf(e))
    return value;
  if (auto value = floatValue(e))
    return value;
  if (e->kind != ExprKind::Op || e->operands.empty())
    return std::nullopt;
  SmallVector<double> v;
  for (Expr part : e->operands) {
    auto value = operand(part);
    // A product with zero is unknown too: the other factor may be infinite or NaN.
    if (!value)
      return std::nullopt;
    v.push_back(*value);
  }
  StringRef name = e->op->getStringRef();
  if (name == "arith.addf")
    return v[0] + v[1];
  if (name == "arith.subf")
    return v[0] - v[1];
  if (name == "arith.mulf")
    return v[0] * v[1];
  if (name == "arith.divf")
    return v[0] / v[1];
  if (name == "arith.negf")
    return -v[0];
  if (name == "arith.extf")
    return v[0];
  if (name == "math.exp")
    return std::exp(v[0]);
  if (name == "math.exp2")
    return std::exp2(v[0]);
  if (name == "math.log")
    return std::log(v[0]);
  if (name == "math.sqrt")
    return std::sqrt(v[0]);
  if (name == "math.absf")
    return std::fabs(v[0]);
  if (name == "math.powf")
    return std::pow(v[0], v[1]);
  if (name == "arith.maximumf")
    return std::max(v[0], v[1]);
  if (name == "arith.minimumf")
    return std::min(v[0], v[1]);
  return std::nullopt;
}

std::optional<double> FoldRules::evaluate(Expr e, llvm::function_ref<std::optional<double>(Expr)> leaf) {
  // Shared subterms are evaluated once.
  llvm::DenseMap<Expr, std::optional<double>> known;
  std::function<std::optional<double>(Expr)> go = [&](Expr node) {
    if (auto it = known.find(node); it != known.end())
      return it->second;
    std::optional<double> value = evaluateNode(node, leaf, go);
    return known[node] = value;
  };
  return go(e);
}

/// Returns a value of `state` at which H may not be finite. The candidates are the identity of the
/// state's monoid and 0. Other values that H reads may be anything, so they are tried at 1 and at
/// both infinities. A harmless value reported as singular costs only the guard, since terms must
/// vanish there.
std::optional<double> FoldRules::singularPoint(Expr h, Expr state, const StateSet &states) {
  const double inf = std::numeric_limits<double>::infinity();
  for (double candidate : {getIdentityValue(state->monoid), 0.0})
    for (double other : {1.0, -inf, inf}) {
      auto value = evaluate(h, [&](Expr e) -> std::optional<double> {
        if (e == state)
          return candidate;
        if (states.contains(e) || e->kind == ExprKind::Psi || e->kind == ExprKind::Reduce)
          return other;
        return std::nullopt;
      });
      if (!value || !std::isfinite(*value))
        return candidate;
    }
  return std::nullopt;
}

/// Returns whether G(j) = 0 for every j whose contribution to the state is `singular`. The
/// accumulator is then still the identity while the state is singular. A maximum of two values is
/// −∞ only if both are, a minimum +∞.
bool FoldRules::vanishesAt(Expr g, Expr stateBody, double singular) {
  Type type = stateBody->type;
  Expr value = exprs.floatConstant(singular, type);
  Expr magnitude = stateBody->isOp("math.absf") && singular == 0 ? stateBody->operands[0] : nullptr;
  SmallVector<Expr> known{stateBody};
  for (unsigned k = 0; k != known.size(); ++k)
    if ((known[k]->isOp("arith.maximumf") && singular == -HUGE_VAL) ||
        (known[k]->isOp("arith.minimumf") && singular == HUGE_VAL))
      known.append(known[k]->operands.begin(), known[k]->operands.end());
  Expr at = exprs.replace(
      g, [&](Expr e) -> Expr { return llvm::is_contained(known, e) || e == magnitude ? value : nullptr; });
  // The derivation guards sums of selections that pick nothing, but not of nested selections.
  auto isInfinite = [&](const Factor &factor) {
    auto v = evaluate(factor.base, [](Expr) { return std::optional<double>(); });
    return v && (factor.divides ? *v == 0 : !std::isfinite(*v));
  };
  std::function<bool(Expr, bool)> isZero = [&](Expr product, bool picked) {
    auto all = factors(product);
    bool isNaN = known.size() > 1 && llvm::any_of(all, isInfinite);
    return !isNaN && llvm::any_of(all, [&](const Factor &factor) {
      Expr base = factor.base;
      if (factor.divides)
        return false;
      if (base->isOp("arith.select"))
        return !picked && isZero(base->operands[1], true) && isZero(base->operands[2], true);
      if (base->isOp("math.sqrt") || (base->isOp("math.powf") && isPositive(base->operands[1])))
        return isZero(base->operands[0], true);
      auto v = evaluate(base, [](Expr) { return std::optional<double>(); });
      return v && *v == 0;
    });
  };
  return isZero(at, false);
}

//===----------------------------------------------------------------------===//
// R3
//===----------------------------------------------------------------------===//

/// Returns whether `e` says x = d or, for a maximum d of x, x ≥ d (≤ for a minimum).
static bool saysAttained(Expr e, Expr x, Expr d) {
  if (!e->isOp("arith.cmpf") && !e->isOp("arith.cmpi"))
    return false;
  bool isFloat = e->isOp("arith.cmpf");
  bool straight = e->operands[0] == x && e->operands[1] == d;
  bool swapped = e->operands[0] == d && e->operands[1] == x;
  if (!straight && !swapped)
    return false;
  // The numbers of arith's predicates: oeq 1, ogt 2, oge 3, olt 4, ole 5; eq 0,
  // slt 2, sle 3, sgt 4, sge 5.
  int64_t predicate = cast<IntegerAttr>(e->attributes.get("predicate")).getInt();
  int64_t equal = isFloat ? 1 : 0, atLeast = isFloat ? 3 : 5, atMost = isFloat ? 5 : 3;
  bool up = (d->monoid == Monoid::max) == straight;
  return predicate == equal || predicate == (up ? atLeast : atMost);
}

Expr FoldRules::attained(Expr t, Expr body, const StateSet &states, llvm::function_ref<Expr(Expr)> stateBody) {
  if (t->monoid == Monoid::user)
    return nullptr;
  Expr state = nullptr;
  for (Expr candidate : states)
    if (readsState(body, candidate)) {
      bool isExtreme = candidate->monoid == Monoid::max || candidate->monoid == Monoid::min;
      if (state || !isExtreme)
        return nullptr;
      state = candidate;
    }
  if (!state)
    return nullptr;
  SmallVector<Factor> parts{{body, false}};
  if (t->monoid == Monoid::add && isa<FloatType>(t->type))
    parts = factors(body);
  TypedAttr identity = getIdentity(t->monoid, t->type);
  for (const Factor &part : parts) {
    if (part.divides || !part.base->isOp("arith.select") || part.base->operands[2]->kind != ExprKind::Const ||
        part.base->operands[2]->value != identity)
      continue;
    for (Expr condition : conjunctsOf(part.base->operands[0]))
      if (saysAttained(condition, stateBody(state), state))
        return state;
  }
  return nullptr;
}

Expr FoldRules::unchanged(const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                          llvm::function_ref<Expr(Expr)> newState) {
  Expr all = exprs.boolean(true);
  for (Expr state : states) {
    Expr after = newState(state), before = oldState(state), same = exprs.equal(before, after);
    all = exprs.both(all, same);
  }
  return all;
}

RescaleRule FoldRules::rescale(Expr t, Expr body, const StateSet &states, ArrayRef<int64_t> indices,
                               llvm::function_ref<Expr(Expr)> stateBody) {
  RescaleRule result;
  auto fail = [&](Expr blocked, std::string reason) {
    result.blocked = blocked;
    result.reason = std::move(reason);
    return result;
  };
  if (Expr state = attained(t, body, states, stateBody)) {
    result.refs.push_back(state);
    result.singular.push_back(std::nan(""));
    result.resets = true;
    return result;
  }
  // M1 and M2. Multiplication distributes over maxima and minima only by non-negative factors;
  // ratios are taken only of factors known to be non-negative.
  if (!nonNegativeMulDistributesOver(t->monoid) || !isa<FloatType>(t->type))
    return fail(body, "multiplication does not distribute over " + stringifyMonoid(t->monoid).str());
  Split split = splitMul(body, states, indices);
  if (!split)
    return fail(split.blocked, "it does not separate the index from earlier results");
  result.g = split.g;
  result.h = split.h;
  for (Expr state : states)
    if (readsState(split.h, state))
      result.refs.push_back(state);
  if (!result.refs.empty() && !shrinks(split.h, states))
    return fail(split.h, "its ratio is not known to stay within 1");
  for (Expr state : result.refs) {
    auto singular = singularPoint(split.h, state, states);
    result.singular.push_back(singular ? *singular : std::nan(""));
    if (singular && !vanishesAt(split.g, stateBody(state), *singular))
      return fail(split.h, "terms do not vanish where it is singular");
    // 0 ⊕ x = x for sums, and for maxima of non-negative terms.
    if (singular && t->monoid != Monoid::add && !(t->monoid == Monoid::max && isNonNegative(split.g))) {
      Expr point = exprs.floatConstant(*singular, state->type);
      result.leftOut.push_back(exprs.equal(stateBody(state), point));
    }
  }
  return result;
}

/// Returns `e` with each state read as `state` gives it.
Expr FoldRules::readAs(Expr e, const StateSet &states, llvm::function_ref<Expr(Expr)> state) {
  return exprs.replace(e, [&](Expr node) -> Expr { return states.contains(node) ? state(node) : nullptr; });
}

Expr FoldRules::correctionFactor(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                                 llvm::function_ref<Expr(Expr)> newState) {
  Type type = h->type;
  if (!reads(h, states))
    return exprs.floatConstant(1, type);
  if (states.contains(h))
    return exprs.op("arith.divf", {newState(h), oldState(h)});
  auto of = [&](unsigned k) { return correctionFactor(h->operands[k], states, oldState, newState); };
  auto at = [&](Expr e, llvm::function_ref<Expr(Expr)> state) { return readAs(e, states, state); };
  if (h->isOp("arith.mulf") || h->isOp("arith.divf"))
    return exprs.withOperands(h, {of(0), of(1)});
  if (h->isOp("arith.negf"))
    return of(0);
  if (h->isOp("math.powf"))
    return exprs.withOperands(h, {of(0), h->operands[1]});
  if (h->isOp("math.sqrt"))
    return exprs.withOperands(h, {of(0)});
  if (h->isOp("math.exp") || h->isOp("math.exp2")) {
    Expr u = h->operands[0];
    // e^{−v(new)} / e^{−v(old)} = e^{v(old) − v(new)}
    bool negated = u->isOp("arith.negf");
    Expr v = negated ? u->operands[0] : u;
    Expr after = at(v, newState), before = at(v, oldState);
    Expr difference = negated ? exprs.op("arith.subf", {before, after}) : exprs.op("arith.subf", {after, before});
    return exprs.withOperands(h, {difference});
  }
  return exprs.op("arith.divf", {at(h, newState), at(h, oldState)});
}

Expr FoldRules::difference(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                           llvm::function_ref<Expr(Expr)> newState) {
  auto at = [&](Expr e, llvm::function_ref<Expr(Expr)> state) { return readAs(e, states, state); };
  if (h->isOp("arith.negf")) {
    Expr v = h->operands[0];
    return exprs.op("arith.subf", {at(v, oldState), at(v, newState)});
  }
  return exprs.op("arith.subf", {at(h, newState), at(h, oldState)});
}

Expr FoldRules::coefficient(const RescaleRule::Other &other, ArrayRef<Expr> by) {
  Expr sum = nullptr;
  for (unsigned lacks : other.lacks) {
    Expr product = nullptr;
    for (unsigned i = 0; i < by.size(); ++i)
      if (lacks >> i & 1)
        product = product ? exprs.op("arith.mulf", {product, by[i]}) : by[i];
    sum = sum ? exprs.op("arith.addf", {sum, product}) : product;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// Decides which nodes belong to one product. A factor that is read twice counts twice: after
/// twenty lines `s = s * s` there are a million factors. A subproduct of more than `most` factors
/// therefore counts as one factor.
class Product {
public:
  explicit Product(Expr root) : root(root) {}
  bool isTaken(Expr e) { return isProduct(e) && (e == root || count(e) <= most); }

private:
  static constexpr unsigned most = 256;
  static bool isProduct(Expr e) { return e->isOp("arith.mulf") || e->isOp("arith.divf"); }
  unsigned count(Expr e) {
    if (!isProduct(e))
      return 1;
    if (auto it = counts.find(e); it != counts.end())
      return it->second;
    unsigned sum = std::min(count(e->operands[0]) + count(e->operands[1]), most + 1);
    return counts[e] = sum;
  }
  Expr root;
  llvm::DenseMap<Expr, unsigned> counts;
};

} // namespace

SmallVector<FoldRules::Factor> FoldRules::factors(Expr e) {
  SmallVector<Factor> result;
  Product whole(e);
  std::function<void(Expr, bool)> go = [&](Expr node, bool divides) {
    if (whole.isTaken(node)) {
      go(node->operands[0], divides);
      go(node->operands[1], divides != node->isOp("arith.divf"));
      return;
    }
    result.push_back({node, divides});
  };
  go(e, false);
  return result;
}

Expr FoldRules::product(ArrayRef<Factor> list, Type type) {
  Expr result = nullptr;
  for (const Factor &factor : list)
    if (!factor.divides)
      result = result ? exprs.op("arith.mulf", {result, factor.base}) : factor.base;
  if (!result)
    result = exprs.floatConstant(1, type);
  for (const Factor &factor : list)
    if (factor.divides)
      result = exprs.op("arith.divf", {result, factor.base});
  return result;
}

Expr FoldRules::rebuildProduct(Expr e, llvm::function_ref<Expr(unsigned, Expr)> with) {
  unsigned number = 0;
  Product whole(e);
  std::function<Expr(Expr)> go = [&](Expr node) -> Expr {
    if (!whole.isTaken(node))
      return with(number++, node);
    bool over = node->isOp("arith.divf");
    Expr a = go(node->operands[0]), b = go(node->operands[1]);
    if (!b || (!a && !over))
      return b ? b : a;
    if (!a)
      a = exprs.floatConstant(1, node->type);
    return exprs.withOperands(node, {a, b});
  };
  return go(e);
}

Expr FoldRules::factorsOn(Expr e, int64_t index, bool depend) {
  return rebuildProduct(e, [&](unsigned, Expr base) { return base->dependsOn(index) == depend ? base : nullptr; });
}
