//===- Inside.h - indices that stay inside of their axes --------*- C++ -*-===//
//
// What a program reads lies inside of its arrays where it reads it. A pass that reads elsewhere
// too, as it leaves a condition out or computes an array as a whole, asks here whether that holds
// for all values of the indices.
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
  /// Knows what the kernel requires of its sizes. What it assumes of elements of arrays is not
  /// used: such elements may stand where the program reads none.
  explicit InsideProver(dnf::KernelOp kernel);
  ~InsideProver();

  TermContext &getTerms();
  /// The variable of this number below an extent.
  Term getIndex(unsigned number, llvm::StringRef extent, llvm::StringRef name);
  /// Whether 0 ≤ index < extent for all values of the variables; false where it is not shown.
  bool isInside(Term index, llvm::StringRef extent);

private:
  std::unique_ptr<Validator::State> state;
  bool isOpen;
  std::map<std::pair<Term, std::string>, bool> known;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_INSIDE_H
