//===- RoundingErrorShared.h - errors shared by several values --*- C++ -*-===//
#ifndef MOA_ACCURACY_ROUNDINGERRORSHARED_H
#define MOA_ACCURACY_ROUNDINGERRORSHARED_H

#include "lib/Accuracy/Bounds/RoundingErrorRules.h"
#include "llvm/ADT/STLExtras.h"

namespace moa {

/// Adds factor times the shared errors of `from`; errors with the coefficient 0 are removed.
inline void combineShared(std::map<std::string, SharedError> &into, const std::map<std::string, SharedError> &from,
                          double factor) {
  for (const auto &[key, shared] : from) {
    auto [it, isNew] = into.emplace(key, shared);
    it->second.coefficient = (isNew ? 0 : it->second.coefficient) + factor * shared.coefficient;
    if (it->second.coefficient == 0)
      into.erase(it);
  }
}

inline bool haveSameShared(const ErrorValue &x, const ErrorValue &y) {
  return x.exponential == y.exponential && x.shared.size() == y.shared.size() &&
         llvm::all_of(llvm::zip(x.shared, y.shared), [](const auto &pair) {
           const auto &[a, b] = pair;
           return a.first == b.first && a.second.coefficient == b.second.coefficient;
         });
}

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORSHARED_H
