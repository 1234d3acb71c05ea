//===- Exchange.cpp - R5, the exchange of two reductions -------------------===//
//
//   Σ_k A_k · (Σ_d B_d · C_kd) = Σ_d B_d · (Σ_k A_k · C_kd)
//
// The right side reads a state that carries the axis d. If the row computes this state anyway, the
// sum over k costs nothing more, and its result may be read in the range k itself. For example,
// with O_d = Σ_k Y_k · V_kd (attention backward), Σ_k Y_k · (Σ_d g_d · V_kd) = Σ_d g_d · O_d.
// Otherwise the left side is better: one pass that carries nothing, while the right side would run
// over k again for every d.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace moa;

/// Returns whether `e` is a sum of floats without rounded operands. Rounding would fix the order of
/// its product.
static bool isPlainSum(Expr e) { return isFloatSum(e) && !e->rounds; }

static bool hasPositiveExtent(Expr reduce) { return knownExtent(reduce).value_or(0) > 0; }

/// Returns whether two sums are over the same elements and have the same factors in any order.
static bool isSameSum(ExprContext &exprs, FoldRules &rules, Expr a, Expr b) {
  if (a == b)
    return true;
  if (!isPlainSum(a) || !isPlainSum(b) || a->type != b->type || a->extent != b->extent)
    return false;
  int64_t j = exprs.freshIndex(exprs.boundName(a));
  auto [body, present] = exprs.open(a, j);
  auto [otherBody, otherPresent] = exprs.open(b, j);
  auto sorted = [&](Expr e) {
    SmallVector<std::pair<unsigned, bool>> result;
    for (const FoldRules::Factor &factor : rules.factors(e))
      result.emplace_back(factor.base->serial, factor.divides);
    llvm::sort(result);
    return result;
  };
  return present == otherPresent && sorted(body) == sorted(otherBody);
}

/// Replaces every sum over `extent` in `value` by the equal one among `states`. Returns null if
/// there is none.
static Expr inStates(ExprContext &exprs, FoldRules &rules, Expr value, ExprAttr extent, ArrayRef<Expr> states) {
  llvm::DenseMap<Expr, Expr> known;
  for (Expr result : outermostReductions(value)) {
    if (result->extent != extent || result->monoid == Monoid::or_)
      continue;
    auto state = llvm::find_if(states, [&](Expr s) { return isSameSum(exprs, rules, s, result); });
    if (state == states.end())
      return nullptr;
    known[result] = *state;
  }
  return exprs.replace(value, [&](Expr e) { return known.lookup(e); });
}

/// Returns `t` with its factor number `n`, a sum over the axis of index `axis`, moved outside.
/// Returns null if the row does not compute the sum that is then inside.
Expr Derivation::exchangeFactor(Expr t, int64_t k, Expr body, Expr present, unsigned n, Expr inner, int64_t axis,
                                ArrayRef<Expr> states) {
  Expr innerBody = exprs.open(inner, axis).first;
  Expr inside = rules.factorsOn(innerBody, k), outside = rules.factorsOn(innerBody, k, /*depend=*/false);
  Expr term = rules.rebuildProduct(body, [&](unsigned m, Expr factor) { return m == n ? inside : factor; });
  Expr value = normalise(exprs.reduce(Monoid::add, t->extent, k, term, present, TypeAttr(), exprs.boundName(t)));
  // Drop the guard of R1 inside: over an empty range the whole is 0 for every B.
  Expr any = makeAny(t->extent, k, present), zero = exprs.floatConstant(0, t->type);
  if (value->isOp("arith.select") && value->operands[0] == any && value->operands[2] == zero)
    value = value->operands[1];
  value = inStates(exprs, rules, value, t->extent, states);
  if (!value)
    return nullptr;
  if (outside)
    value = exprs.op("arith.mulf", {outside, value});
  value = normalise(exprs.reduce(Monoid::add, inner->extent, axis, value, nullptr, TypeAttr(), exprs.boundName(inner)));
  for (Expr sum : outermostReductions(value))
    if (sum->extent == inner->extent)
      exprs.inheritName(t, sum);
  return exprs.guarded(any, value, zero);
}

/// Applies R5 if the row computes the new inner sum anyway.
Expr Derivation::exchange(const NestPlan &nest, Expr t, int64_t k, Expr body, Expr present, ArrayRef<Expr> states) {
  SmallVector<FoldRules::Factor> factors = rules.factors(body);
  for (auto [n, factor] : llvm::enumerate(factors)) {
    Expr inner = factor.base;
    if (factor.divides || !isPlainSum(inner) || inner->getPresent() || !inner->dependsOn(k) ||
        !hasPositiveExtent(inner))
      continue;
    for (auto &[axis, extent] : nest.carriedExtents) {
      if (extent != inner->extent || t->dependsOn(axis))
        continue;
      if (Expr value = exchangeFactor(t, k, body, present, n, inner, axis, states))
        return value;
    }
  }
  return nullptr;
}

/// Rewrites select(c, F(select(c, a, b)), z) to select(c, F(a), z), outside of reductions.
static Expr dropRepeatedSelections(ExprContext &exprs, Expr e) {
  std::function<Expr(Expr, Expr)> under = [&](Expr root, Expr condition) {
    return exprs.replace(root, [&](Expr node) -> Expr {
      if (node->kind == ExprKind::Reduce)
        return node;
      if (!node->isOp("arith.select") || node->operands[0] != condition)
        return nullptr;
      return under(node->operands[1], condition);
    });
  };
  return exprs.replace(e, [&](Expr node) -> Expr {
    if (node->kind == ExprKind::Reduce)
      return node;
    if (!node->isOp("arith.select"))
      return nullptr;
    Expr value = under(node->operands[1], node->operands[0]);
    return value == node->operands[1] ? nullptr
                                      : exprs.withOperands(node, {node->operands[0], value, node->operands[2]});
  });
}

/// Counts the folds over ranges of unknown length that the nest would have with these outputs.
unsigned Derivation::countPasses(const NestPlan &nest, ArrayRef<OutputPlan> outputs) {
  NestPlan trial;
  trial.rows = nest.rows;
  trial.outputs.assign(outputs.begin(), outputs.end());
  trial.carriedExtents = nest.carriedExtents;
  trial.innerAxes = nest.innerAxes;
  llvm::SaveAndRestore<FoldObserver *> listener(observer, nullptr);
  llvm::SaveAndRestore<bool> tried(isTrial, true);
  planFolds(trial);
  return llvm::count_if(trial.folds, [](const FoldPlan &fold) { return !knownExtent(fold.extent); });
}

void Derivation::exchangeReductions(NestPlan &nest) {
  if (!enabled("R5") || nest.carriedExtents.empty())
    return;
  struct Exchanged {
    int64_t k;
    Expr body, present, value;
  };
  // Trials are not reported to the observer.
  FoldObserver *listener = std::exchange(observer, nullptr);
  SmallVector<Expr> states = rowReductions(nest);
  llvm::MapVector<Expr, Exchanged> exchanged;
  for (Expr t : states) {
    if (!isPlainSum(t))
      continue;
    int64_t k = exprs.freshIndex(exprs.boundName(t));
    auto [body, present] = exprs.open(t, k);
    if (Expr value = exchange(nest, t, k, body, present, states))
      exchanged[t] = {k, body, present, value};
  }
  SmallVector<OutputPlan> after = nest.outputs;
  for (OutputPlan &output : after) {
    output.value = exprs.replace(output.value, [&](Expr e) -> Expr {
      auto it = exchanged.find(e);
      return it == exchanged.end() ? nullptr : it->second.value;
    });
    output.value = dropRepeatedSelections(exprs, output.value);
  }
  // A reader of the exchanged sum in its own range may lose the pass that it shared.
  bool pays = !exchanged.empty() && countPasses(nest, after) <= countPasses(nest, nest.outputs);
  observer = listener;
  if (!pays)
    return;
  nest.outputs = std::move(after);
  if (observer)
    for (auto &[t, e] : exchanged)
      observer->rewrote("R5", t, e.k, e.body, e.present, e.value);
}

/// Applies R5 in the other direction, for a sum over an axis of known length that has a cascade
/// over another range as a factor: the sum moves into the term of the cascade.
Expr Derivation::moveSumIntoCascade(Expr t) {
  if (!enabled("R5") || !isPlainSum(t) || t->getPresent() || !hasPositiveExtent(t))
    return nullptr;
  int64_t d = exprs.freshIndex(exprs.boundName(t));
  Expr body = exprs.open(t, d).first;
  SmallVector<FoldRules::Factor> factors = rules.factors(body);
  for (auto [n, factor] : llvm::enumerate(factors)) {
    Expr cascade = factor.base;
    if (factor.divides || !isPlainSum(cascade) || !cascade->dependsOn(d))
      continue;
    int64_t k = exprs.freshIndex(exprs.boundName(cascade));
    auto [term, present] = exprs.open(cascade, k);
    bool isCascade = llvm::any_of(outermostReductions(term), [&](Expr result) {
      return result->extent == cascade->extent && !result->dependsOn(k) && !result->dependsOn(d);
    });
    if (!isCascade || (present && present->dependsOn(d)))
      continue;
    // Another sum that depends on the axis would be recomputed for each k.
    bool hasOther = llvm::any_of(llvm::enumerate(factors), [&, n = n](const auto &other) {
      return other.index() != n &&
             llvm::any_of(outermostReductions(other.value().base), [&](Expr sum) { return sum->dependsOn(d); });
    });
    if (hasOther)
      continue;
    Expr inside = rules.factorsOn(term, d), outside = rules.factorsOn(term, d, /*depend=*/false);
    Expr inner = rules.rebuildProduct(body, [&](unsigned m, Expr base) { return m == n ? inside : base; });
    Expr value = exprs.reduce(Monoid::add, t->extent, d, inner, nullptr, TypeAttr(), exprs.boundName(t));
    if (outside)
      value = exprs.op("arith.mulf", {outside, value});
    value = exprs.reduce(Monoid::add, cascade->extent, k, value, present, TypeAttr(), exprs.boundName(cascade));
    exprs.inheritName(t, value);
    if (observer)
      observer->rewrote("R5", t, d, body, nullptr, value);
    return value;
  }
  return nullptr;
}
