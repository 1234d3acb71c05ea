//===- Prover.h - inequalities between integers -----------------*- C++ -*-===//
//
// Proves e ≥ 0 under a condition. The facts, the ranges of the indices, the condition and e < 0
// form a system of linear inequalities. If MLIR's Presburger library finds it infeasible over the
// integers, the goal holds. A product, or a quotient by a symbol, is an unknown of its own,
// constrained by the lemmas of docs/Spec.md, section 9. min, max, selections and disjunctions are
// split into cases.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_PROVER_H
#define MOA_VALIDATION_PROVER_H

#include "lib/Validation/Accesses.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>

namespace moa::validation {

/// An unchecked fact about the caller's arguments. Its index variables are universally quantified:
/// they stand for every element of the input that they subscript.
struct Assumption {
  Term fact;
  std::string text;
  bool isRange = false; ///< declared with the input: `in low..high`
};

struct Proof {
  bool holds = false;
  bool always = false; ///< under every condition
  std::set<std::string> lemmas;
  std::set<std::string> assumptions;
};

class Prover {
public:
  Prover(TermContext &terms, const Variables &variables) : terms(terms), variables(variables) {}

  /// Adds a truth that holds in every call that the entry points do not refuse.
  void addFact(Term truth) { facts.push_back(split(truth)); }
  void addAssumption(Assumption assumption) {
    assumption.fact = split(assumption.fact);
    assumptions.push_back(std::move(assumption));
  }
  /// Splits each symbol that a size divides by a number, N/c. From here on N is c·Q + R with 0 ≤ R
  /// < c, so that N/c and N%c are unknowns. Call before adding any fact.
  void splitSymbols(Term size);
  /// Adds the fact term ≥ 0, for example of an extent.
  void addNotNegative(Term term);

  /// Returns a copy of this prover that knows one more fact.
  Prover with(Term fact) const {
    Prover other(*this);
    other.unconditional.clear();
    other.memo.clear();
    other.work = 0;
    other.addFact(fact);
    return other;
  }

  /// Proves goal ≥ 0 wherever the condition holds.
  Proof prove(Term goal, Term condition);

private:
  struct System;
  struct Search;
  struct Parts;
  Term split(Term term);
  /// Returns the exclusive upper bound of an index, or null.
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
  /// Returns a lower bound of e under the condition. Each index whose coefficient has a known sign
  /// is replaced by an end of its range (Lemma 5).
  Term leastAtCorner(Term e, Term condition, std::set<std::string> &lemmas, bool ofSymbols = false,
                     bool bySearch = true);
  /// Returns the index variable that stands for a term, below `extent` unless it is null.
  Term indexOf(Term term, Term extent, llvm::StringRef name);
  /// Returns the index variable of a witness: where a reduction attains its extreme, if it has any
  /// present element. For a sum it stands for any index.
  Term witnessOf(Term reduce);
  bool isSumOfDistances(Term e, llvm::ArrayRef<Term> known);
  bool isSumOfDistances(Term e, Term condition, std::set<std::string> &lemmas);
  /// Returns one substitution for each combination of remainders of the divided symbols that a term
  /// mentions. Returns none if there are too many.
  std::vector<llvm::DenseMap<Term, Term>> remaindersIn(Term e);
  /// Proves the goal from its value at a corner, and with `bySearch` also by searches.
  Proof attemptCorner(Term goal, Term condition, bool bySearch = true);
  bool isPositive(Term divisor, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth,
                  std::set<std::string> &lemmas);
  Proof attempt(Term goal, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth);
  Proof search(Term goal, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth, bool harder,
               bool &hasProducts);

  TermContext &terms;
  const Variables &variables;
  std::vector<Term> facts;
  std::vector<Assumption> assumptions;
  llvm::DenseMap<Term, std::pair<Term, bool>> flat;
  llvm::DenseMap<Term, Term> divided, gone;
  /// A divided symbol: N = c·Q + R.
  struct Division {
    Term quotient, remainder;
    int64_t divisor;
  };
  std::vector<Division> divisions;
  /// The substitutions `divided` and then `gone`; reset whenever another symbol is divided.
  std::optional<std::pair<Substitution, Substitution>> splitting;
  /// The index variables that stand for terms, by term and extent, and their extents.
  std::map<std::pair<Term, Term>, Term> indices;
  llvm::DenseMap<Term, Term> ranges;
  /// Proofs without a condition and with few products. The flag says whether a search with more
  /// products is worth a try.
  std::map<Term, std::pair<Proof, bool>> unconditional;
  std::map<std::tuple<Term, Term, std::vector<const Assumption *>, bool>, Proof> memo;
  /// The last, expensive means are in use, such as products of two facts, while `work` lasts.
  bool isLast = false;
  int64_t work = 0;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_PROVER_H
