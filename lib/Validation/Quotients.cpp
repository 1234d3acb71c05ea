//===- Quotients.cpp - goals without their quotients (Lemmas 14, 15) ------===//
#include "lib/Validation/Search.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

bool validation::isSize(Term term) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(term, parts, constant);
  return constant >= 0 && llvm::all_of(parts, [](auto &part) {
           ArrayRef<Term> factors =
               part.first->is(TermKind::Product) ? part.first->operands : ArrayRef<Term>(part.first);
           return part.second >= 0 && llvm::all_of(factors, [](Term x) {
                    return x->is(TermKind::Symbol) ||
                           (x->is(TermKind::Quotient) && x->operands[1]->is(TermKind::Number) &&
                            x->operands[1]->value > 0 && isSize(x->operands[0]));
                  });
         });
}

/// Returns true if a divisor is a size for all values of the indices.
bool Prover::isSizeAlways(Term term) { return isSize(term) || attempt(term, terms.truth(true), {}, maxNesting).holds; }

/// Rewrites ⌊⌊e/a⌋/b⌋ to ⌊e/(a·b)⌋ (Lemma 14). It needs b ≥ 1, which follows from a·b ≥ 1 for
/// sizes.
Term Prover::flatten(Term term, bool &used) {
  if (auto it = flat.find(term); it != flat.end())
    return used |= it->second.second, it->second.first;
  bool changed = false;
  DenseMap<Term, Term> with;
  for (Term operand : term->operands)
    if (Term other = flatten(operand, changed); other != operand)
      with[operand] = other;
  Term result = terms.substitute(term, with);
  if (result->is(TermKind::Quotient) && result->operands[0]->is(TermKind::Quotient)) {
    Term inner = result->operands[0], a = inner->operands[1], b = result->operands[1];
    if (isSizeAlways(a) && isSizeAlways(b)) {
      result = terms.quotient(inner->operands[0], terms.product(a, b));
      changed = true;
    }
  }
  flat[term] = {result, changed};
  used |= changed;
  return result;
}

/// Proves b ≥ 1; for a product by its factors.
bool Prover::isPositive(Term divisor, Term condition, ArrayRef<const Assumption *> used, unsigned depth,
                        std::set<std::string> &lemmas) {
  auto shown = [&](Term x) {
    Proof proof = attempt(terms.difference(x, terms.number(1)), condition, used, depth);
    if (proof.holds)
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
    return proof.holds;
  };
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(divisor, parts, constant);
  if (parts.size() == 1 && constant == 0 && parts[0].second > 0 && parts[0].first->is(TermKind::Product) &&
      llvm::all_of(parts[0].first->operands, shown))
    return true;
  return shown(divisor);
}

/// Eliminates quotients from a goal (Lemma 15). For b ≥ 1, t ≤ ⌊e/b⌋ ⇔ b·t ≤ e and ⌊e/b⌋ ≤ t ⇔ e ≤
/// b·t + b − 1. For c ≥ 0, c·(e − b + 1) ≤ b·c·⌊e/b⌋ ≤ c·e.
Proof Prover::withoutQuotients(Term goal, Term condition, unsigned depth) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(goal, parts, constant);
  for (bool exact : {true, false})
    for (auto [part, coefficient] : parts) {
      Term quotient = part, others = terms.number(1);
      if (part->is(TermKind::Product)) {
        auto *it = llvm::find_if(part->operands, [](Term x) { return x->is(TermKind::Quotient); });
        if (it == part->operands.end())
          continue;
        quotient = *it;
        for (const Term &factor : part->operands)
          if (&factor != it)
            others = terms.product(others, factor);
      }
      bool isOne = quotient == part && (coefficient == 1 || coefficient == -1);
      if (!quotient->is(TermKind::Quotient) || isOne != exact)
        continue;
      Term e = quotient->operands[0], b = quotient->operands[1];
      Proof proof;
      if (work < 0)
        return proof;
      if (!isPositive(b, condition, {}, 1, proof.lemmas))
        continue;
      if (!others->is(TermKind::Number) && !attempt(others, condition, {}, 1).holds)
        continue;
      Term rest = terms.product(b, terms.difference(goal, terms.scaled(part, coefficient)));
      Term gap = terms.difference(b, terms.number(1));
      if (exact)
        rest = coefficient > 0 ? rest : terms.sum(rest, gap);
      else if (coefficient > 0)
        e = terms.difference(e, gap);
      Term simpler = terms.sum(rest, terms.scaled(terms.product(others, e), coefficient));
      // After an equivalence, eliminating the next quotient leaves a simpler goal still. Half of
      // the work is reserved for the other means.
      Proof inner = attemptCorner(simpler, condition, /*bySearch=*/false);
      if (!inner.holds && exact && depth > 1) {
        int64_t kept = work / 2;
        work -= kept;
        inner = withoutQuotients(simpler, condition, depth - 1);
        work = std::max<int64_t>(work, 0) + kept;
      }
      if (!inner.holds)
        inner = attempt(simpler, condition, {}, 0);
      if (!inner.holds)
        inner = attemptCorner(simpler, condition);
      if (!inner.holds && !exact && depth > 2)
        inner = withoutQuotients(simpler, condition, depth - 2);
      if (!inner.holds)
        continue;
      proof.holds = true;
      proof.lemmas.insert(inner.lemmas.begin(), inner.lemmas.end());
      proof.lemmas.insert("Lemma 15");
      return proof;
    }
  return {};
}
