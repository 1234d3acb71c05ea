//===- Search.h - one proof of the prover -----------------------*- C++ -*-===//
//
// Declarations shared by the files of the prover. A proof is a search for integers that satisfy the
// facts, the condition and the negated goal. It is given as a linear system over unknowns (indices,
// symbols, elements, products, quotients) and choices between cases. If there are none, the goal
// holds.
//
//    Prover.cpp        the proofs tried for a goal, and their order
//    LinearSystem.cpp  feasibility of a linear system
//    Search.cpp        the truths assumed, and the search through the cases
//    Unknowns.cpp      constraints on an index, a quotient, a minimum, an element
//    Products.cpp      constraints on products (Lemma 12)
//    Quotients.cpp     goals without some of their quotients (Lemmas 14 and 15)
//    Parts.cpp         goals whose parts are indices of known ranges (Lemmas 5, 16 and 18)
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_SEARCH_H
#define MOA_VALIDATION_SEARCH_H

#include "lib/Validation/Prover.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"

namespace moa::validation {

/// How deep lemmas may nest whose premise needs a proof of its own.
inline constexpr unsigned maxNesting = 3;
/// Number of quotients that are eliminated from a goal. Those eliminated without an equivalence
/// count twice.
inline constexpr unsigned maxQuotients = 6;
/// Number of facts that are multiplied.
inline constexpr size_t maxProducts = 24;

/// Returns true if the term is a polynomial without negative coefficients in symbols and in
/// quotients of such polynomials by numbers. It is then never negative.
bool isExtreme(Term term);
/// Returns true if the term is a polynomial in symbols without negative coefficients.
bool isSize(Term term);
/// Divides the goal c·e + d ≥ 0 by c, which gives e + ⌊d / c⌋ ≥ 0.
Term tightened(TermContext &terms, Term goal);

/// Rows of the form Σ coefficient · unknown + constant ≥ 0 (or = 0).
struct Prover::System {
  struct Row {
    llvm::SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    bool isEquality = false;
  };

  void add(Term sum, bool isEquality = false);

  /// Returns an estimate of the cost of solving, in no unit.
  int64_t getSize() const { return rows.size() * rows.size() * unknowns.size(); }

  /// Kinds of points that satisfy all rows: none at all, none with integers, some integer point, or
  /// not decided.
  enum class Points { None, NoIntegers, Some, Unknown };
  static bool isNothing(Points points) { return points == Points::None || points == Points::NoIntegers; }

  Points find(bool integers) const;

  std::vector<Row> rows;
  llvm::SetVector<Term> unknowns;

private:
  mlir::presburger::IntegerPolyhedron polyhedron() const;
  llvm::DenseSet<Term> sums, zeros;
};

/// A choice between cases. In each case its truths hold.
using Cases = std::vector<llvm::SmallVector<Term, 2>>;

/// One search. It assumes the facts, then adds constraints on the unknowns until there are no new
/// unknowns, then goes through the cases.
struct Prover::Search {
  Search(Prover &prover, Term condition, llvm::ArrayRef<const Assumption *> used, unsigned depth, bool harder)
      : prover(prover), terms(prover.terms), condition(condition), used(used), depth(depth), harder(harder) {}

  /// Assumes a truth value. Returns false if it contradicts another one.
  bool assume(Term truth);
  /// Adds the constraints on every unknown until there are no new unknowns. Adds products if the
  /// system is still feasible without them.
  void close(Term goal);
  /// Looks for a feasible case. Rational points decide if a case needs to be split further, integer
  /// points decide when no choice is left. A point of a case is a point of the whole.
  System::Points refute(unsigned &budget);
  /// Assumes all assumptions about an element.
  void instantiate(Term load);

  Prover &prover;
  TermContext &terms;
  Term condition;
  llvm::ArrayRef<const Assumption *> used;
  unsigned depth;
  /// Multiply more facts, after a search with fewer products has failed.
  bool harder;
  System system;
  std::vector<Cases> choices;
  llvm::SetVector<Term> held, explained, divisors, extremes;
  /// Reductions without constraints so far. They are added late: most goals hold for any value of a
  /// maximum, and its constraints (Lemma 17) bring choices and more reductions.
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

/// A goal while its parts become indices. If 0 ≤ t < a under the condition, the part t may be
/// replaced by any index of that range (Lemma 16). The condition says that the ranges are not
/// empty.
struct Prover::Parts {
  /// With `alwaysDigits` a divided index always becomes its two digits. Otherwise it does so only
  /// if the digits take all their values.
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
