//===- Prover.cpp - the proofs tried for a goal ---------------------------===//
#include "lib/Validation/Search.h"
#include "llvm/Support/SaveAndRestore.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Largest number of cases of one proof.
static constexpr unsigned maxCases = 64;
/// Bound on the total size of the systems solved with the last means.
static constexpr int64_t maxWork = 1 << 25;

Term Prover::split(Term term) {
  if (divided.empty())
    return term;
  if (!splitting)
    splitting.emplace(Substitution(terms, divided), Substitution(terms, gone));
  return splitting->second.of(splitting->first.of(term));
}

void Prover::addNotNegative(Term term) {
  if (Term fact = terms.notNegative(split(term)); !fact->isTrue())
    facts.push_back(fact);
}

void Prover::splitSymbols(Term size) {
  for (Term operand : size->operands)
    splitSymbols(operand);
  if (!size->is(TermKind::Quotient) || !size->operands[0]->is(TermKind::Symbol) ||
      !size->operands[1]->is(TermKind::Number) || size->operands[1]->value < 2 || divided.contains(size->operands[0]))
    return;
  Term symbol = size->operands[0], c = size->operands[1];
  Term q = terms.symbol((symbol->name + "/" + Twine(c->value)).str());
  Term r = terms.symbol((symbol->name + "%" + Twine(c->value)).str());
  divided[symbol] = terms.sum(terms.product(c, q), r);
  gone[terms.quotient(r, c)] = terms.number(0);
  divisions.push_back({q, r, c->value});
  splitting.reset();
  facts.push_back(terms.below(r, c));
}

Term Prover::extentOf(Term index) {
  if (Term extent = ranges.lookup(index))
    return extent;
  Term extent = variables.extentOf(index);
  return extent ? split(extent) : nullptr;
}

Term Prover::indexOf(Term term, Term extent, StringRef name) {
  Term &index = indices[{term, extent}];
  if (!index) {
    index = terms.freshIndex(name);
    if (extent)
      ranges[index] = extent;
  }
  return index;
}

Term Prover::witnessOf(Term reduce) { return indexOf(reduce, nullptr, "w"); }

Term validation::tightened(TermContext &terms, Term goal) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0, common = 0;
  splitSum(goal, parts, constant);
  for (auto [part, coefficient] : parts)
    common = std::gcd(common, coefficient);
  return common > 1 ? terms.quotient(goal, terms.number(common)) : goal;
}

Proof Prover::search(Term goal, Term condition, ArrayRef<const Assumption *> used, unsigned depth, bool harder,
                     bool &hasProducts) {
  Proof proof;
  hasProducts = false;
  if (goal->is(TermKind::Number)) {
    proof.holds = goal->value >= 0;
    return proof;
  }
  goal = tightened(terms, goal);
  Search search(*this, condition, used, depth, harder);
  search.system.add(terms.difference(terms.number(-1), goal));
  bool possible = search.assume(condition);
  for (Term fact : facts)
    possible = possible && search.assume(fact);
  // Instantiate assumptions for truth values that are elements: these are no unknowns of the
  // system.
  if (!used.empty()) {
    DenseSet<Term> seen;
    std::function<void(Term)> visit = [&](Term part) {
      if (!seen.insert(part).second)
        return;
      if (part->is(TermKind::Load))
        search.instantiate(part);
      llvm::for_each(part->operands, visit);
    };
    visit(condition);
  }
  // Assumptions on scalars and symbols hold without instantiation.
  for (const Assumption *assumption : used) {
    llvm::SetVector<Term> mentioned;
    collectIndices(assumption->fact, mentioned);
    if (mentioned.empty())
      possible = possible && search.assume(assumption->fact);
  }
  unsigned budget = maxCases;
  if (possible && !search.contradicted) {
    search.close(goal);
    proof.holds = System::isNothing(search.refute(budget));
    hasProducts = search.hasProducts;
  } else {
    proof.holds = true;
  }
  proof.always = proof.holds && condition->isTrue();
  proof.lemmas = std::move(search.lemmas);
  return proof;
}

Proof Prover::attempt(Term goal, Term condition, ArrayRef<const Assumption *> used, unsigned depth) {
  std::vector<const Assumption *> key(used.begin(), used.end());
  if (auto it = memo.find({goal, condition, key, isLast}); it != memo.end())
    return it->second;
  bool isPlain = depth == 0 && condition->isTrue() && used.empty(), hasProducts = false;
  Proof proof;
  if (isPlain)
    std::tie(proof, hasProducts) = attemptAlways(goal);
  else
    proof = search(goal, condition, used, depth, /*harder=*/false, hasProducts);
  // A harder search only adds products.
  if (!proof.holds && depth == 0 && hasProducts) {
    proof = search(goal, condition, used, depth, /*harder=*/true, hasProducts);
    if (!proof.holds)
      proof = attemptCases(goal, condition, used);
  }
  // A failure because the budget ran out is not memoised.
  bool ranOut = isLast && work < 0;
  if (proof.holds || (depth == 0 && !ranOut))
    memo[{goal, condition, key, isLast}] = proof;
  return proof;
}

/// Proves a goal with a minimum, a maximum or a selection among its parts, case by case. In each
/// case the products with that part are other products.
Proof Prover::attemptCases(Term goal, Term condition, ArrayRef<const Assumption *> used) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(goal, parts, constant);
  Proof all;
  for (auto [part, coefficient] : parts) {
    Term first = nullptr, x = nullptr, y = nullptr, others = terms.number(1), choice = part;
    if (part->is(TermKind::Product)) {
      auto *it = llvm::find_if(part->operands, isExtreme);
      if (!isLast || it == part->operands.end())
        continue;
      choice = *it;
      for (const Term &factor : part->operands)
        if (&factor != it)
          others = terms.product(others, factor);
    }
    if (choice->is(TermKind::Select)) {
      first = choice->operands[0], x = choice->operands[1], y = choice->operands[2];
    } else if (isExtreme(choice)) {
      x = choice->operands[0], y = choice->operands[1];
      first = choice->name == "min" ? terms.atMost(x, y) : terms.atMost(y, x);
    } else {
      continue;
    }
    all.holds = true;
    for (auto [value, where] : {std::pair(x, first), std::pair(y, terms.negate(first))}) {
      Term change = terms.product(others, terms.difference(value, choice));
      change = terms.scaled(change, coefficient);
      Proof one = attempt(terms.sum(goal, change), terms.both(condition, where), used, 0);
      all.holds &= one.holds;
      all.lemmas.insert(one.lemmas.begin(), one.lemmas.end());
      if (!all.holds)
        break;
    }
    break;
  }
  all.always = all.holds && condition->isTrue();
  return all;
}

/// Returns the condition, and that the indices of a goal are in their ranges.
Term Prover::inRanges(Term goal, Term condition) {
  llvm::SetVector<Term> mentioned;
  collectIndices(goal, mentioned);
  for (Term index : mentioned)
    if (Term extent = variables.extentOf(index))
      condition = terms.both(condition, terms.below(index, split(extent)));
  return condition;
}

/// Replaces minima and maxima in the goal that the ranges of its indices decide.
Term Prover::simplified(Term goal, Term condition) {
  llvm::SetVector<Term> extremes;
  condition = inRanges(goal, condition);
  DenseSet<Term> seen;
  std::function<void(Term)> visit = [&](Term term) {
    if (!seen.insert(term).second)
      return;
    llvm::for_each(term->operands, visit);
    if (isExtreme(term))
      extremes.insert(term);
  };
  visit(goal);
  DenseMap<Term, Term> with;
  for (Term extreme : extremes)
    for (unsigned k : {0, 1}) {
      Term x = extreme->operands[k], y = extreme->operands[1 - k];
      Term gap = extreme->name == "min" ? terms.difference(y, x) : terms.difference(x, y);
      if (!with.contains(extreme) && attempt(gap, condition, {}, 1).holds)
        with[extreme] = x;
    }
  return terms.substitute(goal, with);
}

const std::pair<Proof, bool> &Prover::attemptAlways(Term goal) {
  auto [it, isNew] = unconditional.try_emplace(goal);
  auto &[proof, hasProducts] = it->second;
  if (isNew)
    proof = search(goal, terms.truth(true), {}, 0, /*harder=*/false, hasProducts);
  return it->second;
}

Proof Prover::prove(Term goal, Term condition) {
  Term whole = split(goal), where = split(condition);
  bool flattened = false;
  goal = flatten(whole, flattened);
  condition = flatten(where, flattened);
  Proof proof = decide(goal, condition);
  if (!proof.holds)
    if (Term simpler = flatten(simplified(goal, condition), flattened); simpler != goal) {
      proof = decide(simpler, condition);
      proof.always &= condition->isTrue();
    }
  if (proof.holds) {
    if (flattened)
      proof.lemmas.insert("Lemma 14");
    return proof;
  }
  return proveHarder(goal, condition, whole, where);
}

/// Tries the last, expensive means within a work limit. Each is tried on the original goal, where
/// remainders are still remainders of the same quotient, and on the goal with nested quotients
/// flattened.
Proof Prover::proveHarder(Term flatGoal, Term flatCondition, Term goal, Term condition) {
  llvm::SaveAndRestore last(isLast, true);
  work = maxWork;
  bool isFlattened = flatGoal != goal || flatCondition != condition;
  Proof proof;
  if (isFlattened && (proof = decide(goal, condition)).holds)
    return proof;
  SmallVector<std::pair<Term, Term>> forms = {{goal, condition}};
  if (isFlattened)
    forms.push_back({flatGoal, flatCondition});
  auto shown = [&](llvm::function_ref<Proof(Term, Term)> means) {
    work = maxWork;
    for (auto [e, where] : forms)
      if (proof = means(e, inRanges(e, where)); proof.holds) {
        proof.always = condition->isTrue();
        if (e != goal)
          proof.lemmas.insert("Lemma 14");
        return true;
      }
    return false;
  };
  if (shown([&](Term e, Term where) { return withoutQuotients(simplified(e, where), where, maxQuotients); }))
    return proof;
  for (bool alwaysDigits : {false, true})
    if (shown([&](Term e, Term where) { return Parts(*this, e, where, alwaysDigits).prove(); }))
      break;
  return proof;
}

Proof Prover::decide(Term goal, Term condition) {
  // Most conditions do not matter for the index. One unconditional proof then serves all of them.
  if (const Proof &proof = attemptAlways(goal).first; proof.holds)
    return proof;
  Proof proof = attempt(goal, condition, {}, 0);
  if (proof.holds || assumptions.empty())
    return proof;
  // Try declared ranges first, then all assumptions. Afterwards drop those that are not needed.
  std::vector<const Assumption *> used;
  for (bool areRanges : {true, false}) {
    for (const Assumption &assumption : assumptions)
      if (assumption.isRange == areRanges)
        used.push_back(&assumption);
    proof = attempt(goal, condition, used, 0);
    if (proof.holds)
      break;
  }
  if (!proof.holds)
    return proof;
  for (size_t k = used.size(); k-- > 0 && used.size() > 1;) {
    std::vector<const Assumption *> fewer = used;
    fewer.erase(fewer.begin() + k);
    if (Proof without = attempt(goal, condition, fewer, 0); without.holds) {
      used = std::move(fewer);
      proof = without;
    }
  }
  for (const Assumption *assumption : used)
    proof.assumptions.insert(assumption->text);
  return proof;
}
