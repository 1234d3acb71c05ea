//===- Search.cpp - the search for a point that refutes a goal ------------===//
#include "lib/Validation/Search.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Largest number of unknowns of one proof that get constraints.
static constexpr size_t maxUnknowns = 200;

bool Prover::Search::assume(Term truth) {
  if (truth->isTrue() || !held.insert(truth))
    return true;
  if (truth->isFalse() || held.contains(terms.negate(truth)))
    return !(contradicted = true);
  switch (truth->kind) {
  case TermKind::And:
    return llvm::all_of(truth->operands, [&](Term part) { return assume(part); });
  case TermKind::NotNegative:
    return system.add(truth->operands[0]), true;
  case TermKind::Zero:
    return system.add(truth->operands[0], true), true;
  case TermKind::Or: {
    Cases cases;
    for (Term part : truth->operands)
      cases.push_back({part});
    choices.push_back(std::move(cases));
    return true;
  }
  case TermKind::Not:
    return assumeNot(truth->operands[0]);
  case TermKind::Select: {
    Term p = truth->operands[0];
    choices.push_back({{p, truth->operands[1]}, {terms.negate(p), truth->operands[2]}});
    return true;
  }
  default:
    return true;
  }
}

bool Prover::Search::assumeNot(Term truth) {
  switch (truth->kind) {
  case TermKind::And: {
    Cases cases;
    for (Term part : truth->operands)
      cases.push_back({terms.negate(part)});
    choices.push_back(std::move(cases));
    return true;
  }
  case TermKind::Or:
    return llvm::all_of(truth->operands, [&](Term part) { return assume(terms.negate(part)); });
  case TermKind::Zero: {
    Term a = truth->operands[0], one = terms.number(1);
    choices.push_back({{terms.notNegative(terms.difference(a, one))},
                       {terms.notNegative(terms.difference(terms.scaled(a, -1), one))}});
    return true;
  }
  case TermKind::Select: {
    Term p = truth->operands[0];
    choices.push_back({{p, terms.negate(truth->operands[1])}, {terms.negate(p), terms.negate(truth->operands[2])}});
    return true;
  }
  default:
    return true;
  }
}

void Prover::Search::explainAll() {
  for (size_t k = 0; k < system.unknowns.size() && k < maxUnknowns; ++k)
    explain(system.unknowns[k]);
}

void Prover::Search::close(Term goal) {
  explainAll();
  for (bool again : {false, true}) {
    hasProducts =
        !divisors.empty() || llvm::any_of(system.unknowns, [](Term unknown) { return unknown->is(TermKind::Product); });
    if (!hasProducts || again > harder)
      return;
    if (!again && system.find(/*integers=*/false) == System::Points::None) {
      contradicted = true;
      return;
    }
    multiply(goal);
    multiplyFacts();
    explainAll();
  }
}

void Prover::Search::instantiate(Term load) {
  for (const Assumption *assumption : used) {
    // Match every element of this input in the assumption with the load.
    DenseSet<Term> seen;
    std::function<void(Term)> match = [&](Term part) {
      if (!seen.insert(part).second)
        return;
      if (part->is(TermKind::Load) && part->value == load->value) {
        DenseMap<Term, Term> with;
        for (auto [variable, index] : llvm::zip_equal(part->operands, load->operands))
          if (variable->is(TermKind::Index))
            with.try_emplace(variable, index);
        if (terms.substitute(part, with) == load)
          assume(terms.substitute(assumption->fact, with));
      }
      for (Term operand : part->operands)
        match(operand);
    };
    match(assumption->fact);
  }
}

Prover::System::Points Prover::Search::refute(unsigned &budget) {
  using Points = System::Points;
  if (contradicted)
    return Points::None;
  bool isEnd = choices.empty() || budget == 0;
  if (prover.isLast && (prover.work -= system.getSize()) < 0)
    return Points::Unknown;
  bool isWhole = reductions.empty() || budget == 0;
  Points found = system.find(/*integers=*/isEnd && isWhole);
  if (isEnd && !isWhole && found != Points::None) {
    explainReductions();
    return refute(budget);
  }
  if (isEnd || found == Points::None)
    return found;
  --budget;
  Cases cases = std::move(choices.back());
  choices.pop_back();
  Points result = Points::None;
  std::optional<Points> whole;
  for (const auto &truths : cases) {
    Search branch = *this;
    bool possible = true;
    for (Term truth : truths)
      possible = possible && branch.assume(truth);
    if (!possible)
      continue;
    branch.explainAll();
    found = branch.refute(budget);
    lemmas.insert(branch.lemmas.begin(), branch.lemmas.end());
    if (found == Points::None)
      continue;
    if (found == Points::Some)
      return found;
    // If integers decide this case, they may decide the system without cases.
    if (!whole)
      whole = system.find(/*integers=*/true);
    if (found == Points::Unknown || System::isNothing(*whole))
      return *whole;
    result = Points::NoIntegers;
  }
  return result;
}
