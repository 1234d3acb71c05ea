//===- Separate.cpp - R6 where nothing cancels that did not before ---------===//
//
//   Σ_j A_j · (Σ_r G_rj · H_r) = Σ_r H_r · (Σ_j A_j · G_rj)
//
// for one factor that is a sum of products, taken as it stands: it is linear in what it
// adds, so that no reference is needed near which to measure (Expansion.cpp), and the
// range may have conditions and the term a carried axis. It is taken where a row takes
// fewer passes by it.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Observer.h"

using namespace mlir;
using namespace moa;

namespace {

class LinearFactor {
public:
  LinearFactor(ExprContext &exprs, FoldRules &rules, int64_t j, Expr body) : exprs(exprs), rules(rules), j(j) {
    for (Expr result : outermostReductions(body))
      if (!result->dependsOn(j))
        states.insert(result);
  }
  /// Whether it mixes the index with results and is no product of the two.
  bool isMixed(Expr e) {
    return e->dependsOn(j) && rules.reads(e, states) && !rules.splitMul(e, states, {j});
  }
  /// Whether all terms are products of what depends on the index and of results: then
  /// the factor is R0's.
  bool areProducts(ArrayRef<Expr> terms) {
    return llvm::all_of(terms, [&](Expr e) { return e->dependsOn(j) && rules.reads(e, states); });
  }
  /// The terms of a factor; false where it is not a sum of products.
  bool separate(Expr e, SmallVectorImpl<Expr> &terms) {
    constexpr size_t most = 64;
    if (terms.size() > most)
      return false;
    if (!isMixed(e)) {
      terms.push_back(e);
      return isRounded(e);
    }
    SmallVector<Expr> a, b;
    auto op = [&](StringRef name, ArrayRef<Expr> operands) {
      return exprs.op(name, operands, e->type);
    };
    if (e->isOp("arith.negf")) {
      if (!separate(e->operands[0], a))
        return false;
      for (Expr term : a)
        terms.push_back(op("arith.negf", {term}));
      return true;
    }
    if (e->isOp("arith.addf") || e->isOp("arith.subf")) {
      if (!separate(e->operands[0], terms) || !separate(e->operands[1], b))
        return false;
      for (Expr term : b)
        terms.push_back(e->isOp("arith.subf") ? op("arith.negf", {term}) : term);
      return true;
    }
    if (e->isOp("arith.divf")) {
      if (isMixed(e->operands[1]) || !separate(e->operands[0], a))
        return false;
      for (Expr term : a)
        terms.push_back(op("arith.divf", {term, e->operands[1]}));
      return true;
    }
    if (!e->isOp("arith.mulf") || (isMixed(e->operands[0]) && isMixed(e->operands[1])))
      return false;
    unsigned side = isMixed(e->operands[0]) ? 0 : 1;
    if (!separate(e->operands[side], a))
      return false;
    for (Expr term : a)
      terms.push_back(side ? op("arith.mulf", {e->operands[0], term})
                           : op("arith.mulf", {term, e->operands[1]}));
    return true;
  }

private:
  /// A sum of elements has an error of the size of the sum, which the difference from it
  /// has as well. A maximum has none: what x − max x is exact in, Σ x − n·max x is not.
  bool isRounded(Expr e) {
    if (e->dependsOn(j) || !rules.reads(e, states))
      return true;
    return llvm::any_of(outermostReductions(e), [](Expr result) {
      return result->monoid == Monoid::add || result->monoid == Monoid::mul;
    });
  }

  ExprContext &exprs;
  FoldRules &rules;
  int64_t j;
  StateSet states;
};

/// Elements of reductions inside a term, of each index: what a further pass computes
/// again. Ranges that are not known count as much as it takes.
int64_t workInside(Expr body, int64_t j) {
  llvm::DenseSet<Expr> seen;
  int64_t work = 0;
  std::function<void(Expr)> go = [&](Expr node) {
    if (!node->dependsOn(j) || !seen.insert(node).second)
      return;
    if (node->kind == ExprKind::Reduce) {
      auto extent = SymExpr::parse(node->extent);
      auto n = extent ? extent->getConstant() : std::nullopt;
      work += n.value_or(int64_t(1) << 40);
    }
    for (Expr operand : node->operands)
      go(operand);
  };
  go(body);
  return work;
}

} // namespace

/// The sum of `t`, whose term at `j` is `body`, taken apart; null where it is not of
/// the form, or where the states of a carried axis cost more than they save.
Expr Derivation::separate(const NestPlan &nest, Expr t, int64_t j, Expr body, Expr present) {
  SmallVector<FoldRules::Factor> factors = rules.factors(body);
  LinearFactor linear(exprs, rules, j, body);
  std::optional<unsigned> mixed;
  for (auto [n, factor] : llvm::enumerate(factors)) {
    if (!linear.isMixed(factor.base))
      continue;
    if (mixed || factor.divides)
      return nullptr;
    mixed = n;
  }
  SmallVector<Expr> terms;
  if (!mixed || !linear.separate(factors[*mixed].base, terms) || terms.size() < 2 ||
      linear.areProducts(terms))
    return nullptr;
  int64_t carried = 0;
  for (auto &[id, extent] : nest.carriedExtents)
    if (t->dependsOn(id))
      if (auto n = SymExpr::parse(extent)->getConstant())
        carried += *n * static_cast<int64_t>(terms.size() - 1);
  if (carried > workInside(body, j))
    return nullptr;
  Expr value = nullptr;
  for (Expr term : terms) {
    bool negative = term->isOp("arith.negf");
    Expr factor = negative ? term->operands[0] : term;
    Expr whole = rules.rebuildProduct(
        body, [&](unsigned n, Expr base) { return n == *mixed ? factor : base; });
    Expr sum = exprs.reduce(Monoid::add, t->extent, j, whole, present, TypeAttr(),
                            exprs.boundName(t));
    exprs.inheritPlace(t, sum);
    sum = normalise(sum);
    if (!value)
      value = negative ? exprs.op("arith.negf", {sum}, t->type) : sum;
    else
      value = exprs.op(negative ? "arith.subf" : "arith.addf", {value, sum}, t->type);
  }
  return value;
}

void Derivation::separateReductions(NestPlan &nest) {
  if (!enabled("R6"))
    return;
  for (Expr t : rowReductions(nest)) {
    if (t->monoid != Monoid::add || !isa<FloatType>(t->type) || t->rounds)
      continue;
    int64_t j = exprs.freshIndex(exprs.boundName(t));
    auto [body, present] = exprs.open(t, j);
    FoldObserver *listener = std::exchange(observer, nullptr);
    Expr value = separate(nest, t, j, body, present);
    SmallVector<OutputPlan> after = nest.outputs;
    if (value)
      for (OutputPlan &output : after)
        output.value = exprs.replace(
            output.value, [&](Expr e) -> Expr { return e == t ? value : nullptr; });
    bool pays = value && countPasses(nest, after) < countPasses(nest, nest.outputs);
    observer = listener;
    if (!pays)
      continue;
    nest.outputs = std::move(after);
    for (Expr sum : outermostReductions(value))
      if (sum->extent == t->extent && !exprs.reductionNames.count(sum))
        exprs.inheritName(t, sum);
    if (observer)
      observer->rewrote("R6", t, j, body, present, value);
  }
}
