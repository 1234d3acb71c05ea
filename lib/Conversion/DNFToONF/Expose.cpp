//===- Expose.cpp - R1: factors that leave the functions of a term ---------===//
//
// A result that normalises a term may stand inside of a function that is homogeneous:
//
//   |σ·ξ| = |σ|·|ξ|,  √(σ·ξ) = √σ·√ξ,  (σ·ξ)^p = σ^p·ξ^p,
//   max(σ·ξ, σ·η) = σ·max(ξ, η),  σ·ξ ± σ·η = σ·(ξ ± η),  p ? σ·ξ : σ·η = σ·(p ? ξ : η)
//
// for σ ≥ 0 where the function asks for it. Written so it is a factor of the term, which
// R1 moves out of the reduction.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

namespace {

/// A value as rest · Π outside; a rest that is null is 1.
struct Parts {
  Expr rest = nullptr;
  SmallVector<FoldRules::Factor> outside;
};

class Exposure {
public:
  Exposure(ExprContext &exprs, FoldRules &rules, Expr reduce, int64_t j,
           llvm::function_ref<bool(Expr)> isAtMostOne)
      : exprs(exprs), rules(rules), reduce(reduce), j(j), isAtMostOne(isAtMostOne) {}

  Expr run(Expr body) {
    return rules.rebuildProduct(body, [&](unsigned, Expr factor) {
      if (!leavesInside(factor))
        return factor;
      if (factor->isOp("arith.select") && (isZero(factor->operands[1]) || isZero(factor->operands[2])))
        return choice(factor);
      Parts parts = take(factor);
      if (parts.outside.empty())
        return factor;
      if (parts.rest)
        parts.outside.insert(parts.outside.begin(), {parts.rest, false});
      return rules.product(parts.outside, factor->type);
    });
  }

private:
  /// p ? ξ : 0 keeps what is in it, which leaves by a rule of its own: where p holds
  /// nowhere the sum is 0, whatever σ is.
  Expr choice(Expr e) {
    bool isSecond = isZero(e->operands[1]);
    Expr condition = e->operands[0], value = e->operands[isSecond ? 2 : 1];
    if (isSecond)
      condition = exprs.op("arith.xori", {condition, exprs.boolean(true)}, condition->type);
    return exprs.op(*e->op, e->attributes,
                    {condition, run(value), e->operands[isSecond ? 1 : 2]}, e->type);
  }

  /// Results over the range that no repair follows: not of maxima and minima alone.
  bool leaves(Expr e) {
    return !e->dependsOn(j) && readsResult(e) && !readsExtremesOnly(e);
  }
  bool readsResult(Expr e) {
    return llvm::any_of(outermostReductions(e),
                        [&](Expr r) { return r->extent == reduce->extent && !r->dependsOn(j); });
  }
  bool leavesInside(Expr factor) {
    bool isFunction = factor->kind == ExprKind::Op && !factor->isOp("arith.mulf") &&
                      !factor->isOp("arith.divf");
    return isFunction && factor->dependsOn(j) && readsResult(factor);
  }

  Parts take(Expr e) {
    if (leaves(e))
      return {nullptr, {{e, false}}};
    if (!e->dependsOn(j) || !readsResult(e))
      return {e, {}};
    auto [it, isNew] = known.try_emplace(e, Parts{e, {}});
    if (!isNew)
      return it->second;
    Parts parts = e->isOp("arith.mulf") || e->isOp("arith.divf") ? takeFromProduct(e)
                  : e->isOp("math.powf")                         ? takeFromPower(e)
                                                                 : takeCommon(e);
    return known[e] = parts;
  }

  Parts takeFromProduct(Expr e) {
    Parts all;
    bool any = false;
    for (const FoldRules::Factor &factor : rules.factors(e))
      for (FoldRules::Factor outer : take(factor.base).outside) {
        any = true;
        outer.divides ^= factor.divides;
        all.outside.push_back(outer);
      }
    if (!any)
      return {e, {}};
    all.rest = rules.rebuildProduct(e, [&](unsigned, Expr factor) { return take(factor).rest; });
    return all;
  }

  bool areNonNegative(ArrayRef<FoldRules::Factor> factors) {
    return llvm::all_of(factors,
                        [&](const FoldRules::Factor &f) { return rules.isNonNegative(f.base); });
  }
  static bool isZero(Expr e) {
    auto number = dyn_cast_or_null<FloatAttr>(e->value);
    return e->kind == ExprKind::Const && number && number.getValue().isZero();
  }
  /// Takes one factor like `f` out of the list, if there is one.
  static bool remove(SmallVectorImpl<FoldRules::Factor> &list, const FoldRules::Factor &f) {
    auto *same = llvm::find_if(list, [&](const FoldRules::Factor &other) {
      return other.base == f.base && other.divides == f.divides;
    });
    if (same == list.end())
      return false;
    list.erase(same);
    return true;
  }

  /// (σ·ξ)^p. A large p may take what is left out of the range of the type where that
  /// of the quotient is in it, unless all of it is at most 1.
  Parts takeFromPower(Expr e) {
    Expr exponent = e->operands[1];
    auto number = dyn_cast_or_null<FloatAttr>(exponent->value);
    if (exponent->kind != ExprKind::Const || !number || exponent->dependsOn(j))
      return {e, {}};
    double power = number.getValueAsDouble();
    Parts base = take(e->operands[0]);
    if (base.outside.empty() || !(power > 0))
      return {e, {}};
    bool isWhole = power == std::floor(power);
    if (!isWhole && !(areNonNegative(base.outside) && (!base.rest || rules.isNonNegative(base.rest))))
      return {e, {}};
    if (power > 1 && base.rest &&
        !llvm::all_of(rules.factors(base.rest), [&](const FoldRules::Factor &f) {
          return !f.divides && isAtMostOne(f.base);
        }))
      return {e, {}};
    auto raised = [&](Expr x) { return exprs.op(*e->op, e->attributes, {x, exponent}, e->type); };
    Parts parts;
    parts.rest = base.rest ? raised(base.rest) : nullptr;
    for (const FoldRules::Factor &factor : base.outside)
      parts.outside.push_back({raised(factor.base), factor.divides});
    return parts;
  }

  /// f(σ·ξ, σ·η): the factors that all operands have but those that are 0.
  Parts takeCommon(Expr e) {
    FoldRules::Homogeneous kind = rules.homogeneous(e);
    std::optional<SmallVector<FoldRules::Factor>> common;
    if (kind.first && (isZero(e->operands[1]) || isZero(e->operands[2])))
      return {e, {}};
    for (unsigned k : kind.operands) {
      if (isZero(e->operands[k]))
        continue;
      SmallVector<FoldRules::Factor> outside = take(e->operands[k]).outside;
      if (common)
        llvm::erase_if(*common, [&](const FoldRules::Factor &f) { return !remove(outside, f); });
      else
        common = std::move(outside);
    }
    if (!common || common->empty())
      return {e, {}};
    bool isRoot = e->isOp("math.sqrt"), isMagnitude = e->isOp("math.absf");
    if (!kind.ofSigned && !areNonNegative(*common))
      return {e, {}};
    SmallVector<Expr, 3> operands(e->operands);
    for (unsigned k : kind.operands) {
      if (isZero(e->operands[k]))
        continue;
      Parts parts = take(e->operands[k]);
      SmallVector<FoldRules::Factor> rest;
      if (parts.rest)
        rest.push_back({parts.rest, false});
      SmallVector<FoldRules::Factor> taken(*common);
      for (const FoldRules::Factor &factor : parts.outside)
        if (!remove(taken, factor))
          rest.push_back(factor);
      operands[k] = rest.empty() ? exprs.floatConstant(1, e->type) : rules.product(rest, e->type);
    }
    if (isRoot && !rules.isNonNegative(operands[0]))
      return {e, {}};
    Parts parts{exprs.op(*e->op, e->attributes, operands, e->type), {}};
    for (FoldRules::Factor factor : *common) {
      if (isRoot || (isMagnitude && !rules.isNonNegative(factor.base)))
        factor.base = exprs.op(*e->op, e->attributes, {factor.base}, e->type);
      parts.outside.push_back(factor);
    }
    return parts;
  }

  ExprContext &exprs;
  FoldRules &rules;
  Expr reduce;
  int64_t j;
  llvm::function_ref<bool(Expr)> isAtMostOne;
  llvm::DenseMap<Expr, Parts> known;
};

} // namespace

/// The term `body` of the reduction `e` with the results that leave its functions as
/// factors; `body` itself where there are none.
Expr Derivation::expose(Expr e, int64_t j, Expr body, Expr present) {
  bool mayLeave = e->monoid == Monoid::add || e->monoid == Monoid::mul ||
                  e->monoid == Monoid::max || e->monoid == Monoid::min;
  if (!enabled("R1") || !mayLeave || !isa<FloatType>(e->type))
    return body;
  return Exposure(exprs, rules, e, j, [&](Expr factor) {
           return isAtMostOne(e, j, factor, present);
         }).run(body);
}
