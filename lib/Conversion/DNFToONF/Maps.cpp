//===- Maps.cpp - R1 for maps from one monoid to another -------------------===//
//
// A map φ with φ(a ⊕ b) = φ(a) ⊛ φ(b) leaves a reduction: ⊛_j φ(ξ_j) = φ(⊕_j ξ_j). Where φ
// depends on results over the range, what is left inside does not:
//
//   max_j φ(ξ) = φ(max_j ξ),  φ not decreasing in ξ;  φ(min_j ξ) where it is not increasing
//   max_j max(a, b) = max(max_j a, max_j b),  max_j |u| = max(max_j u, −min_j u)
//   ∨_j (ξ > σ) = (max_j ξ) > σ,  ∧_j (ξ ≤ σ) = (max_j ξ) ≤ σ
//   Π_j σ·ξ = σⁿ·Π_j ξ,  Π_j e^u = e^(Σ_j u)
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/Observer.h"

using namespace mlir;
using namespace moa;

/// Results of reductions over the range of `e` in a term at index `j`.
static StateSet resultsOver(Expr e, int64_t j, Expr term) {
  StateSet results;
  for (Expr result : outermostReductions(term))
    if (result->extent == e->extent && !result->dependsOn(j))
      results.insert(result);
  return results;
}

static bool isExtreme(Monoid monoid) { return monoid == Monoid::max || monoid == Monoid::min; }

static Monoid opposite(Monoid monoid) {
  return monoid == Monoid::max ? Monoid::min : Monoid::max;
}

namespace {

/// How a function of one operand that depends on the index follows it.
struct Step {
  unsigned operand;
  bool falls;
};

} // namespace

/// Rounded, these are monotone as well; of functions up to the error of one.
static std::optional<Step> monotoneStep(FoldRules &rules, Expr e, int64_t j) {
  for (const char *name : {"math.exp", "math.exp2", "math.log", "math.sqrt", "math.tanh", "math.erf",
                           "math.floor", "math.ceil", "math.roundeven", "arith.extf",
                           "arith.truncf"})
    if (e->isOp(name))
      return Step{0, false};
  if (e->isOp("arith.negf"))
    return Step{0, true};
  if (e->operands.size() != 2 || e->operands[0]->dependsOn(j) == e->operands[1]->dependsOn(j))
    return std::nullopt;
  unsigned k = e->operands[0]->dependsOn(j) ? 0 : 1;
  Expr other = e->operands[1 - k];
  if (e->isOp("arith.addf") || e->isOp("arith.maximumf") || e->isOp("arith.minimumf"))
    return Step{k, false};
  if (e->isOp("arith.subf"))
    return Step{k, k == 1};
  if (e->isOp("arith.mulf") && rules.isNonNegative(other))
    return Step{k, false};
  if (e->isOp("arith.divf") && k == 0 && rules.isNonNegative(other))
    return Step{k, false};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Maxima and minima
//===----------------------------------------------------------------------===//

/// Sums and products are hoistFromExtreme's.
Expr Derivation::mapExtreme(Expr e, int64_t j, Expr body, Expr present) {
  if (!enabled("R1") || !isExtreme(e->monoid) || !isa<FloatType>(e->type) || e->rounds)
    return nullptr;
  StateSet results = resultsOver(e, j, body);
  if (results.empty() || !body->dependsOn(j))
    return nullptr;
  auto extremeOf = [&](Monoid monoid, Expr term) {
    Expr rest = exprs.reduce(monoid, e->extent, j, term, present, TypeAttr(), exprs.boundName(e));
    exprs.inheritName(e, rest);
    Expr result = normalise(rest);
    exprs.inheritName(rest, result);
    return result;
  };
  Expr value = nullptr;
  bool isJoin = body->isOp(e->monoid == Monoid::max ? "arith.maximumf" : "arith.minimumf");
  if (isJoin && body->operands[0]->dependsOn(j) && body->operands[1]->dependsOn(j)) {
    value = exprs.op(*body->op, body->attributes,
                     {extremeOf(e->monoid, body->operands[0]), extremeOf(e->monoid, body->operands[1])},
                     e->type);
  } else if (body->isOp("math.absf") && e->monoid == Monoid::max &&
             rules.splitAdd(body->operands[0], results, {j})) {
    Expr most = extremeOf(Monoid::max, body->operands[0]);
    Expr least = extremeOf(Monoid::min, body->operands[0]);
    value = exprs.op("arith.maximumf", {most, exprs.op("arith.negf", {least}, e->type)}, e->type);
  } else if (auto step = monotoneStep(rules, body, j);
             step && body->operands[step->operand]->type == e->type) {
    SmallVector<Expr, 3> operands(body->operands);
    operands[step->operand] = extremeOf(step->falls ? opposite(e->monoid) : e->monoid,
                                        operands[step->operand]);
    value = exprs.op(*body->op, body->attributes, operands, e->type);
  }
  if (!value)
    return nullptr;
  if (Expr any = makeAny(e->extent, j, present); any != exprs.boolean(true)) {
    Expr identity = exprs.constant(getIdentity(e->monoid, e->type), e->type);
    value = exprs.op("arith.select", {any, value, identity}, e->type);
  }
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

namespace {

/// ξ > σ or the like: the side with the index, which way it compares, and whether
/// equal ones satisfy it.
struct Comparison {
  unsigned side;
  bool isGreater, isStrict;
};

} // namespace

static std::optional<Comparison> readComparison(Expr e, int64_t j) {
  bool isFloat = e->isOp("arith.cmpf");
  if (!isFloat && !e->isOp("arith.cmpi"))
    return std::nullopt;
  if (e->operands[0]->dependsOn(j) == e->operands[1]->dependsOn(j))
    return std::nullopt;
  unsigned side = e->operands[0]->dependsOn(j) ? 0 : 1;
  // The numbers of arith's predicates: ogt 2, oge 3, olt 4, ole 5; slt 2, sle 3, sgt 4, sge 5.
  int64_t predicate = cast<IntegerAttr>(e->attributes.get("predicate")).getInt();
  if (predicate < 2 || predicate > 5)
    return std::nullopt;
  bool isGreater = (predicate < 4) == isFloat;
  return Comparison{side, isGreater == (side == 0), predicate % 2 == 0};
}

/// ∨ (ξ > σ ∧ q) and ∧ (ξ ≤ σ ∨ q): ξ without results of the range, or a chain of monotone
/// functions of what is. A NaN satisfies no comparison: a disjunction does not see it,
/// a conjunction is false by it, as the extreme then is NaN.
Expr Derivation::compareExtreme(Expr e, int64_t j, Expr body, Expr present) {
  bool isAny = e->monoid == Monoid::or_;
  if (!enabled("R1") || (!isAny && e->monoid != Monoid::and_) || resultsOver(e, j, body).empty())
    return nullptr;
  auto both = [&](Expr a, Expr b) { return a ? exprs.op("arith.andi", {a, b}, b->type) : b; };
  auto logical = [&](Monoid monoid, Expr term) {
    return normalise(exprs.reduce(monoid, e->extent, j, term, present, TypeAttr(), exprs.boundName(e)));
  };
  Type truth = e->type;
  Expr yes = exprs.boolean(true), value = nullptr;
  auto negated = [&](Expr x) { return exprs.op("arith.xori", {x, yes}, truth); };
  if (body->isOp(isAny ? "arith.ori" : "arith.andi"))
    value = exprs.op(*body->op, body->attributes,
                     {logical(e->monoid, body->operands[0]), logical(e->monoid, body->operands[1])},
                     truth);
  else if (body->isOp("arith.xori") && body->operands[1] == yes)
    value = negated(logical(isAny ? Monoid::and_ : Monoid::or_, body->operands[0]));
  if (value) {
    if (observer)
      observer->rewrote("R1", e, j, body, present, value);
    return value;
  }
  // One comparison reads results; the conditions beside it do not.
  Expr compared = nullptr, beside = nullptr;
  bool isOne = true;
  std::function<void(Expr)> sort = [&](Expr part) {
    if (part->isOp(isAny ? "arith.andi" : "arith.ori")) {
      sort(part->operands[0]);
      return sort(part->operands[1]);
    }
    if (resultsOver(e, j, part).empty()) {
      beside = beside ? exprs.op(isAny ? "arith.andi" : "arith.ori", {beside, part}, truth) : part;
      return;
    }
    isOne &= !compared;
    compared = part;
  };
  sort(body);
  auto comparison = isOne ? readComparison(compared, j) : std::nullopt;
  if (!comparison)
    return nullptr;
  Expr inner = compared->operands[comparison->side];
  Monoid monoid = comparison->isGreater == isAny ? Monoid::max : Monoid::min;
  SmallVector<std::pair<Expr, unsigned>> functions;
  while (!resultsOver(e, j, inner).empty()) {
    auto step = monotoneStep(rules, inner, j);
    if (!step)
      return nullptr;
    functions.emplace_back(inner, step->operand);
    if (step->falls)
      monoid = opposite(monoid);
    inner = inner->operands[step->operand];
  }
  if (!inner->type.isIntOrFloat() || inner->type.isInteger(1))
    return nullptr;
  bool isFloat = isa<FloatType>(inner->type);
  Expr picked = beside && !isAny ? negated(beside) : beside;
  if (isAny && isFloat) {
    auto ordered = NamedAttribute(StringAttr::get(exprs.getContext(), "predicate"),
                                  IntegerAttr::get(IntegerType::get(exprs.getContext(), 64), 7));
    picked = both(picked, exprs.op(OperationName("arith.cmpf", exprs.getContext()),
                                   DictionaryAttr::get(exprs.getContext(), {ordered}),
                                   {inner, inner}, truth));
  }
  Expr term = inner;
  if (picked) {
    Expr identity = exprs.constant(getIdentity(monoid, inner->type), inner->type);
    term = exprs.op("arith.select", {picked, inner, identity}, inner->type);
  }
  value = normalise(exprs.reduce(monoid, e->extent, j, term, present, TypeAttr(), exprs.boundName(e)));
  exprs.inheritName(e, value);
  for (auto [function, operand] : llvm::reverse(functions)) {
    SmallVector<Expr, 3> operands(function->operands);
    operands[operand] = value;
    value = exprs.op(*function->op, function->attributes, operands, function->type);
  }
  SmallVector<Expr, 3> sides(compared->operands);
  sides[comparison->side] = value;
  value = exprs.op(*compared->op, compared->attributes, sides, truth);
  // Over nothing the extreme is its identity, which σ may be as well.
  Expr any = picked ? exprs.reduce(Monoid::or_, e->extent, j, picked, present, TypeAttr(),
                                   exprs.boundName(e))
                    : makeAny(e->extent, j, present);
  if (!isAny && any != yes)
    value = exprs.op("arith.ori", {negated(any), value}, truth);
  else if (isAny && (!comparison->isStrict || !functions.empty()) && any != yes)
    value = exprs.op("arith.andi", {any, value}, truth);
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Σ u instead of Π e^u leaves the range no sooner. A σ leaves terms that are at most 1.
Expr Derivation::hoistFromProduct(Expr e, int64_t j, Expr body, Expr present) {
  if (!enabled("R1") || e->monoid != Monoid::mul || !isa<FloatType>(e->type) || e->rounds)
    return nullptr;
  SmallVector<FoldRules::Factor> outside;
  SmallVector<Expr> exponents;
  auto goes = [&](Expr factor) {
    return !factor->dependsOn(j) && !resultsOver(e, j, factor).empty() &&
           !readsExtremesOnly(factor) && rules.isNonNegative(factor);
  };
  auto isPower = [&](Expr factor) {
    return factor->isOp("math.exp") && factor->dependsOn(j) && !resultsOver(e, j, factor).empty();
  };
  for (const FoldRules::Factor &factor : rules.factors(body)) {
    if (goes(factor.base))
      outside.push_back(factor);
    else if (isPower(factor.base))
      exponents.push_back(factor.divides
                              ? exprs.op("arith.negf", {factor.base->operands[0]}, e->type)
                              : factor.base->operands[0]);
  }
  if (outside.empty() && exponents.empty())
    return nullptr;
  // Without σ a product of many may leave the range where it does not beside it.
  bool areAtMostOne = llvm::all_of(rules.factors(body), [&](const FoldRules::Factor &factor) {
    return !factor.base->dependsOn(j) || (!factor.divides && isAtMostOne(e, j, factor.base, present));
  });
  if (!outside.empty() && !areAtMostOne)
    return nullptr;
  Expr term = rules.rebuildProduct(body, [&](unsigned, Expr factor) {
    return goes(factor) || isPower(factor) ? nullptr : factor;
  });
  auto over = [&](Monoid monoid, Expr inner) {
    Expr rest = exprs.reduce(monoid, e->extent, j, inner, present, TypeAttr(), exprs.boundName(e));
    exprs.inheritPlace(e, rest);
    return normalise(rest);
  };
  SmallVector<FoldRules::Factor> parts;
  if (term)
    parts.push_back({over(Monoid::mul, term), false});
  if (!exponents.empty()) {
    Expr sum = exponents.front();
    for (Expr exponent : llvm::drop_begin(exponents))
      sum = exprs.op("arith.addf", {sum, exponent}, e->type);
    parts.push_back({exprs.op("math.exp", {over(Monoid::add, sum)}, e->type), false});
  }
  if (!outside.empty()) {
    Expr count = makeCount(exprs, e->extent, j, present, e->type);
    for (const FoldRules::Factor &factor : outside)
      parts.push_back({exprs.op("math.powf", {factor.base, count}, e->type), factor.divides});
  }
  Expr value = rules.product(parts, e->type);
  if (Expr any = makeAny(e->extent, j, present); any != exprs.boolean(true))
    value = exprs.op("arith.select", {any, value, exprs.floatConstant(1, e->type)}, e->type);
  if (observer)
    observer->rewrote("R1", e, j, body, present, value);
  return value;
}
