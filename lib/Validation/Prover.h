//===- Prover.h - inequalities between integers -----------------*- C++ -*-===//
//
// Shows e ≥ 0 under a condition: the facts, the ranges of the indices and e < 0
// together are given to MLIR's Presburger library, which finds that no integers
// satisfy them. Products and quotients by a symbol are unknowns of their own, of
// which the lemmas of docs/Spec.md, section 9, say as much as is needed; min, max,
// selections and disjunctions are tried case by case.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_PROVER_H
#define MOA_VALIDATION_PROVER_H

#include "lib/Validation/Accesses.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>

namespace moa::validation {

/// A fact about what the caller hands in that nothing checks. Index variables in it
/// stand for every element of the input at which they are subscripts.
struct Assumption {
  Term fact;
  std::string text;
  bool isRange = false; ///< declared beside the input: `in low..high`
};

struct Proof {
  bool holds = false;
  bool always = false; ///< whatever the condition is
  std::set<std::string> lemmas;
  std::set<std::string> assumptions;
};

class Prover {
public:
  Prover(TermContext &terms, const Variables &variables) : terms(terms), variables(variables) {}

  /// Something that holds in every call that is not refused.
  void addFact(Term truth) { facts.push_back(split(truth)); }
  void addAssumption(Assumption assumption) {
    assumption.fact = split(assumption.fact);
    assumptions.push_back(std::move(assumption));
  }
  /// A size in which a symbol is divided by a number, N/c: from here on N is c·Q + R with
  /// 0 ≤ R < c, so that N/c and N%c are unknowns. To be said before any fact.
  void splitSymbols(Term size);
  /// An integer that is never negative, such as an extent.
  void addNotNegative(Term term);

  /// One that knows a fact more, which this one does not learn.
  Prover with(Term fact) const {
    Prover other(*this);
    other.unconditional.clear();
    other.memo.clear();
    other.work = 0;
    other.addFact(fact);
    return other;
  }

  /// Whether goal ≥ 0 wherever the condition holds.
  Proof prove(Term goal, Term condition);

private:
  struct System;
  struct Search;
  struct Parts;
  Term split(Term term);
  /// What an index is below, or null.
  Term extentOf(Term index);
  bool isSizeAlways(Term term);
  Term flatten(Term term, bool &used);
  Proof decide(Term goal, Term condition);
  Proof proveHarder(Term flatGoal, Term flatCondition, Term goal, Term condition);
  const std::pair<Proof, bool> &attemptAlways(Term goal);
  Proof attemptCases(Term goal, Term condition, llvm::ArrayRef<const Assumption *> used);
  Term inRanges(Term goal, Term condition);
  Term simplified(Term goal, Term condition);
  Proof withoutQuotients(Term goal, Term condition, unsigned depth);
  /// What e is not below where the condition holds: indices whose coefficient has a known sign
  /// are at an end of their range.
  Term leastAtCorner(Term e, Term condition, std::set<std::string> &lemmas, bool ofSymbols = false,
                     bool bySearch = true);
  /// The index that stands for a term, below an extent if one is given.
  Term indexOf(Term term, Term extent, llvm::StringRef name);
  /// An index at which a reduction's term is the extreme, if there is any; of a sum, any index.
  Term witnessOf(Term reduce);
  bool isSumOfDistances(Term e, llvm::ArrayRef<Term> known);
  bool isSumOfDistances(Term e, Term condition, std::set<std::string> &lemmas);
  /// The remainders of the symbols of which quotients or remainders stand in a term, in every
  /// combination; none where these are many.
  std::vector<llvm::DenseMap<Term, Term>> remaindersIn(Term e);
  /// The corner's polynomial as it is, or also by searches.
  Proof attemptCorner(Term goal, Term condition, bool bySearch = true);
  bool isPositive(Term divisor, Term condition, llvm::ArrayRef<const Assumption *> used,
                  unsigned depth, std::set<std::string> &lemmas);
  Proof attempt(Term goal, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth);
  Proof search(Term goal, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth,
               bool harder, bool &hasProducts);

  TermContext &terms;
  const Variables &variables;
  std::vector<Term> facts;
  std::vector<Assumption> assumptions;
  llvm::DenseMap<Term, std::pair<Term, bool>> flat;
  llvm::DenseMap<Term, Term> divided, gone;
  /// N = c·Q + R.
  struct Division {
    Term quotient, remainder;
    int64_t divisor;
  };
  std::vector<Division> divisions;
  /// Those of `divided` and `gone`, one after the other, until another symbol is divided.
  std::optional<std::pair<Substitution, Substitution>> splitting;
  /// The indices that stand for terms, by their extents, and these.
  std::map<std::pair<Term, Term>, Term> indices;
  llvm::DenseMap<Term, Term> ranges;
  /// Without a condition and with few products; whether more products were worth a try.
  std::map<Term, std::pair<Proof, bool>> unconditional;
  std::map<std::tuple<Term, Term, std::vector<const Assumption *>, bool>, Proof> memo;
  /// The last means are tried: products of two facts, while there is work left for them.
  bool isLast = false;
  int64_t work = 0;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_PROVER_H
