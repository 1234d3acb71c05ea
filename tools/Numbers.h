//===- Numbers.h - numbers on a command line --------------------*- C++ -*-===//
#ifndef MOA_TOOLS_NUMBERS_H
#define MOA_TOOLS_NUMBERS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace moa {

inline llvm::Expected<uint64_t> readNumber(const llvm::Twine &option, llvm::StringRef text, uint64_t low,
                                           uint64_t high) {
  uint64_t value = 0;
  if (text.getAsInteger(10, value) || value < low || value > high)
    return llvm::createStringError("--" + option + " takes a number from " + llvm::Twine(low) + " to " +
                                   (high == UINT64_MAX ? "2^64 - 1" : llvm::Twine(high)) + ", not '" + text + "'");
  return value;
}

} // namespace moa

#endif // MOA_TOOLS_NUMBERS_H
