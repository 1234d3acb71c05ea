//===- Separate.cpp - R6 for one factor, without new cancellation ----------===//
//
//   Σ_j A_j · (Σ_r G_rj · H_r) = Σ_r H_r · (Σ_j A_j · G_rj)
//
// Takes apart one factor that is a sum of products. The term is linear in the addends of this
// factor, so the data need no shift (Expansion.cpp). The range may have conditions, and the term a
// carried axis. R6 is applied in this form if the row then takes fewer passes.
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
  /// Returns whether `e` mixes the index with results and is no product of the two.
  bool isMixed(Expr e) { return e->dependsOn(j) && rules.reads(e, states) && !rules.splitMul(e, states, {j}); }
  /// Returns whether every term is a product of elements and results. R0 handles such a factor.
  bool areProducts(ArrayRef<Expr> terms) {
    return llvm::all_of(terms, [&](Expr e) { return e->dependsOn(j) && rules.reads(e, states); });
  }
  /// Takes a factor apart into terms. Returns false if it is no sum of products. An extreme stays
  /// with its element, because x − max x is exact and R3 can rescale the sum of the differences.
  bool takeApart(Expr e, SmallVectorImpl<Expr> &terms) {
    SmallVector<Expr> all, extremes;
    if (!separate(e, all))
      return false;
    for (Expr term : all)
      (isRounded(term) ? terms : extremes).push_back(term);
    return llvm::all_of(extremes, [&](Expr extreme) { return joinsElement(extreme, terms); });
  }

private:
  bool joinsElement(Expr extreme, SmallVectorImpl<Expr> &terms) {
    auto bodyOf = [&](Expr state) { return exprs.open(state, j).first; };
    for (Expr &term : terms)
      if (rules.isExtremeDifference({nullptr, term, extreme}, states, bodyOf)) {
        bool isNegative = extreme->isOp("arith.negf");
        Expr element = isNegative ? term : term->operands[0];
        Expr state = isNegative ? extreme->operands[0] : extreme;
        Expr difference = exprs.op("arith.subf", {element, state});
        term = isNegative ? difference : negated(difference);
        return true;
      }
    return false;
  }
  bool separate(Expr e, SmallVectorImpl<Expr> &terms) {
    constexpr size_t most = 64;
    if (terms.size() > most)
      return false;
    if (!isMixed(e)) {
      terms.push_back(e);
      return true;
    }
    if (e->isOp("math.log"))
      return separateLogarithm(e, terms);
    SmallVector<Expr> a, b;
    auto op = [&](StringRef name, ArrayRef<Expr> operands) { return exprs.op(name, operands, e->type); };
    if (e->isOp("arith.negf")) {
      if (!separate(e->operands[0], a))
        return false;
      for (Expr term : a)
        terms.push_back(negated(term));
      return true;
    }
    if (e->isOp("arith.addf") || e->isOp("arith.subf")) {
      if (!separate(e->operands[0], terms) || !separate(e->operands[1], b))
        return false;
      for (Expr term : b)
        terms.push_back(e->isOp("arith.subf") ? negated(term) : term);
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
      terms.push_back(side ? op("arith.mulf", {e->operands[0], term}) : op("arith.mulf", {term, e->operands[1]}));
    return true;
  }

  /// log Π F = Σ log F, and log eᵘ = u, for non-negative factors.
  bool separateLogarithm(Expr e, SmallVectorImpl<Expr> &terms) {
    for (const FoldRules::Factor &factor : rules.factors(e->operands[0])) {
      SmallVector<Expr> parts;
      if (factor.base->isOp("math.exp")) {
        if (!separate(factor.base->operands[0], parts))
          return false;
      } else if (rules.isNonNegative(factor.base) && !isMixed(factor.base)) {
        parts.push_back(exprs.op("math.log", {factor.base}));
      } else {
        return false;
      }
      for (Expr part : parts)
        terms.push_back(factor.divides ? negated(part) : part);
    }
    return true;
  }
  Expr negated(Expr e) { return e->isOp("arith.negf") ? e->operands[0] : exprs.op("arith.negf", {e}); }
  /// Returns whether `e` may become a term of its own. A sum of elements may: it has an error of
  /// its own size, which the difference from it has as well. A maximum may not: x − max x is exact,
  /// but Σ x − n·max x is not.
  bool isRounded(Expr e) {
    if (e->dependsOn(j) || !rules.reads(e, states))
      return true;
    return llvm::any_of(outermostReductions(e),
                        [](Expr result) { return result->monoid == Monoid::add || result->monoid == Monoid::mul; });
  }

  ExprContext &exprs;
  FoldRules &rules;
  int64_t j;
  StateSet states;
};

/// Returns the total length of the reductions in `body` that depend on `j`: the work that a further
/// pass repeats. A range of unknown length counts as 2⁴⁰.
int64_t workInside(Expr body, int64_t j) {
  llvm::DenseSet<Expr> seen;
  int64_t work = 0;
  std::function<void(Expr)> go = [&](Expr node) {
    if (!node->dependsOn(j) || !seen.insert(node).second)
      return;
    if (node->kind == ExprKind::Reduce)
      work += knownExtent(node).value_or(int64_t(1) << 40);
    for (Expr operand : node->operands)
      go(operand);
  };
  go(body);
  return work;
}

} // namespace

/// Returns the sum `t`, whose term at `j` is `body`, taken apart. Returns null if it does not have
/// this form, or if the states of a carried axis cost more than they save.
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
  if (!mixed || !linear.takeApart(factors[*mixed].base, terms) || terms.size() < 2 || linear.areProducts(terms))
    return nullptr;
  int64_t carried = 0;
  for (auto &[id, extent] : nest.carriedExtents)
    if (t->dependsOn(id))
      if (auto n = knownExtent(extent))
        carried += *n * static_cast<int64_t>(terms.size() - 1);
  if (carried > workInside(body, j))
    return nullptr;
  Expr value = nullptr;
  for (Expr term : terms) {
    bool negative = term->isOp("arith.negf");
    Expr factor = negative ? term->operands[0] : term;
    Expr whole = rules.rebuildProduct(body, [&](unsigned n, Expr base) { return n == *mixed ? factor : base; });
    Expr sum = normalise(exprs.sumOver(t, j, whole, present));
    if (!value)
      value = negative ? exprs.op("arith.negf", {sum}) : sum;
    else
      value = exprs.op(negative ? "arith.subf" : "arith.addf", {value, sum});
  }
  return value;
}

/// Returns Σ over sets S of Π_{i ∉ S} offsetᵢ · sum(the bases in S); a null offset is 0.
Expr Derivation::sumOverSets(ArrayRef<Expr> bases, ArrayRef<Expr> offsets,
                             llvm::function_ref<Expr(ArrayRef<Expr>)> sum) {
  llvm::MapVector<Expr, Expr> coefficients;
  for (unsigned lacks = 0; lacks < 1u << bases.size(); ++lacks) {
    SmallVector<Expr> kept;
    Expr coefficient = exprs.floatConstant(1, bases[0]->type);
    for (unsigned i = 0; i < bases.size() && coefficient; ++i) {
      if (!(lacks >> i & 1))
        kept.push_back(bases[i]);
      else
        coefficient = offsets[i] ? exprs.op("arith.mulf", {coefficient, offsets[i]}) : nullptr;
    }
    if (!coefficient)
      continue;
    Expr &known = coefficients[sum(kept)];
    known = known ? exprs.op("arith.addf", {known, coefficient}) : coefficient;
  }
  Expr value = nullptr;
  for (auto &[part, coefficient] : coefficients) {
    Expr term = exprs.op("arith.mulf", {coefficient, part});
    value = value ? exprs.op("arith.addf", {value, term}) : term;
  }
  return value;
}

/// Rewrites Σ W·Π (gᵢ − bᵢ) about the means μᵢ = (Σ W·gᵢ)/(Σ W). The sums of W times powers of gᵢ −
/// μᵢ take one pass (Moments.cpp), whatever the bᵢ are:
///   Σ W·Π (gᵢ − bᵢ) = Σ over sets S of Π_{i ∉ S} (μᵢ − bᵢ) · (Σ W·Π_{i ∈ S} (gᵢ − μᵢ)).
/// For non-negative weights neither side is much larger than its terms.
Expr Derivation::aboutMeans(const NestPlan &nest, SumForm &form) {
  Expr t = form.sum, body = form.body, present = form.present;
  int64_t j = form.j;
  if (llvm::any_of(nest.carriedExtents, [&](auto &axis) { return t->dependsOn(axis.first); }))
    return nullptr;
  StateSet states;
  for (Expr result : outermostReductions(body))
    if (result->extent == t->extent && !result->dependsOn(j) && exprs.open(result, j).second == present)
      states.insert(result);
  Expr any = makeAny(t->extent, j, present), weight = nullptr;
  body = rules.whereAny(body, any);
  SmallVector<FoldRules::Difference> differences;
  if (!rules.splitDifferences(body, states, j, weight, differences) || !rules.isNonNegative(weight))
    return nullptr;
  auto bodyOf = [&](Expr state) { return exprs.open(state, j).first; };
  auto op = [&](StringRef name, Expr a, Expr b) { return exprs.op(name, {a, b}); };
  std::string name = exprs.reductionNames.lookup(t);
  auto sumOf = [&](ArrayRef<FoldRules::Factor> factors, const Twine &suffix) {
    Expr sum = exprs.sumOver(t, j, rules.product(factors, t->type), present);
    if (!name.empty())
      form.names.push_back({sum, (name + suffix).str()});
    return sum;
  };
  Expr count = normalise(sumOf({{weight, false}}, "_weight"));
  SmallVector<Expr> bases, offsets;
  bool moves = false;
  Expr limit = exprs.floatConstant(0, t->type);
  for (const FoldRules::Difference &d : differences) {
    if (rules.isExtremeDifference(d, states, bodyOf)) {
      bases.push_back(d.base);
      offsets.push_back(nullptr);
      continue;
    }
    // Without a division, sums of integers are exact; means would make them inexact.
    if (!anyNode(d.h, [](Expr node) { return node->isOp("arith.divf"); }))
      return nullptr;
    Expr sum = normalise(sumOf({{weight, false}, {d.g, false}}, "_sum"));
    Expr mean = op("arith.divf", sum, count);
    bases.push_back(op("arith.subf", d.g, mean));
    offsets.push_back(op("arith.addf", mean, d.h));
    limit = op("arith.mulf", limit, d.h);
    moves = true;
  }
  if (!moves)
    return nullptr;
  Expr value = sumOverSets(bases, offsets, [&](ArrayRef<Expr> kept) {
    if (kept.empty())
      return count;
    SmallVector<FoldRules::Factor> factors{{weight, false}};
    for (Expr base : kept)
      factors.push_back({base, false});
    return sumOf(factors, "_moment" + Twine(kept.size()));
  });
  Expr isWeightless = exprs.equal(count, exprs.floatConstant(0, t->type));
  value = exprs.op("arith.select", {isWeightless, limit, value}, t->type);
  return exprs.guarded(any, value, exprs.floatConstant(0, t->type));
}

/// Returns the other forms of a sum: taken apart and, with `withMeans`, about means.
SmallVector<Derivation::SumForm, 2> Derivation::formsOf(const NestPlan &nest, Expr t, bool withMeans) {
  SmallVector<SumForm, 2> forms;
  if (!isFloatSum(t) || t->rounds)
    return forms;
  int64_t j = exprs.freshIndex(exprs.boundName(t));
  auto [body, present] = exprs.open(t, j);
  FoldObserver *listener = std::exchange(observer, nullptr);
  SumForm apart{t, j, body, present, separate(nest, t, j, body, present), {}};
  SumForm centred{t, j, body, present, nullptr, {}};
  if (withMeans && enabled("R3"))
    centred.value = aboutMeans(nest, centred);
  observer = listener;
  for (SumForm &form : {std::ref(apart), std::ref(centred)})
    if (form.value)
      forms.push_back(std::move(form));
  return forms;
}

/// Returns the outputs with sums replaced by other forms.
SmallVector<OutputPlan> Derivation::outputsWith(ArrayRef<OutputPlan> outputs, ArrayRef<SumForm> forms) {
  SmallVector<OutputPlan> after(outputs);
  for (const SumForm &form : forms)
    for (OutputPlan &output : after)
      output.value = exprs.replace(output.value, [&](Expr e) -> Expr { return e == form.sum ? form.value : nullptr; });
  return after;
}

void Derivation::applyForm(NestPlan &nest, const SumForm &form) {
  nest.outputs = outputsWith(nest.outputs, form);
  for (auto &[sum, name] : form.names)
    exprs.reductionNames.try_emplace(sum, name);
  for (Expr sum : outermostReductions(form.value))
    if (sum->extent == form.sum->extent && !exprs.reductionNames.count(sum))
      exprs.inheritName(form.sum, sum);
  if (observer)
    observer->rewrote("R6", form.sum, form.j, form.body, form.present, form.value);
}

void Derivation::separateReductions(NestPlan &nest) {
  if (!enabled("R6"))
    return;
  // Each trial plans the whole nest, which is too slow for a chain of many reductions.
  constexpr size_t most = 12;
  SmallVector<Expr> sums = rowReductions(nest);
  bool isShort = sums.size() <= most;
  SmallVector<SumForm> open; // sums whose forms save no pass alone
  for (Expr t : sums) {
    SmallVector<SumForm, 2> forms = formsOf(nest, t, isShort);
    auto pays = [&](const SumForm &form) {
      return countPasses(nest, outputsWith(nest.outputs, form)) < countPasses(nest, nest.outputs);
    };
    auto found = llvm::find_if(forms, pays);
    if (found != forms.end())
      applyForm(nest, *found);
    else if (!forms.empty() && isShort)
      open.push_back(forms.front());
  }
  if (open.size() < 2)
    return;
  // Together they may save a pass. Keep only the forms without which there would be one more.
  unsigned before = countPasses(nest, nest.outputs);
  unsigned fewest = countPasses(nest, outputsWith(nest.outputs, open));
  for (size_t k = 0; fewest < before && k < open.size();) {
    SmallVector<SumForm> others(open);
    others.erase(others.begin() + k);
    if (countPasses(nest, outputsWith(nest.outputs, others)) > fewest)
      ++k;
    else
      open = std::move(others);
  }
  if (fewest < before)
    for (const SumForm &form : open)
      applyForm(nest, form);
}
