//===- Products.cpp - products of facts (Lemma 12) ------------------------===//
#include "lib/Validation/Search.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Largest number of factors by which a goal is multiplied.
static constexpr size_t maxFactors = 12;

/// Applies Lemma 12 to the negated goal g ≥ 0: for b ≥ 0, g·b ≥ 0. The factors b are the divisors,
/// the factors of known products, and cofactors that turn a part of the goal into a known product.
void Prover::Search::multiply(Term goal) {
  Term negated = terms.difference(terms.number(-1), goal);
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(negated, parts, constant);
  llvm::SetVector<Term> factors;
  factors.insert(divisors.begin(), divisors.end());
  auto isFactor = [&](Term x) { return isNotNegative(x) && !x->is(TermKind::Index); };
  for (Term unknown : system.unknowns) {
    if (!unknown->is(TermKind::Product))
      continue;
    for (auto [k, factor] : llvm::enumerate(unknown->operands)) {
      if (isFactor(factor))
        factors.insert(factor);
      if (unknown->operands.size() < 3 || llvm::none_of(parts, [&, x = factor](auto &part) { return part.first == x; }))
        continue;
      SmallVector<Term> others(unknown->operands);
      others.erase(others.begin() + k);
      if (!llvm::all_of(others, isFactor))
        continue;
      Term rest = terms.number(1);
      for (Term other : others)
        rest = terms.product(rest, other);
      factors.insert(rest);
    }
  }
  if (factors.empty())
    return;
  lemmas.insert("Lemma 12");
  for (Term factor : factors.getArrayRef().take_front(harder ? 2 * maxFactors : maxFactors))
    system.add(terms.product(negated, factor));
}

/// Returns true if all products in a sum are known.
static bool hasNothingNew(Term sum, const DenseSet<Term> &known) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(sum, parts, constant);
  return llvm::all_of(parts,
                      [&](auto &part) { return !part.first->is(TermKind::Product) || known.contains(part.first); });
}

/// Applies Lemma 12 to facts: f ≥ 0 with a part x gives f·r ≥ 0, where r is a cofactor of x in a
/// known product.
void Prover::Search::multiplyFacts() {
  SmallVector<Term> products;
  for (Term unknown : system.unknowns)
    if (unknown->is(TermKind::Product))
      products.push_back(unknown);
  DenseSet<Term> known(products.begin(), products.end());
  llvm::SetVector<std::pair<Term, Term>> pairs;
  for (Term fact : held) {
    if (!fact->is(TermKind::NotNegative))
      continue;
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    splitSum(fact->operands[0], parts, constant);
    if (parts.size() > (harder ? 6 : 3))
      continue;
    for (Term product : products)
      for (auto [k, x] : llvm::enumerate(product->operands)) {
        if (llvm::none_of(parts, [x = x](auto &part) { return part.first == x; }))
          continue;
        SmallVector<Term> others(product->operands);
        others.erase(others.begin() + k);
        if (!llvm::all_of(others, [&](Term other) { return isNotNegative(other); }))
          continue;
        Term rest = terms.number(1);
        for (Term other : others)
          rest = terms.product(rest, other);
        pairs.insert({rest, fact->operands[0]});
      }
  }
  SmallVector<std::pair<Term, Term>> sorted(pairs.begin(), pairs.end());
  size_t most = harder ? 8 * maxProducts : maxProducts;
  if (harder && prover.isLast) {
    most = 3 * maxProducts;
    llvm::stable_sort(sorted, [&](auto &a, auto &b) {
      return hasNothingNew(terms.product(a.first, a.second), known) &&
             !hasNothingNew(terms.product(b.first, b.second), known);
    });
  }
  for (auto [rest, fact] : ArrayRef(sorted).take_front(most)) {
    system.add(terms.product(rest, fact));
    lemmas.insert("Lemma 12");
  }
  if (harder && prover.isLast)
    multiplyPairs(known);
}

/// Applies Lemma 12 to two facts: f ≥ 0 and g ≥ 0 give f·g ≥ 0. Only pairs without new products are
/// multiplied.
void Prover::Search::multiplyPairs(const DenseSet<Term> &known) {
  SmallVector<Term> linear;
  for (Term fact : held) {
    if (!fact->is(TermKind::NotNegative) || !fact->operands[0]->is(TermKind::Sum) ||
        fact->operands[0]->operands.size() > 3)
      continue;
    if (llvm::none_of(fact->operands[0]->operands, [](Term part) { return part->is(TermKind::Product); }))
      linear.push_back(fact->operands[0]);
  }
  size_t budget = 2 * maxProducts;
  for (auto [k, f] : llvm::enumerate(linear))
    for (Term g : ArrayRef<Term>(linear).take_front(k + 1)) {
      Term both = terms.product(f, g);
      if (budget == 0 || !hasNothingNew(both, known))
        continue;
      --budget;
      system.add(both);
      lemmas.insert("Lemma 12");
    }
}
