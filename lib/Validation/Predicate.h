//===- Predicate.h - constraints and assumptions as terms -------*- C++ -*-===//
#ifndef MOA_VALIDATION_PREDICATE_H
#define MOA_VALIDATION_PREDICATE_H

#include "lib/Validation/Term.h"
#include "llvm/Support/Error.h"

namespace moa::validation {

/// Reads a predicate over the symbols and the elements of inputs, as kernels carry it:
/// `H%G == 0`, `[b, p] table[b, p] < NP`. Names in front, in brackets, are index
/// variables and stand for every index.
llvm::Expected<Term> parsePredicate(TermContext &terms, llvm::StringRef text,
                                    llvm::ArrayRef<mlir::Type> inputTypes);

/// Reads an integer over these, index variables by name, and symbols and elements of
/// inputs; null if the text is anything else.
Term parseInteger(TermContext &terms, llvm::StringRef text, llvm::ArrayRef<mlir::Type> inputTypes,
                  const llvm::StringMap<Term> &variables);

} // namespace moa::validation

#endif // MOA_VALIDATION_PREDICATE_H
