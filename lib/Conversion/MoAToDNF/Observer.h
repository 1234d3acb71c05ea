//===- Observer.h - who hears of ψ-reduction's steps ------------*- C++ -*-===//
#ifndef MOA_CONVERSION_MOATODNF_OBSERVER_H
#define MOA_CONVERSION_MOATODNF_OBSERVER_H

#include "dialects/DNF/IR/DNF.h"

namespace moa {

/// Hears of every step of `convert-moa-to-dnf` while it is done. The kernel may be read
/// in every call and changed in none.
class PsiObserver {
public:
  virtual ~PsiObserver() = default;
  /// No law has been applied: the outputs are ψ of the returned arrays.
  virtual void began(dnf::KernelOp kernel) = 0;
  /// One law has been applied, at one place.
  virtual void applied(llvm::StringRef law, dnf::KernelOp kernel) = 0;
  /// Behind the laws: `what` was done to the whole kernel.
  virtual void tidied(llvm::StringRef what, dnf::KernelOp kernel) = 0;
  /// The normal form is reached; lets have their names and order, unused ones are gone.
  virtual void ended(dnf::KernelOp kernel) = 0;
};

} // namespace moa

#endif // MOA_CONVERSION_MOATODNF_OBSERVER_H
