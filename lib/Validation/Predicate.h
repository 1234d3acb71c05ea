//===- Predicate.h - constraints and assumptions as terms -------*- C++ -*-===//
#ifndef MOA_VALIDATION_PREDICATE_H
#define MOA_VALIDATION_PREDICATE_H

#include "lib/Validation/Term.h"
#include "llvm/Support/Error.h"

namespace moa::validation {

/// Parses a predicate over symbols and elements of inputs in the syntax of kernel attributes: `H%G
/// == 0`, `[b, p] table[b, p] < NP`. The leading names in brackets are universally quantified index
/// variables.
llvm::Expected<Term> parsePredicate(TermContext &terms, llvm::StringRef text, llvm::ArrayRef<mlir::Type> inputTypes);

/// Parses an integer over these index variables (by name), symbols and elements of inputs. Returns
/// null for any other text.
Term parseInteger(TermContext &terms, llvm::StringRef text, llvm::ArrayRef<mlir::Type> inputTypes,
                  const llvm::StringMap<Term> &variables);

} // namespace moa::validation

#endif // MOA_VALIDATION_PREDICATE_H
