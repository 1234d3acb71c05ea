//===- Remedies.h - remedies for an unproved index --------------*- C++ -*-===//
//
// Constraints, ranges and assumptions with which an index is shown to lie inside its axis. The
// prover tries each one before it is proposed. A remedy that no sizes satisfy, or only sizes at
// which nothing is read, is never proposed.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_REMEDIES_H
#define MOA_VALIDATION_REMEDIES_H

#include "lib/Validation/Prover.h"

namespace moa::validation {

class Remedies {
public:
  /// Finds remedies for `index` on an axis of `extent`, under the condition of the read.
  Remedies(TermContext &terms, const Prover &prover, const Variables &variables, Term index, Term extent,
           Term condition)
      : terms(terms), prover(prover), variables(variables), index(index), extent(extent), condition(condition) {}

  /// Returns a constraint on the sizes, such as "H % G == 0". Empty if there is none.
  std::string findConstraint();
  /// Returns the end N of a range 0..N of a parameter's elements. Empty if there is none.
  std::string findRange(Term load);
  /// Returns an assumption about a parameter's elements, such as "[b] off[b] + N <= L". Empty if
  /// there is none.
  std::string findAssumption(Term load);
  /// Tries the index wrapped or clamped. Returns no value if it may still leave the axis, and true
  /// if the axis must not be empty for that.
  std::optional<bool> isMendedByRemainder() const;
  std::optional<bool> isMendedByClamp() const;

  Term getUpper(Term of) const { return terms.difference(terms.difference(extent, terms.number(1)), of); }

private:
  bool mends(llvm::ArrayRef<Term> facts) const;
  bool isOfUse(Term facts) const;
  std::optional<bool> isMended(Term other) const;
  bool isInside(const Prover &with, Term of) const;
  Term least(Term goal) const;
  void collectDivisors(Term term, llvm::SetVector<Term> &facts);

  TermContext &terms;
  const Prover &prover;
  const Variables &variables;
  Term index, extent, condition;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_REMEDIES_H
