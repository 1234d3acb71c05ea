//===- ToleranceLimit.h - tolerances that no result keeps -------*- C++ -*-===//
#ifndef MOA_SUPPORT_TOLERANCELIMIT_H
#define MOA_SUPPORT_TOLERANCELIMIT_H

#include "lib/Support/Tolerance.h"

namespace moa {

/// Why no result of a float type with so many bits of precision keeps the tolerance for every
/// input: its own rounding is further off. Nothing if that may be.
std::optional<std::string> whyNotKept(const Tolerance &tolerance, unsigned precision,
                                      llvm::StringRef type);

} // namespace moa

#endif // MOA_SUPPORT_TOLERANCELIMIT_H
