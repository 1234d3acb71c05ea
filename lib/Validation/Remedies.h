//===- Remedies.h - what would keep an index inside -------------*- C++ -*-===//
//
// Constraints, ranges and assumptions that could be stated so that an index is shown to
// lie inside of its axis. Each is tried by the prover before it is proposed, and none is
// that holds for no sizes, or only for those at which nothing is read.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_REMEDIES_H
#define MOA_VALIDATION_REMEDIES_H

#include "lib/Validation/Prover.h"

namespace moa::validation {

class Remedies {
public:
  /// Of an index of an axis, wherever the condition holds.
  Remedies(TermContext &terms, const Prover &prover, const Variables &variables, Term index,
           Term extent, Term condition)
      : terms(terms), prover(prover), variables(variables), index(index), extent(extent),
        condition(condition) {}

  /// A constraint on the sizes: "H % G == 0"; empty if there is none.
  std::string findConstraint();
  /// The end of the range of a parameter's elements, which begins at 0, and the range: "N".
  std::string findRange(Term load);
  /// What to assume of a parameter's elements: "[b] off[b] + N <= L".
  std::string findAssumption(Term load);
  /// Whether the index is inside once it is wrapped or clamped: no value if it is not,
  /// true if the axis has to have an element for it.
  std::optional<bool> isMendedByRemainder() const;
  std::optional<bool> isMendedByClamp() const;

  Term getUpper(Term of) const {
    return terms.difference(terms.difference(extent, terms.number(1)), of);
  }

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
