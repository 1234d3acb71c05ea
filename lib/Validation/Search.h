//===- Search.h - one proof of the prover -----------------------*- C++ -*-===//
//
// What the files of the prover share. A proof is a search for integers that satisfy the
// facts, the condition and the negated goal: a linear system over unknowns (indices,
// symbols, elements, products, quotients), and choices between cases.
//
//   Prover.cpp        which proofs are tried for a goal, in which order
//   LinearSystem.cpp  whether a system has points
//   Search.cpp        what is held to be true, and the search through the cases
//   Unknowns.cpp      what is known of an index, a quotient, a minimum, an element
//   Products.cpp      what is known of products (Lemma 12)
//   Quotients.cpp     goals without some of their quotients (Lemmas 14 and 15)
//   Parts.cpp         goals whose parts are indices of known ranges (Lemmas 5, 16 and 18)
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_SEARCH_H
#define MOA_VALIDATION_SEARCH_H

#include "lib/Validation/Prover.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"

namespace moa::validation {

/// Lemmas inside each other whose premise needs a proof.
inline constexpr unsigned maxNesting = 3;
/// Quotients that a goal gets rid of; those that leave no equivalent goal count twice.
inline constexpr unsigned maxQuotients = 6;
/// Facts that are multiplied.
inline constexpr size_t maxProducts = 24;

/// A minimum or a maximum of integers.
bool isExtreme(Term term);
/// A polynomial without negative coefficients in symbols.
bool isSize(Term term);
/// c·e + d ≥ 0 is e + ⌊d / c⌋ ≥ 0.
Term tightened(TermContext &terms, Term goal);

/// Σ coefficient · unknown + constant ≥ 0 (or = 0) for every row.
struct Prover::System {
  struct Row {
    llvm::SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    bool isEquality = false;
  };

  void add(Term sum, bool isEquality = false);

  /// What it takes to solve, in no unit.
  int64_t getSize() const { return rows.size() * rows.size() * unknowns.size(); }

  /// What is known of the points that satisfy all rows.
  enum class Points { None, NoIntegers, Some, Unknown };
  static bool isNothing(Points points) {
    return points == Points::None || points == Points::NoIntegers;
  }

  Points find(bool integers) const;

  std::vector<Row> rows;
  llvm::SetVector<Term> unknowns;

private:
  mlir::presburger::IntegerPolyhedron polyhedron() const;
  llvm::DenseSet<Term> sums, zeros;
};

/// A choice between cases: in each its truths hold.
using Cases = std::vector<llvm::SmallVector<Term, 2>>;

/// One search. Facts are assumed, then the unknowns are explained until nothing new comes
/// up, then the cases are gone through.
struct Prover::Search {
  Search(Prover &prover, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth,
         bool harder)
      : prover(prover), terms(prover.terms), condition(condition), used(used), depth(depth),
        harder(harder) {}

  /// Adds a truth value that holds; false if it contradicts another one.
  bool assume(Term truth);
  /// What is known of every unknown, until nothing new comes up; products where what is
  /// known without them is not enough.
  void close(Term goal);
  /// Looks for a case that is possible. Rational points decide whether there is a choice
  /// to make, integer ones where none is left; a point of a case is one of the whole.
  System::Points refute(unsigned &budget);
  /// What is assumed of an element.
  void instantiate(Term load);

  Prover &prover;
  TermContext &terms;
  Term condition;
  llvm::ArrayRef<const Assumption *> used;
  unsigned depth;
  /// More products, after fewer were not enough.
  bool harder;
  System system;
  std::vector<Cases> choices;
  llvm::SetVector<Term> held, explained, divisors, extremes;
  /// Of which nothing has been said yet: most goals hold whatever a maximum is, and what is
  /// said of one (Lemma 17) brings choices, and other reductions.
  llvm::SetVector<Term> reductions;
  std::set<std::string> lemmas;
  bool contradicted = false, hasProducts = false;

private:
  bool assumeNot(Term truth);
  void explainAll();
  void explain(Term unknown);
  void explainQuotient(Term quotient);
  void boundQuotient(Term quotient);
  void explainProduct(Term product);
  void explainScalar(Term scalar);
  void explainLoad(Term load);
  void explainReductions();
  void explainReduce(Term reduce);
  void explainInner(Term reduce);
  void explainSum(Term reduce);
  void assumeExtreme(Term reduce, Term index);
  void multiply(Term goal);
  void multiplyFacts();
  void multiplyPairs(const llvm::DenseSet<Term> &known);
  bool isNotNegative(Term factor) const;
};

/// A goal while its parts become indices: under the condition 0 ≤ t < a, a part t is any
/// index of that range (Lemma 16). The condition says that the ranges are not empty.
struct Prover::Parts {
  /// An index that is divided becomes its digits: where they take all values, or always.
  Parts(Prover &prover, Term goal, Term condition, bool alwaysDigits);
  Proof prove();

private:
  bool isShown(Term e);
  Term next();
  Term indexFor(Term part, llvm::ArrayRef<Term> extents, llvm::function_ref<bool(Term)> isBelow);
  bool nameQuotient(Term quotient);
  bool decide(Term extreme);
  bool nameExtreme(Term extreme);
  void replace(const llvm::DenseMap<Term, Term> &with, Term truth);

  Prover &prover;
  TermContext &terms;
  Term goal, condition;
  bool alwaysDigits;
  std::set<std::string> lemmas;
  llvm::DenseSet<Term> tried;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_SEARCH_H
