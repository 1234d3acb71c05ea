//===- Inside.h - indices proved to lie inside their axes -------*- C++ -*-===//
//
// A program reads inside its arrays under the conditions of each read. A pass may drop a condition,
// or compute an array as a whole, and then reads more elements. It first asks this class if the
// index is in bounds for all values of the index variables.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_INSIDE_H
#define MOA_VALIDATION_INSIDE_H

#include "lib/Validation/Term.h"
#include "lib/Validation/Validation.h"
#include <map>

namespace moa::validation {

class InsideProver {
public:
  /// Takes the kernel's constraints on sizes as facts. Does not use assumptions about array
  /// elements, since the program may not read the elements in question.
  explicit InsideProver(dnf::KernelOp kernel);
  ~InsideProver();

  TermContext &getTerms();
  /// Returns the index variable of this number, which lies below an extent.
  Term getIndex(unsigned number, const SymExpr &extent, llvm::StringRef name);
  /// Returns true if 0 ≤ index < extent is proved for all values of the variables.
  bool isInside(Term index, const SymExpr &extent);

private:
  std::unique_ptr<Validator::State> state;
  bool isOpen;
  std::map<std::pair<Term, Term>, bool> known;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_INSIDE_H
