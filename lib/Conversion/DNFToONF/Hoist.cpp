//===- Hoist.cpp - R1: hoists factors out of reductions -------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// Returns whether a factor reads results of earlier reductions, all of them maxima and minima.
static bool readsExtremesOnly(Expr factor) {
  SmallVector<Expr> results = outermostReductions(factor);
  return !results.empty() && llvm::all_of(results, [](Expr result) {
    return result->monoid == Monoid::max || result->monoid == Monoid::min;
  });
}

/// Returns whether R3 can rescale the sum of `body` when the maxima and minima over the same
/// elements that it reads change.
bool Derivation::rescalable(Expr e, int64_t j, Expr body, Expr present) {
  StateSet states;
  std::set<int64_t> rows;
  walk(body, [&](Expr node) {
    if (node->kind != ExprKind::Reduce || node->extent != e->extent || node->dependsOn(j) ||
        exprs.open(node, j).second != present || !readsExtremesOnly(node))
      return;
    states.insert(node);
    rows.insert(node->freeIndices.begin(), node->freeIndices.end());
  });
  // The sum may later carry an axis that the states do not have.
  SmallVector<int64_t> indices;
  llvm::copy_if(body->freeIndices, std::back_inserter(indices), [&](int64_t index) { return !rows.count(index); });
  return rules.rescale(e, body, states, indices, [&](Expr state) { return exprs.open(state, j).first; }).valid();
}

/// Returns whether a factor of terms at `j` is exp(x − max x) with a maximum over at least these
/// elements, and so is at most 1.
bool Derivation::isAtMostOne(ExprAttr extent, int64_t j, Expr factor, Expr present) {
  if (!factor->isOp("math.exp") && !factor->isOp("math.exp2"))
    return false;
  Expr difference = factor->operands[0];
  if (!difference->isOp("arith.subf"))
    return false;
  Expr most = difference->operands[1];
  if (most->kind != ExprKind::Reduce || most->monoid != Monoid::max || most->extent != extent || most->dependsOn(j))
    return false;
  auto [body, range] = exprs.open(most, j);
  return body == difference->operands[0] && (!range || range == present);
}

/// Returns whether a result is moderate: a sum of products of factors exp(x − max x) with the
/// maximum over the same elements, or a product or quotient of such sums. One term of such a sum is
/// 1, so that it lies between 1 and the number of elements. Separate powers of exp(x − max x) and
/// of moderate results leave the range of the type no sooner than their quotient does, up to powers
/// of the number of elements.
bool Derivation::isModerate(Expr e) {
  if (e->isOp("arith.mulf") || e->isOp("arith.divf"))
    return isModerate(e->operands[0]) && isModerate(e->operands[1]);
  if (e->isOp("arith.select")) // a constant over an empty range
    return e->operands[2]->kind == ExprKind::Const && isModerate(e->operands[1]);
  if (e->kind != ExprKind::Reduce || e->monoid != Monoid::add)
    return false;
  int64_t j = openings.indexFor(e);
  auto [body, present] = exprs.open(e, j);
  return llvm::all_of(rules.factors(body), [&, present = present](const FoldRules::Factor &factor) {
    return !factor.divides && isAtMostOne(e->extent, j, factor.base, present) &&
           exprs.open(factor.base->operands[0]->operands[1], j).second == present;
  });
}

/// Rewrites (ξ/σ)ⁿ to ξⁿ/σⁿ for 0 < n ≤ 4, and √(ξ/σ) to √ξ/√σ, in a product, for ξ at most 1 and σ
/// moderate.
Expr Derivation::distributePowers(Expr e, int64_t j, Expr body, Expr present) {
  if (!enabled("R1") || !isa<FloatType>(e->type))
    return body;
  return rules.rebuildProduct(body, [&](unsigned, Expr factor) -> Expr {
    bool isRoot = factor->isOp("math.sqrt"), isPower = factor->isOp("math.powf");
    if (!isRoot && (!isPower || factor->operands[1]->kind != ExprKind::Const))
      return factor;
    double power = isRoot ? 0.5 : cast<FloatAttr>(factor->operands[1]->value).getValueAsDouble();
    bool leaves = power > 0 && power <= 4, any = false;
    for (const FoldRules::Factor &part : rules.factors(factor->operands[0])) {
      leaves &= part.divides ? isModerate(part.base) : isAtMostOne(e->extent, j, part.base, present);
      any |= part.divides;
    }
    if (!leaves || !any)
      return factor;
    return rules.rebuildProduct(factor->operands[0], [&](unsigned, Expr part) {
      SmallVector<Expr, 3> operands(factor->operands);
      operands[0] = part;
      return exprs.withOperands(factor, operands);
    });
  });
}

/// Returns whether a product without its results may leave the range of the type although the whole
/// product does not. This takes a factor that occurs twice, and a result that occurs twice or
/// consists of maxima and minima.
bool Derivation::mayLeaveRange(Expr e, int64_t j, ArrayRef<FoldRules::Factor> factors, Expr present) {
  std::set<Expr> bases, results;
  bool repeated = false, repeatsResult = false, isSafe = true;
  for (const FoldRules::Factor &factor : factors) {
    Expr base = factor.base;
    if (base->dependsOn(j)) {
      bool isAgain = !bases.insert(base).second;
      repeated |= isAgain;
      isSafe &= !isAgain || isAtMostOne(e->extent, j, base, present);
    } else if (!outermostReductions(base).empty()) {
      repeatsResult |= !results.insert(base).second || base->isOp("math.powf") || readsExtremesOnly(base);
      Expr root = base->isOp("math.powf") || base->isOp("math.sqrt") ? base->operands[0] : base;
      isSafe &= isModerate(root);
    }
  }
  return repeated && repeatsResult && !isSafe;
}

/// R1: ⊕_j σ·ξ(j) = σ·⊕_j ξ(j) for sums and a factor σ free of j. Over an empty range the left side
/// is 0 for every σ, so the right side is guarded.
///
/// The remaining sum must not leave the range of the type if the original one does not. So two
/// kinds of factors stay:
/// - A result of an earlier reduction stays if another factor occurs twice. For example, x²/m²
///   overflows where (x/m)² does not. It leaves if it is moderate and the other factor is
///   exp(x − max x), which is at most 1.
/// - A result made of maxima and minima stays if R3 can rescale the sum when it changes, which is
///   rare.
/// All other factors leave; see Numerics of `convert-dnf-to-onf` in lib/Conversion/Passes.td.
Expr Derivation::hoistFactors(Expr e, int64_t j, Expr body, Expr present) {
  SmallVector<FoldRules::Factor> factors = rules.factors(body), outside;
  std::string name = exprs.boundName(e).str();
  auto sum = [&](Expr term) { return exprs.reduce(e->monoid, e->extent, j, term, present, e->rounds, name); };
  if (!enabled("R1") || mayLeaveRange(e, j, factors, present))
    return sum(body);
  auto without = [&](llvm::function_ref<bool(Expr)> leaves) {
    return rules.rebuildProduct(
        body, [&](unsigned, Expr factor) { return factor->dependsOn(j) || !leaves(factor) ? factor : nullptr; });
  };
  // Maxima and minima stay if R3 can rescale the remaining sum.
  std::function<bool(Expr)> leaves = [](Expr factor) { return !readsExtremesOnly(factor); };
  Expr term = without(leaves);
  if (!term || !rescalable(e, j, term, present)) {
    leaves = [](Expr) { return true; };
    term = without(leaves);
  }
  llvm::copy_if(factors, std::back_inserter(outside),
                [&](const FoldRules::Factor &factor) { return !factor.base->dependsOn(j) && leaves(factor.base); });
  if (outside.empty() || !term)
    return sum(body);
  // Only finite factors turn the empty sum into 0 without a guard.
  bool constantsOnly = llvm::all_of(outside, [](const FoldRules::Factor &factor) {
    auto number = floatValue(factor.base);
    return number && std::isfinite(*number) && !(factor.divides && *number == 0);
  });
  Expr rest = sum(term);
  exprs.inheritName(e, rest);
  outside.insert(outside.begin(), {rest, false});
  Expr value = rules.product(outside, e->type);
  Expr any = makeAny(e->extent, j, present);
  // A condition that is free of j may guard the reads of the factors: test it directly, if the
  // range has an index.
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> readsArray = [&](Expr node) {
    return seen.insert(node).second && node->kind != ExprKind::Reduce &&
           ((node->kind == ExprKind::Psi && !node->operands.empty()) || llvm::any_of(node->operands, readsArray));
  };
  bool isReading = llvm::any_of(outside, [&](const FoldRules::Factor &factor) { return readsArray(factor.base); });
  if (present && isReading && !present->dependsOn(j)) {
    Expr some = makeAny(e->extent, j, nullptr), none = exprs.boolean(false);
    any = some == exprs.boolean(true) ? present
          : some == none              ? none
                                      : exprs.op("arith.select", {some, present, none}, present->type);
  }
  if (!constantsOnly)
    value = exprs.guarded(any, value, exprs.floatConstant(0, e->type));
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}

/// R1 inside selections whose values read results: Σ_j ξ·(p ? σ·F : 0) = σ·Σ_j ξ·(p ? F : 0). If p
/// holds nowhere, both are 0 for all values of σ and F.
Expr Derivation::hoist(Expr e, int64_t j, Expr body, Expr present) {
  Expr zero = exprs.floatConstant(0, e->type), picked = nullptr;
  SmallVector<FoldRules::Factor> outside;
  auto readsResult = [&](Expr inner) {
    return llvm::any_of(outermostReductions(inner), [&](Expr result) { return !result->dependsOn(j); });
  };
  auto leaves = [&](Expr inner) {
    return enabled("R1") && !inner->dependsOn(j) && readsResult(inner) && !readsExtremesOnly(inner);
  };
  SmallVector<FoldRules::Factor> factors = rules.factors(body);
  Expr term = rules.rebuildProduct(body, [&](unsigned n, Expr selection) -> Expr {
    if (factors[n].divides || !selection->isOp("arith.select") || selection->operands[2] != zero ||
        !selection->operands[0]->dependsOn(j) || readsResult(selection->operands[0]) ||
        !readsResult(selection->operands[1]))
      return selection;
    Expr condition = selection->operands[0], value = selection->operands[1];
    if (mayLeaveRange(e, j, rules.factors(value), present))
      return selection;
    picked = exprs.both(picked, condition);
    llvm::copy_if(rules.factors(value), std::back_inserter(outside),
                  [&](const FoldRules::Factor &inner) { return leaves(inner.base); });
    value = rules.rebuildProduct(value, [&](unsigned, Expr inner) { return leaves(inner) ? nullptr : inner; });
    return exprs.withOperands(selection, {condition, value ? value : exprs.floatConstant(1, e->type), zero});
  });
  if (!picked)
    return hoistFactors(e, j, body, present);
  Expr rest = hoistFactors(e, j, term, present);
  exprs.inheritName(e, rest);
  outside.insert(outside.begin(), {rest, false});
  Expr any = exprs.reduce(Monoid::or_, e->extent, j, picked, present, TypeAttr(), exprs.boundName(e));
  Expr value = exprs.op("arith.select", {any, rules.product(outside, e->type), zero}, e->type);
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}

/// R1 for maxima and minima: max_j (c + ξ) = c + max_j ξ, max_j (c − ξ) = c − min_j ξ and max_j σ·ξ
/// = σ·max_j ξ for σ ≥ 0. It moves parts free of j that read results over the range, and constants
/// next to them. A rounded sum or product is monotone in ξ, so no bit changes if such a part is
/// added or multiplied last. Other factors leave only if no extreme is compared: (x·σ)·y and
/// (x·y)·σ round differently, so that no element might equal the maximum. Over an empty range the
/// result stays the identity.
Expr Derivation::hoistFromExtreme(Expr e, int64_t j, Expr body, Expr present) {
  bool isExtreme = e->monoid == Monoid::max || e->monoid == Monoid::min;
  if (!enabled("R1") || !isExtreme || !isa<FloatType>(e->type))
    return nullptr;
  auto leaves = [&](Expr part) {
    return !part->dependsOn(j) &&
           llvm::any_of(outermostReductions(part), [&](Expr result) { return result->extent == e->extent; });
  };
  auto extremeOf = [&](Monoid monoid, Expr term) {
    Expr rest = exprs.reduce(monoid, e->extent, j, term, present, e->rounds, exprs.boundName(e));
    exprs.inheritName(e, rest);
    Expr result = normalise(rest);
    exprs.inheritName(rest, result);
    return result;
  };
  Expr value = nullptr;
  if (body->isOp("arith.addf") || body->isOp("arith.subf")) {
    for (unsigned k : {0, 1}) {
      if (!leaves(body->operands[k]) || !body->operands[1 - k]->dependsOn(j))
        continue;
      bool isFlipped = body->isOp("arith.subf") && k == 0;
      Monoid other = e->monoid == Monoid::max ? Monoid::min : Monoid::max;
      SmallVector<Expr, 2> operands{body->operands[0], body->operands[1]};
      operands[1 - k] = extremeOf(isFlipped ? other : e->monoid, operands[1 - k]);
      value = exprs.withOperands(body, operands);
      break;
    }
  } else if (comparesExtremes) {
    SmallVector<std::pair<Expr, unsigned>> last; // products and quotients, with the operand that stays
    Expr rest = body;
    auto goes = [&](Expr factor) { return leaves(factor) && rules.isNonNegative(factor); };
    while (rest->isOp("arith.mulf") || rest->isOp("arith.divf")) {
      unsigned stays = goes(rest->operands[1]) ? 0 : 1;
      if (stays == 1 && (!rest->isOp("arith.mulf") || !goes(rest->operands[0])))
        break;
      last.push_back({rest, stays});
      rest = rest->operands[stays];
    }
    if (last.empty() || !rest->dependsOn(j))
      return nullptr;
    value = extremeOf(e->monoid, rest);
    for (auto [product, stays] : llvm::reverse(last)) {
      SmallVector<Expr, 2> operands{product->operands[0], product->operands[1]};
      operands[stays] = value;
      value = exprs.withOperands(product, operands);
    }
  } else {
    SmallVector<FoldRules::Factor> outside;
    bool readsResult = llvm::any_of(outermostReductions(body),
                                    [&](Expr result) { return result->extent == e->extent && !result->dependsOn(j); });
    auto goes = [&](Expr factor) {
      bool isConstant = readsResult && factor->kind == ExprKind::Const;
      return (isConstant || leaves(factor)) && rules.isNonNegative(factor);
    };
    llvm::copy_if(rules.factors(body), std::back_inserter(outside),
                  [&](const FoldRules::Factor &factor) { return goes(factor.base); });
    if (outside.empty())
      return nullptr;
    Expr term = rules.rebuildProduct(body, [&](unsigned, Expr factor) { return goes(factor) ? nullptr : factor; });
    // rebuildProduct() brings back the 1 of a quotient.
    if (!term || term == body || !term->dependsOn(j))
      return nullptr;
    outside.insert(outside.begin(), {extremeOf(e->monoid, term), false});
    value = rules.product(outside, e->type);
  }
  if (!value)
    return nullptr;
  Expr identity = exprs.constant(getIdentity(e->monoid, e->type), e->type);
  value = exprs.guarded(makeAny(e->extent, j, present), value, identity);
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}
