//===- Unknowns.cpp - constraints on the unknowns of a system -------------===//
#include "lib/Validation/RealRange.h"
#include "lib/Validation/Search.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

bool validation::isExtreme(Term term) {
  return term->is(TermKind::Scalar) && term->type.isIntOrIndex() && (term->name == "min" || term->name == "max");
}

/// Returns true for symbols, indices and divisors (which are at least 1), and by a known fact.
bool Prover::Search::isNotNegative(Term factor) const {
  return factor->is(TermKind::Symbol) || factor->is(TermKind::Index) || divisors.contains(factor) ||
         held.contains(terms.notNegative(factor));
}

void Prover::Search::explain(Term unknown) {
  if (!explained.insert(unknown))
    return;
  switch (unknown->kind) {
  case TermKind::Symbol:
    return system.add(unknown);
  case TermKind::Index:
    system.add(unknown);
    if (Term extent = prover.extentOf(unknown)) {
      Term below = terms.difference(terms.difference(extent, terms.number(1)), unknown);
      if (harder)
        assume(terms.notNegative(below));
      else
        system.add(below);
    }
    return;
  case TermKind::Quotient:
    return explainQuotient(unknown);
  case TermKind::Product:
    return explainProduct(unknown);
  case TermKind::Scalar:
    return explainScalar(unknown);
  case TermKind::Load:
    return explainLoad(unknown);
  case TermKind::Reduce:
    // A narrower sum may have wrapped around.
    if (!unknown->type.isIndex())
      return;
    if (unknown->name == "add")
      return explainSum(unknown);
    reductions.insert(unknown);
    return;
  case TermKind::Select: {
    // Use inequalities: an equality of a selection only says which side is picked.
    auto is = [&](Term p, Term value) -> SmallVector<Term, 2> {
      return {p, terms.atMost(unknown, value), terms.atMost(value, unknown)};
    };
    Term p = unknown->operands[0];
    choices.push_back({is(p, unknown->operands[1]), is(terms.negate(p), unknown->operands[2])});
    return;
  }
  default:
    return;
  }
}

/// Adds b·⌊e/b⌋ ≤ e < b·⌊e/b⌋ + b for b ≥ 1 (Lemma 2). For a number b this is linear, and needs no
/// lemma.
void Prover::Search::explainQuotient(Term quotient) {
  Term e = quotient->operands[0], b = quotient->operands[1], one = terms.number(1);
  // The indices in the dividend are in their ranges, so the ranges are not empty.
  llvm::SetVector<Term> mentioned;
  collectIndices(e, mentioned);
  if (b->is(TermKind::Number)) {
    if (b->value < 1) {
      for (Term index : mentioned)
        explain(index);
      return;
    }
  } else {
    if (depth >= maxNesting)
      return;
    Term inRange = condition;
    for (Term index : mentioned)
      if (Term extent = prover.extentOf(index))
        inRange = terms.both(inRange, terms.below(index, extent));
    if (!prover.isPositive(b, inRange, used, depth + 1, lemmas))
      return;
    lemmas.insert("Lemma 2");
    divisors.insert(b);
    system.add(terms.difference(b, one));
  }
  Term rest = terms.difference(e, terms.product(b, quotient));
  assume(terms.notNegative(rest));
  assume(terms.notNegative(terms.difference(terms.difference(b, one), rest)));
  if (harder && depth == 0 && !b->is(TermKind::Number))
    boundQuotient(quotient);
  // If e ≥ 0, the quotient is not negative. Products with it need this fact.
  if (depth < maxNesting && prover.attempt(e, condition, used, depth + 1).holds) {
    Term fact = terms.notNegative(quotient);
    held.insert(fact);
    system.add(quotient);
  }
}

/// Adds ⌊e/b⌋ < a for a factor a in e with e < a·b (Lemma 2).
void Prover::Search::boundQuotient(Term quotient) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(quotient->operands[0], parts, constant);
  Term where = condition, one = terms.number(1);
  for (Term divisor : divisors)
    where = terms.both(where, terms.notNegative(terms.difference(divisor, one)));
  llvm::SetVector<Term> factors;
  for (auto [part, coefficient] : parts)
    if (part->is(TermKind::Product))
      for (Term factor : part->operands)
        if (isNotNegative(factor) && !factor->is(TermKind::Index))
          factors.insert(factor);
  for (Term factor : factors) {
    Term below = terms.difference(terms.difference(factor, one), quotient);
    if (Proof proof = prover.attempt(below, where, used, depth + 1); proof.holds) {
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
      assume(terms.notNegative(below));
    }
  }
}

/// Adds the constraints of Lemma 12. A product of factors ≥ 0 is ≥ 0, and an index x ≤ n − 1 gives
/// r·x ≤ r·(n − 1).
void Prover::Search::explainProduct(Term product) {
  for (Term factor : product->operands) {
    explain(factor);
    if (factor->is(TermKind::Scalar) && depth < maxNesting && prover.attempt(factor, condition, used, depth + 1).holds)
      assume(terms.notNegative(factor));
  }
  for (auto [k, x] : llvm::enumerate(product->operands)) {
    Term rest = terms.number(1);
    bool good = true;
    for (auto [l, factor] : llvm::enumerate(product->operands))
      if (l != k) {
        rest = terms.product(rest, factor);
        good &= isNotNegative(factor);
      }
    if (!good || !isNotNegative(x))
      continue;
    system.add(product);
    lemmas.insert("Lemma 12");
    Term extent = x->is(TermKind::Index) ? prover.extentOf(x) : nullptr;
    if (extent)
      system.add(terms.product(rest, terms.difference(terms.difference(extent, terms.number(1)), x)));
    if (isExtreme(x))
      for (Term operand : x->operands) {
        Term gap = terms.difference(x, operand);
        system.add(terms.product(rest, x->name == "max" ? gap : terms.scaled(gap, -1)));
      }
  }
}

void Prover::Search::explainScalar(Term scalar) {
  auto bounds = [&](int64_t low, int64_t high) {
    system.add(terms.difference(scalar, terms.number(low)));
    system.add(terms.difference(terms.number(high), scalar));
  };
  StringRef name = scalar->name;
  ArrayRef<Term> x = scalar->operands;
  if (!scalar->type.isIntOrIndex())
    return;
  if (isExtreme(scalar)) {
    bool isMin = name == "min";
    Cases cases;
    for (Term operand : x) {
      Term gap = isMin ? terms.difference(operand, scalar) : terms.difference(scalar, operand);
      system.add(gap);
      cases.push_back({terms.isZero(gap)});
    }
    choices.push_back(std::move(cases));
  } else if (name == "and" && x[1]->is(TermKind::Number) && x[1]->value >= 0) {
    bounds(0, x[1]->value);
    // An assumption about an unsigned input is about the low bits of its elements.
    if (x[0]->is(TermKind::Load) && terms.unsignedInputs.count(x[0]->value))
      instantiate(x[0]);
  } else if ((name == "shr" || name == "shl") && x[1]->is(TermKind::Number) && x[1]->value >= 0 && x[1]->value < 62) {
    Term power = terms.number(int64_t(1) << x[1]->value);
    Term value = name == "shl" ? terms.product(x[0], power) : terms.quotient(x[0], power);
    system.add(terms.difference(scalar, value), /*isEquality=*/true);
  } else if (name == "wrap") {
    unsigned width = scalar->type.getIntOrFloatBitWidth();
    bounds(-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1);
  } else if (name == "fptosi") {
    RealRange range = rangeOfReal(x[0]);
    if (std::isfinite(range.low) && std::abs(range.low) < 0x1p62)
      system.add(terms.difference(scalar, terms.number(std::min(0.0, std::trunc(range.low)))));
    if (std::isfinite(range.high) && std::abs(range.high) < 0x1p62)
      system.add(terms.difference(terms.number(std::max(0.0, std::trunc(range.high))), scalar));
    lemmas.insert("Lemma 13");
  }
}

/// Adds the range of the element type, and the assumptions about the input.
void Prover::Search::explainLoad(Term load) {
  if (load->type.isIntOrIndex() && !load->type.isIndex() && !load->type.isInteger(1)) {
    int64_t high = (int64_t(1) << (load->type.getIntOrFloatBitWidth() - 1)) - 1;
    system.add(terms.sum(load, terms.number(high + 1)));
    system.add(terms.difference(terms.number(high), load));
  }
  instantiate(load);
}

//===----------------------------------------------------------------------===//
// Reductions (Lemma 17)
//===----------------------------------------------------------------------===//

/// Returns the body and the presence of a reduction at an index.
static std::pair<Term, Term> at(TermContext &terms, Term reduce, Term index) {
  DenseMap<Term, Term> with = {{reduce->operands[0], index}};
  Substitution substitution(terms, with);
  return {substitution.of(reduce->operands[2]), substitution.of(reduce->operands[3])};
}

void Prover::Search::explainReductions() {
  llvm::SetVector<Term> said = std::move(reductions);
  reductions.clear();
  for (Term reduce : said)
    explainReduce(reduce);
  explainAll();
}

void Prover::Search::explainReduce(Term reduce) {
  if (reduce->name != "max" && reduce->name != "min")
    return;
  lemmas.insert("Lemma 17");
  Term witness = prover.witnessOf(reduce), extent = reduce->operands[1];
  auto [term, present] = at(terms, reduce, witness);
  // The reduction may be empty. Then its value is the identity, an extreme 64-bit integer.
  Term far = terms.number(int64_t(1) << 62);
  Term isFar = reduce->name == "max" ? terms.atMost(reduce, terms.scaled(far, -1)) : terms.atMost(far, reduce);
  SmallVector<Term, 2> isEmpty = {isFar};
  if (present->isTrue())
    isEmpty.push_back(terms.atMost(extent, terms.number(0)));
  choices.push_back(
      {isEmpty, {terms.below(witness, extent), present, terms.atMost(reduce, term), terms.atMost(term, reduce)}});
  explainInner(reduce);
  for (Term other : extremes) {
    assumeExtreme(reduce, prover.witnessOf(other));
    assumeExtreme(other, witness);
  }
  extremes.insert(reduce);
}

/// Adds the reductions in body and presence that do not depend on the index, for comparison.
void Prover::Search::explainInner(Term reduce) {
  DenseMap<Term, bool> seen;
  std::function<bool(Term)> isFree = [&](Term part) {
    if (part == reduce->operands[0])
      return false;
    if (auto it = seen.find(part); it != seen.end())
      return it->second;
    bool free = true;
    for (Term operand : part->operands)
      free &= isFree(operand);
    if (free && part->is(TermKind::Reduce))
      explain(part);
    return seen[part] = free;
  };
  isFree(reduce->operands[2]);
  isFree(reduce->operands[3]);
}

/// Adds that the term at an index is at most the maximum, or at least the minimum.
void Prover::Search::assumeExtreme(Term reduce, Term index) {
  auto [term, present] = at(terms, reduce, index);
  Term inRange = terms.both(terms.below(index, reduce->operands[1]), present);
  Term bound = reduce->name == "max" ? terms.atMost(term, reduce) : terms.atMost(reduce, term);
  assume(terms.either(terms.negate(inRange), bound));
}

/// Bounds a sum of n terms: it is ≥ 0 if its terms are, and ≤ c·n if its terms are ≤ c, for c = 0
/// and 1.
void Prover::Search::explainSum(Term reduce) {
  if (depth >= maxNesting)
    return;
  Term index = prover.witnessOf(reduce), extent = reduce->operands[1];
  auto [term, present] = at(terms, reduce, index);
  Term where = terms.both(condition, terms.both(terms.below(index, extent), present));
  auto holds = [&](Term goal) {
    Proof proof = prover.attempt(goal, where, used, depth + 1);
    if (proof.holds)
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
    return proof.holds;
  };
  if (holds(term)) {
    lemmas.insert("Lemma 17");
    system.add(reduce);
  }
  for (int64_t most : {0, 1}) {
    if (!holds(terms.difference(terms.number(most), term)))
      continue;
    lemmas.insert("Lemma 17");
    system.add(terms.difference(terms.scaled(extent, most), reduce));
    return;
  }
}
