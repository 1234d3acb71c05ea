//===- Expansion.cpp - R6, finite separation rank --------------------------===//
//
// Σ_j F(j, d) = Σ_r H_r(d) · Σ_j G_r(j) for a product F whose factors are sums of products of
// elements and earlier results, such as (x_j − s/n)². The sums on the right read no result, so they
// need no pass of their own. A plain expansion would cancel. Each part G is therefore measured from
// its own first value K (the shifted-data algorithm: Chan, Golub, LeVeque, The American
// Statistician 37, 1983), and a mean of parts becomes the mean of their distances from K:
//
//   Σ (x − s/n)² = Σ y² − 2·(Σ y/n)·Σ y + n·(Σ y/n)²,  y = x − x_0.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

namespace {

/// One term of a sum of products: G depends on the index, H on results.
struct Summand {
  SmallVector<Expr> g, h;
  bool isShifted = false; // g is measured from its first value
};
using Summands = SmallVector<Summand>;
constexpr size_t kMostSummands = 8;

class SumExpansion {
public:
  SumExpansion(ExprContext &exprs, FoldRules &rules, Expr sum, int64_t j)
      : exprs(exprs), rules(rules), sum(sum), j(j), type(sum->type) {}

  /// Returns the expansion of `body`, or null if it does not have this form.
  Expr run(Expr body);

private:
  bool weighsResults(Expr weights, const StateSet &results);
  bool readsResult(Expr e);
  bool isMixed(Expr e) { return e->dependsOn(j) && readsResult(e); }
  std::optional<Summands> separate(Expr e);
  std::optional<Summands> product(const Summands &a, const Summands &b);
  bool addsExtremes(const Summands &terms);
  bool canShift(const Summands &terms);
  Summands shifted(const Summands &terms);
  Expr count();
  std::optional<Expr> meanOfDistances(Expr h, Expr g, Expr first);
  Expr firstValue(Expr g);
  Expr multiply(ArrayRef<Expr> factors);
  Expr op(StringRef name, Expr a, Expr b) { return exprs.op(name, {a, b}); }

  ExprContext &exprs;
  FoldRules &rules;
  Expr sum;
  int64_t j;
  Type type;
};

/// Returns whether a factor of the weights also scales the terms of results. The first value is
/// within √n deviations of a mean, but not of a weighted mean: an element of little weight may be
/// anywhere.
bool SumExpansion::weighsResults(Expr weights, const StateSet &results) {
  StateSet factors;
  for (const FoldRules::Factor &factor : rules.factors(weights))
    if (factor.base->dependsOn(j))
      factors.insert(factor.base);
  return llvm::any_of(results, [&](Expr result) {
    return result->extent == sum->extent && rules.reads(exprs.open(result, j).first, factors);
  });
}

/// Returns whether `e` reads results of reductions over the same range without conditions.
bool SumExpansion::readsResult(Expr e) {
  return llvm::any_of(outermostReductions(e),
                      [&](Expr r) { return r->extent == sum->extent && !r->dependsOn(j) && !r->getPresent(); });
}

Expr SumExpansion::multiply(ArrayRef<Expr> factors) {
  Expr result = nullptr;
  for (Expr factor : factors)
    result = result ? op("arith.mulf", result, factor) : factor;
  return result ? result : exprs.floatConstant(1, type);
}

std::optional<Summands> SumExpansion::product(const Summands &a, const Summands &b) {
  Summands result;
  for (const Summand &x : a)
    for (const Summand &y : b) {
      Summand both = x;
      both.g.append(y.g);
      both.h.append(y.h);
      both.isShifted |= y.isShifted;
      llvm::stable_sort(both.g, [](Expr p, Expr q) { return p->serial < q->serial; });
      result.push_back(std::move(both));
    }
  if (result.size() > 4 * kMostSummands)
    return std::nullopt;
  return result;
}

/// Returns e as a sum of products.
std::optional<Summands> SumExpansion::separate(Expr e) {
  if (!readsResult(e))
    return e->dependsOn(j) ? Summands{Summand{{e}, {}}} : Summands{Summand{{}, {e}}};
  if (!e->dependsOn(j))
    return Summands{Summand{{}, {e}}};
  auto part = [&](unsigned k) { return separate(e->operands[k]); };
  // A factor that is a sum is measured from its first value before it is multiplied, because its
  // parts then no longer cancel.
  auto factor = [&](unsigned k) {
    auto terms = part(k);
    if (!terms || terms->size() < 2)
      return terms;
    return canShift(*terms) ? std::optional<Summands>(shifted(*terms)) : std::nullopt;
  };
  auto negated = [&](Summands terms) {
    for (Summand &term : terms)
      term.h.push_back(exprs.floatConstant(-1, type));
    return terms;
  };
  if (e->isOp("arith.addf") || e->isOp("arith.subf")) {
    auto a = part(0);
    auto b = a ? part(1) : a; // skip b after a failure: chains would double the work
    if (!b)
      return std::nullopt;
    a->append(e->isOp("arith.subf") ? negated(*b) : *b);
    if (a->size() > 4 * kMostSummands)
      return std::nullopt;
    return a;
  }
  if (e->isOp("arith.negf")) {
    auto a = part(0);
    return a ? std::optional<Summands>(negated(*a)) : a;
  }
  if (e->isOp("arith.mulf")) {
    auto a = factor(0);
    auto b = a ? factor(1) : a;
    return b ? product(*a, *b) : std::nullopt;
  }
  if (e->isOp("arith.divf") && !isMixed(e->operands[1])) {
    auto a = part(0);
    if (!a)
      return a;
    Expr inverse = op("arith.divf", exprs.floatConstant(1, type), e->operands[1]);
    for (Summand &term : *a)
      (inverse->dependsOn(j) ? term.g : term.h).push_back(inverse);
    return a;
  }
  if (e->isOp("math.powf") && e->operands[1]->kind == ExprKind::Const) {
    double power = *floatValue(e->operands[1]);
    if (power != 2 && power != 3 && power != 4)
      return std::nullopt;
    auto base = factor(0), result = base;
    for (int k = 1; result && k < power; ++k)
      result = product(*result, *base);
    return result;
  }
  if (e->isOp("math.log")) { // log(G·H) = log G + log H, and log e^u = u
    StateSet states;
    for (Expr result : outermostReductions(e))
      if (!result->dependsOn(j))
        states.insert(result);
    Split split = rules.splitMul(e->operands[0], states, {j});
    // A product of two negative factors has a logarithm, but the factors have none.
    if (!split)
      return std::nullopt;
    auto log = [&](Expr x) { return x->isOp("math.exp") ? x->operands[0] : exprs.op("math.log", {x}); };
    SmallVector<Expr> g, h;
    Summands result;
    for (const FoldRules::Factor &ofProduct : rules.factors(op("arith.mulf", split.g, split.h))) {
      if (!rules.isNonNegative(ofProduct.base)) // as in a square
        return std::nullopt;
      Expr value = log(ofProduct.base);
      Summand term;
      (ofProduct.base->dependsOn(j) ? term.g : term.h).push_back(value);
      if (ofProduct.divides)
        term.h.push_back(exprs.floatConstant(-1, type));
      if (floatValue(ofProduct.base) != 1)
        result.push_back(std::move(term));
    }
    return result;
  }
  return std::nullopt;
}

/// Returns g at index 0, and 0 over an empty range, where its reductions then read nothing.
Expr SumExpansion::firstValue(Expr g) {
  Type index = IndexType::get(exprs.getContext());
  Expr zero = exprs.constant(IntegerAttr::get(index, 0), index);
  const SymExpr &extent = sum->extent.getValue();
  auto n = extent.getConstant();
  bool isNeverEmpty = n && *n > 0;
  Expr any = exprs.greater(exprs.extent(extent), zero);
  std::function<Expr(Expr)> atZero = [&](Expr e) -> Expr {
    if (e->kind == ExprKind::Index)
      return e->id == j ? zero : nullptr;
    if (e->kind != ExprKind::Reduce || !e->dependsOn(j) || isNeverEmpty)
      return nullptr;
    int64_t k = exprs.freshIndex(exprs.boundName(e));
    auto [body, present] = exprs.open(e, k);
    body = exprs.replace(body, atZero);
    present = present ? exprs.op("arith.andi", {any, exprs.replace(present, atZero)}) : any;
    return exprs.reduce(e->monoid, e->extent, k, body, present, e->rounds, exprs.boundName(e), e->function);
  };
  Expr first = exprs.replace(g, atZero);
  if (isNeverEmpty)
    return first;
  return exprs.op("arith.select", {any, first, exprs.floatConstant(0, type)}, type);
}

/// For h = −(Σ g)/n returns h + K = −(Σ (g − K))/n, the distance of the first value K from the
/// mean. Returns nothing for other h.
std::optional<Expr> SumExpansion::meanOfDistances(Expr h, Expr g, Expr first) {
  bool negative = false;
  SmallVector<FoldRules::Factor> factors;
  constexpr size_t most = 32; // a mean has three factors and some signs
  std::function<void(Expr, bool)> go = [&](Expr e, bool divides) {
    if (factors.size() > most)
      return;
    if (e->isOp("arith.negf")) {
      negative = !negative;
      return go(e->operands[0], divides);
    }
    if (e->isOp("arith.mulf") || e->isOp("arith.divf")) {
      go(e->operands[0], divides);
      return go(e->operands[1], divides != e->isOp("arith.divf"));
    }
    factors.push_back({e, divides});
  };
  go(h, false);
  if (factors.size() > most)
    return std::nullopt;
  Expr result = nullptr, count = nullptr;
  for (const FoldRules::Factor &factor : factors) {
    Expr base = factor.base;
    auto constant = floatValue(base);
    if (constant && std::fabs(*constant) == 1) {
      negative ^= *constant < 0;
    } else if (base->kind == ExprKind::Reduce && !factor.divides && !result) {
      result = base;
    } else if (factor.divides && !count) {
      count = base;
    } else {
      return std::nullopt;
    }
  }
  if (!negative || !result || !count || result->monoid != Monoid::add || result->extent != sum->extent ||
      result->getPresent() || exprs.open(result, j).first != g)
    return std::nullopt;
  // n as a float: a constant, or a conversion of the extent.
  const SymExpr &extent = sum->extent.getValue();
  if (count->kind == ExprKind::Const) {
    auto value = floatValue(count);
    auto n = extent.getConstant();
    if (!value || !n || *value != static_cast<double>(*n))
      return std::nullopt;
  } else {
    Expr inner = count;
    while (inner->isOp("arith.sitofp") || inner->isOp("arith.index_cast"))
      inner = inner->operands[0];
    if (inner == count || inner->kind != ExprKind::Extent || inner->extent != sum->extent)
      return std::nullopt;
  }
  Expr distance = op("arith.subf", g, first);
  Expr sums = exprs.sumOver(sum, j, distance, nullptr);
  return op("arith.divf", exprs.op("arith.negf", {sums}), count);
}

/// Returns whether an addend without the index comes from maxima and minima alone. These are exact:
/// a difference from them has no error of their size, but its expansion would.
bool SumExpansion::addsExtremes(const Summands &terms) {
  return llvm::any_of(terms, [&](const Summand &term) {
    SmallVector<Expr> results = term.g.empty() ? outermostReductions(multiply(term.h)) : SmallVector<Expr>();
    return !results.empty() && llvm::all_of(results, [](Expr result) {
      return result->monoid == Monoid::max || result->monoid == Monoid::min;
    });
  });
}

/// Returns whether no first value is itself a result over a range of this length, which would make
/// the new sums mixed again.
bool SumExpansion::canShift(const Summands &terms) {
  return llvm::none_of(terms, [&](const Summand &term) {
    return !term.g.empty() && !term.isShifted && readsResult(firstValue(multiply(term.g)));
  });
}

/// Σ_r G_r·H_r = Σ_r (G_r − K_r)·H_r + Σ_r K_r·H_r.
Summands SumExpansion::shifted(const Summands &terms) {
  Summands result;
  SmallVector<Expr> constants;
  for (const Summand &term : terms)
    if (term.g.empty())
      constants.push_back(multiply(term.h));
  for (const Summand &term : terms) {
    if (term.g.empty())
      continue;
    if (term.isShifted) {
      result.push_back(term);
      continue;
    }
    Expr g = multiply(term.g), first = firstValue(g);
    Summand moved;
    moved.isShifted = true;
    moved.g.push_back(op("arith.subf", g, first));
    moved.h = term.h;
    result.push_back(std::move(moved));
    bool absorbed = false;
    if (term.h.empty())
      for (Expr &constant : constants)
        if (auto mean = meanOfDistances(constant, g, first)) {
          constant = *mean;
          absorbed = true;
          break;
        }
    if (!absorbed) {
      SmallVector<Expr> factors(term.h);
      factors.push_back(first);
      constants.push_back(multiply(factors));
    }
  }
  Expr rest = nullptr;
  for (Expr constant : constants)
    rest = rest ? op("arith.addf", rest, constant) : constant;
  if (rest)
    result.push_back(Summand{{}, {rest}});
  return result;
}

/// Returns Σ 1: the extent as a float.
Expr SumExpansion::count() {
  const SymExpr &extent = sum->extent.getValue();
  if (auto n = extent.getConstant())
    return exprs.floatConstant(static_cast<double>(*n), type);
  Expr wide = exprs.op("arith.index_cast", {exprs.extent(extent)}, IntegerType::get(exprs.getContext(), 64));
  return exprs.op("arith.sitofp", {wide}, type);
}

Expr SumExpansion::run(Expr body) {
  Summands all{Summand{}};
  SmallVector<Expr> others;
  bool expanded = false;
  Expr rest =
      rules.rebuildProduct(body, [&](unsigned, Expr factor) -> Expr { return isMixed(factor) ? nullptr : factor; });
  StateSet states;
  for (Expr result : outermostReductions(body))
    if (!result->dependsOn(j))
      states.insert(result);
  for (const FoldRules::Factor &factor : rules.factors(body)) {
    if (!isMixed(factor.base))
      continue;
    if (rules.splitMul(factor.base, states, {j})) { // left to R3
      rest = rest ? op(factor.divides ? "arith.divf" : "arith.mulf", rest, factor.base)
                  : (factor.divides ? op("arith.divf", exprs.floatConstant(1, type), factor.base) : factor.base);
      continue;
    }
    if (factor.divides)
      return nullptr;
    auto terms = separate(factor.base);
    if (!terms || terms->size() < 2 || addsExtremes(*terms) || !canShift(*terms))
      return nullptr;
    auto next = product(all, shifted(*terms));
    if (!next)
      return nullptr;
    all = std::move(*next);
    expanded = true;
  }
  if (!expanded)
    return nullptr;
  if (rest && weighsResults(rest, states))
    return nullptr;
  // One sum per distinct G, times the sum of its coefficients.
  llvm::MapVector<Expr, Expr> coefficients;
  for (const Summand &term : all) {
    Expr g = multiply(term.g), h = multiply(term.h);
    Expr &known = coefficients[g];
    known = known ? op("arith.addf", known, h) : h;
  }
  if (coefficients.size() > kMostSummands)
    return nullptr;
  Expr value = nullptr;
  for (auto &[g, h] : coefficients) {
    bool isOne = g->kind == ExprKind::Const;
    Expr term = !rest ? g : isOne ? rest : op("arith.mulf", rest, g);
    Expr part = count();
    if (rest || !isOne)
      part = exprs.sumOver(sum, j, term, nullptr);
    Expr scaled = op("arith.mulf", h, part);
    value = value ? op("arith.addf", value, scaled) : scaled;
  }
  return value;
}

} // namespace

Expr moa::expandSum(ExprContext &exprs, FoldRules &rules, Expr sum, int64_t j, Expr body) {
  return SumExpansion(exprs, rules, sum, j).run(body);
}
