//===- CNames.h - reserved words of C and C++ -------------------*- C++ -*-===//
#ifndef MOA_TARGET_CNAMES_H
#define MOA_TARGET_CNAMES_H

#include "llvm/ADT/StringRef.h"

namespace moa {

/// Returns whether a word is reserved in C or C++.
bool isReservedWord(llvm::StringRef name);

} // namespace moa

#endif // MOA_TARGET_CNAMES_H
