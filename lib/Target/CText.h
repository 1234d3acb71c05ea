//===- CText.h - text of C that all targets emit ----------------*- C++ -*-===//
#ifndef MOA_TARGET_CTEXT_H
#define MOA_TARGET_CTEXT_H

#include "lib/Target/Signature.h"
#include "llvm/ADT/ArrayRef.h"

namespace moa {

/// Returns whether a word is reserved in C or C++.
bool isReservedWord(llvm::StringRef name);

/// Returns a string literal.
std::string quote(llvm::StringRef text);

/// Returns the declaration of an entry point's parameter with this C name.
std::string declareParameter(const Parameter &parameter, llvm::StringRef name);

/// Returns `head(parameters)end` in lines of at most `columns` columns, aligned after the
/// parenthesis.
std::string printDeclaration(llvm::StringRef head, llvm::ArrayRef<std::string> parameters, llvm::StringRef end,
                             size_t columns);

} // namespace moa

#endif // MOA_TARGET_CTEXT_H
