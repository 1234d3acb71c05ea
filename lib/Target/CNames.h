//===- CNames.h - names that C and C++ keep for themselves ------*- C++ -*-===//
#ifndef MOA_TARGET_CNAMES_H
#define MOA_TARGET_CNAMES_H

#include "llvm/ADT/StringRef.h"

namespace moa {

/// A word that C or C++ keeps for itself.
bool isReservedWord(llvm::StringRef name);

} // namespace moa

#endif // MOA_TARGET_CNAMES_H
