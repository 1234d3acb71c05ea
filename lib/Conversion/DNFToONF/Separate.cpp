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
  LinearFactor(ExprContext &exprs, FoldRules &rules, int64_t j, Expr body)
      : exprs(exprs), rules(rules), j(j) {
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
  /// The terms of a factor; false where it is not a sum of products. What extremes of elements
  /// are added to stays with those elements: x − max x is exact, and R3 repairs its sum.
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
        Expr difference = exprs.op("arith.subf", {element, state}, element->type);
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
    auto op = [&](StringRef name, ArrayRef<Expr> operands) {
      return exprs.op(name, operands, e->type);
    };
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
      terms.push_back(side ? op("arith.mulf", {e->operands[0], term})
                           : op("arith.mulf", {term, e->operands[1]}));
    return true;
  }

  /// log Π F = Σ log F, and log eᵘ = u, of factors that are not negative.
  bool separateLogarithm(Expr e, SmallVectorImpl<Expr> &terms) {
    for (const FoldRules::Factor &factor : rules.factors(e->operands[0])) {
      SmallVector<Expr> parts;
      if (factor.base->isOp("math.exp")) {
        if (!separate(factor.base->operands[0], parts))
          return false;
      } else if (rules.isNonNegative(factor.base) && !isMixed(factor.base)) {
        parts.push_back(exprs.op("math.log", {factor.base}, e->type));
      } else {
        return false;
      }
      for (Expr part : parts)
        terms.push_back(factor.divides ? negated(part) : part);
    }
    return true;
  }
  Expr negated(Expr e) {
    return e->isOp("arith.negf") ? e->operands[0] : exprs.op("arith.negf", {e}, e->type);
  }
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
  if (!mixed || !linear.takeApart(factors[*mixed].base, terms) || terms.size() < 2 ||
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
    Expr sum =
        exprs.reduce(Monoid::add, t->extent, j, whole, present, TypeAttr(), exprs.boundName(t));
    exprs.inheritPlace(t, sum);
    sum = normalise(sum);
    if (!value)
      value = negative ? exprs.op("arith.negf", {sum}, t->type) : sum;
    else
      value = exprs.op(negative ? "arith.subf" : "arith.addf", {value, sum}, t->type);
  }
  return value;
}

/// Σ over sets S of Π_{i ∉ S} offsetᵢ · sum(the bases in S); an offset that is null is 0.
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
        coefficient = offsets[i] ? exprs.op("arith.mulf", {coefficient, offsets[i]}, bases[i]->type)
                                 : nullptr;
    }
    if (!coefficient)
      continue;
    Expr &known = coefficients[sum(kept)];
    known = known ? exprs.op("arith.addf", {known, coefficient}, coefficient->type) : coefficient;
  }
  Expr value = nullptr;
  for (auto &[part, coefficient] : coefficients) {
    Expr term = exprs.op("arith.mulf", {coefficient, part}, part->type);
    value = value ? exprs.op("arith.addf", {value, term}, part->type) : term;
  }
  return value;
}

/// Σ W·Π (gᵢ − bᵢ) about the means μᵢ = (Σ W·gᵢ)/(Σ W), from which the sums of W times powers of
/// gᵢ − μᵢ are found in one pass (Moments.cpp), whatever the bᵢ are:
///   Σ W·Π (gᵢ − bᵢ) = Σ over sets S of Π_{i ∉ S} (μᵢ − bᵢ) · (Σ W·Π_{i ∈ S} (gᵢ − μᵢ)).
/// For weights that are not negative neither side is much larger than its terms.
Expr Derivation::aboutMeans(const NestPlan &nest, Form &form) {
  Expr t = form.sum, body = form.body, present = form.present;
  int64_t j = form.j;
  if (llvm::any_of(nest.carriedExtents, [&](auto &axis) { return t->dependsOn(axis.first); }))
    return nullptr;
  StateSet states;
  for (Expr result : outermostReductions(body))
    if (result->extent == t->extent && !result->dependsOn(j) &&
        exprs.open(result, j).second == present)
      states.insert(result);
  Expr any = makeAny(t->extent, j, present), weight = nullptr;
  body = rules.whereAny(body, any);
  SmallVector<FoldRules::Difference> differences;
  if (!rules.takesDifferences(body, states, j, weight, differences) || !rules.isNonNegative(weight))
    return nullptr;
  auto bodyOf = [&](Expr state) { return exprs.open(state, j).first; };
  auto op = [&](StringRef name, Expr a, Expr b) { return exprs.op(name, {a, b}, t->type); };
  std::string name = exprs.reductionNames.lookup(t);
  auto sumOf = [&](ArrayRef<FoldRules::Factor> factors, const Twine &suffix) {
    Expr sum = exprs.reduce(Monoid::add, t->extent, j, rules.product(factors, t->type), present,
                            TypeAttr(), exprs.boundName(t));
    exprs.inheritPlace(t, sum);
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
    // Sums of whole numbers stay whole where nothing was divided.
    bool divides = false;
    walk(d.h, [&](Expr node) { divides |= node->isOp("arith.divf"); });
    if (!divides)
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
  if (any == exprs.boolean(true))
    return value;
  return exprs.op("arith.select", {any, value, exprs.floatConstant(0, t->type)}, t->type);
}

/// The other forms of a sum: taken apart and, with `withMeans`, about means.
SmallVector<Derivation::Form, 2> Derivation::formsOf(const NestPlan &nest, Expr t, bool withMeans) {
  SmallVector<Form, 2> forms;
  if (t->monoid != Monoid::add || !isa<FloatType>(t->type) || t->rounds)
    return forms;
  int64_t j = exprs.freshIndex(exprs.boundName(t));
  auto [body, present] = exprs.open(t, j);
  FoldObserver *listener = std::exchange(observer, nullptr);
  Form apart{t, j, body, present, separate(nest, t, j, body, present), {}};
  Form centred{t, j, body, present, nullptr, {}};
  if (withMeans && enabled("R3"))
    centred.value = aboutMeans(nest, centred);
  observer = listener;
  for (Form &form : {std::ref(apart), std::ref(centred)})
    if (form.value)
      forms.push_back(std::move(form));
  return forms;
}

/// The outputs with other forms of sums.
SmallVector<OutputPlan> Derivation::outputsWith(ArrayRef<OutputPlan> outputs,
                                                ArrayRef<Form> forms) {
  SmallVector<OutputPlan> after(outputs);
  for (const Form &form : forms)
    for (OutputPlan &output : after)
      output.value = exprs.replace(
          output.value, [&](Expr e) -> Expr { return e == form.sum ? form.value : nullptr; });
  return after;
}

void Derivation::take(NestPlan &nest, const Form &form) {
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
  // Each form is planned as a whole, which a chain of many reductions is too large for.
  constexpr size_t most = 12;
  SmallVector<Expr> sums = rowReductions(nest);
  bool isShort = sums.size() <= most;
  SmallVector<Form> open; // of sums of which none alone saves a pass
  for (Expr t : sums) {
    SmallVector<Form, 2> forms = formsOf(nest, t, isShort);
    auto pays = [&](const Form &form) {
      return countPasses(nest, outputsWith(nest.outputs, form)) < countPasses(nest, nest.outputs);
    };
    auto found = llvm::find_if(forms, pays);
    if (found != forms.end())
      take(nest, *found);
    else if (!forms.empty() && isShort)
      open.push_back(forms.front());
  }
  if (open.size() < 2)
    return;
  // Together they may, each of those without which there would be a pass more.
  unsigned before = countPasses(nest, nest.outputs);
  unsigned fewest = countPasses(nest, outputsWith(nest.outputs, open));
  for (size_t k = 0; fewest < before && k < open.size();) {
    SmallVector<Form> others(open);
    others.erase(others.begin() + k);
    if (countPasses(nest, outputsWith(nest.outputs, others)) > fewest)
      ++k;
    else
      open = std::move(others);
  }
  if (fewest < before)
    for (const Form &form : open)
      take(nest, form);
}
