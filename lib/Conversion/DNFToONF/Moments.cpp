//===- Moments.cpp - R3 for sums of powers of differences ------------------===//
//
// The terms of Σ_j W_j · Π_i D_i with differences D_i = g_i(j) + h_i(d) do not separate. But when d
// becomes d', D_i grows by δ_i = h_i(d') − h_i(d), so that
//
//   Σ W · Π D_i(d') = Σ over sets S of Π_{i ∉ S} δ_i · (Σ W · Π_{i ∈ S} D_i(d)),
//
// where the sums on the right with fewer differences are further states of the fold. For a
// difference from a mean this is the update of B. P. Welford (Technometrics 4, 1962) and of T. F.
// Chan, G. H. Golub and R. J. LeVeque (The American Statistician 37, 1983).
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/FoldRules.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// Splits a product into factors without signs. Returns whether the product is negative.
static bool splitSign(FoldRules &rules, Expr e, SmallVectorImpl<FoldRules::Factor> &factors) {
  bool negative = false;
  std::function<void(Expr, bool)> go = [&](Expr node, bool divides) {
    for (const FoldRules::Factor &factor : rules.factors(node)) {
      if (factor.base->isOp("arith.negf")) {
        negative = !negative;
        go(factor.base->operands[0], divides != factor.divides);
      } else if (floatValue(factor.base) == -1) {
        negative = !negative;
      } else if (floatValue(factor.base) != 1) {
        factors.push_back({factor.base, divides != factor.divides});
      }
    }
  };
  go(e, false);
  return negative;
}

/// Returns whether two products have the same factors in some order.
static bool isSameProduct(ArrayRef<FoldRules::Factor> a, ArrayRef<FoldRules::Factor> b) {
  auto sorted = [](ArrayRef<FoldRules::Factor> list) {
    std::vector<std::pair<Expr, bool>> result;
    for (const FoldRules::Factor &factor : list)
      result.push_back({factor.base, factor.divides});
    std::sort(result.begin(), result.end());
    return result;
  };
  return sorted(a) == sorted(b);
}

bool FoldRules::splitDifferences(Expr body, const StateSet &states, int64_t j, Expr &weight,
                                 SmallVectorImpl<Difference> &differences) {
  constexpr size_t most = 4;
  Type type = body->type;
  SmallVector<Factor> rest;
  // Adds a factor to the weight or, to its power, to the differences. Returns false if it is
  // neither.
  auto take = [&](Expr base, bool divides, unsigned power, Expr exponent) {
    bool isMixed = base->dependsOn(j) && reads(base, states) && !splitMul(base, states, {j});
    if (!isMixed) {
      if (exponent)
        base = exprs.op("math.powf", {base, exponent});
      rest.push_back({base, divides});
      return true;
    }
    Split split = splitAdd(base, states, {j});
    if (divides || !split || differences.size() + power > most)
      return false;
    differences.append(power, {base, split.g, split.h});
    return true;
  };
  for (const Factor &factor : factors(body)) {
    Expr exponent = factor.base->isOp("math.powf") ? factor.base->operands[1] : nullptr;
    bool opens = false;
    unsigned power = 1;
    for (unsigned whole : {2, 3, 4})
      if (exponent && floatValue(exponent) == whole && !splitMul(factor.base, states, {j})) {
        opens = true;
        power = whole;
      }
    if (!opens) {
      if (!take(factor.base, factor.divides, 1, nullptr))
        return false;
      continue;
    }
    for (const Factor &part : factors(factor.base->operands[0]))
      if (!take(part.base, part.divides != factor.divides, power, exponent))
        return false;
  }
  weight = product(rest, type);
  return !differences.empty();
}

bool FoldRules::isExtremeDifference(const Difference &difference, const StateSet &states,
                                    llvm::function_ref<Expr(Expr)> stateBody) {
  auto stripped = [](Expr e, bool &negative) {
    negative = e->isOp("arith.negf");
    return negative ? e->operands[0] : e;
  };
  bool isNegative, isNegativeElement;
  Expr state = stripped(difference.h, isNegative);
  Expr element = stripped(difference.g, isNegativeElement);
  return states.contains(state) && (state->monoid == Monoid::max || state->monoid == Monoid::min) &&
         isNegative != isNegativeElement && stateBody(state) == element;
}

/// Returns the state Σ W if the difference is x − (Σ W·x)/(Σ W) or its negative; null otherwise.
Expr FoldRules::meanWeight(const Difference &difference, Expr weight, const StateSet &states,
                           llvm::function_ref<Expr(Expr)> stateBody) {
  SmallVector<Factor> mean, element, weights, terms;
  bool sign = splitSign(*this, difference.h, mean);
  if (splitSign(*this, difference.g, element) == sign || splitSign(*this, weight, weights))
    return nullptr;
  Expr sum = nullptr, count = nullptr;
  for (const Factor &factor : mean) {
    Expr base = factor.base;
    if (!reads(base, states)) {
      terms.push_back(factor);
    } else if (!factor.divides && !sum && states.contains(base) && base->monoid == Monoid::add) {
      sum = base;
    } else if (factor.divides && !count) {
      count = base;
    } else {
      return nullptr;
    }
  }
  if (!sum || !count)
    return nullptr;
  // max(count, c) with c ≤ 1, a common guard against 0, changes no mean of existing elements.
  if (weights.empty() && (count->isOp("arith.maximumf") || count->isOp("arith.maxnumf")))
    for (unsigned k : {0, 1})
      if (count->operands[k]->kind == ExprKind::Const &&
          cast<FloatAttr>(count->operands[k]->value).getValueAsDouble() <= 1) {
        count = count->operands[1 - k];
        break;
      }
  bool isWhole = false;
  while (count->isOp("arith.sitofp") || count->isOp("arith.index_cast") || count->isOp("arith.extsi")) {
    count = count->operands[0];
    isWhole = true;
  }
  if (!states.contains(count) || count->monoid != Monoid::add)
    return nullptr;
  SmallVector<Factor> counted, summed;
  Expr one = stateBody(count);
  if (isWhole) {
    auto number = one->kind == ExprKind::Const ? dyn_cast<IntegerAttr>(one->value) : IntegerAttr();
    if (!number || !number.getValue().isOne() || !weights.empty())
      return nullptr;
  } else if (splitSign(*this, one, counted) || !isSameProduct(counted, weights)) {
    return nullptr;
  }
  if (splitSign(*this, stateBody(sum), summed))
    return nullptr;
  terms.append(summed);
  weights.append(element);
  return isSameProduct(terms, weights) ? count : nullptr;
}

/// Lists the refs of a rescale and their singular points. These are the points of the weight's
/// factor H, and 0 for a sum of weights, because there is no mean yet. Returns false if terms do
/// not vanish there.
bool FoldRules::guardMoments(RescaleRule &rescale, Expr weight, ArrayRef<Expr> counts, const StateSet &states,
                             llvm::function_ref<Expr(Expr)> stateBody) {
  for (Expr state : states) {
    bool inWeight = readsState(rescale.h, state);
    if (!inWeight && llvm::none_of(rescale.from, [&](Expr h) { return readsState(h, state); }))
      continue;
    std::optional<double> singular;
    if (inWeight)
      singular = singularPoint(rescale.h, state, states);
    if (singular && !vanishesAt(rescale.g, stateBody(state), *singular))
      return false;
    bool isCount = stateBody(state)->kind == ExprKind::Const; // never 0 if there is an element
    if (!inWeight && llvm::is_contained(counts, state) && !isCount) {
      singular = 0;
      if (!vanishesAt(weight, stateBody(state), 0))
        return false;
    }
    rescale.refs.push_back(state);
    rescale.singular.push_back(singular ? *singular : std::nan(""));
  }
  return true;
}

/// Does not enter reductions, because their terms have ranges of their own.
Expr FoldRules::whereAny(Expr e, Expr any) {
  llvm::DenseMap<Expr, Expr> known;
  std::function<Expr(Expr)> pick = [&](Expr node) -> Expr {
    if (node->kind != ExprKind::Op)
      return node;
    if (auto it = known.find(node); it != known.end())
      return it->second;
    if (node->isOp("arith.select") && node->operands[0] == any)
      return known[node] = pick(node->operands[1]);
    SmallVector<Expr> operands;
    for (Expr operand : node->operands)
      operands.push_back(pick(operand));
    bool isSame = ArrayRef<Expr>(operands) == ArrayRef<Expr>(node->operands);
    return known[node] = isSame ? node : exprs.withOperands(node, operands);
  };
  return pick(e);
}

RescaleRule FoldRules::moments(Expr t, Expr body, Expr present, Expr any, const StateSet &states, int64_t j,
                               llvm::function_ref<Expr(Expr)> stateBody) {
  RescaleRule none;
  none.blocked = body;
  if (t->monoid != Monoid::add || !isa<FloatType>(t->type) || t->rounds)
    return none;
  body = whereAny(body, any); // a term is only read where it is present
  RescaleRule result;
  Expr weight = nullptr;
  SmallVector<Difference> differences;
  if (!splitDifferences(body, states, j, weight, differences))
    return none;
  Split split = splitMul(weight, states, {j});
  if (!split || (reads(split.h, states) && !shrinks(split.h, states)))
    return none;
  result.g = split.g;
  result.h = split.h;
  SmallVector<Expr> counts;
  for (const Difference &difference : differences) {
    bool isExtreme = isExtremeDifference(difference, states, stateBody);
    Expr count = isExtreme ? nullptr : meanWeight(difference, weight, states, stateBody);
    if (!isExtreme && (!count || !isNonNegative(weight)))
      return none;
    if (count)
      counts.push_back(count);
    result.from.push_back(difference.h);
  }
  if (!guardMoments(result, weight, counts, states, stateBody))
    return none;
  // Powers are multiplied out, so that a product shares the product of one factor less.
  auto termWithout = [&](unsigned lacks) {
    SmallVector<Factor> factors{{weight, false}};
    for (unsigned i = 0; i < differences.size(); ++i)
      if (!(lacks >> i & 1))
        factors.push_back({differences[i].base, false});
    if (factors.size() > 1 && floatValue(weight) == 1)
      factors.erase(factors.begin());
    return product(factors, t->type);
  };
  llvm::MapVector<Expr, SmallVector<unsigned>> others;
  unsigned all = (1u << differences.size()) - 1;
  for (unsigned lacks = all; lacks; --lacks) {
    others[exprs.sumOver(t, j, termWithout(lacks), present)].push_back(lacks);
  }
  for (auto &[sum, lacks] : others)
    result.others.push_back({sum, lacks, static_cast<unsigned>(differences.size()) - llvm::popcount(lacks.front())});
  result.term = termWithout(0);
  return result;
}
