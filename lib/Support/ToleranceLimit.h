//===- ToleranceLimit.h - tolerances below a type's rounding ----*- C++ -*-===//
#ifndef MOA_SUPPORT_TOLERANCELIMIT_H
#define MOA_SUPPORT_TOLERANCELIMIT_H

#include "lib/Support/Tolerance.h"

namespace moa {

/// Returns a message if no result of a float type with `precision` bits satisfies the tolerance for
/// every input, because rounding the result has a larger error. Otherwise returns nothing.
std::optional<std::string> whyNotKept(const Tolerance &tolerance, unsigned precision, llvm::StringRef type);

} // namespace moa

#endif // MOA_SUPPORT_TOLERANCELIMIT_H
