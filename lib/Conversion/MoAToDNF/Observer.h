//===- Observer.h - observer of the steps of ψ-reduction --------*- C++ -*-===//
#ifndef MOA_CONVERSION_MOATODNF_OBSERVER_H
#define MOA_CONVERSION_MOATODNF_OBSERVER_H

#include "dialects/DNF/IR/DNF.h"

namespace moa {

/// Is notified of every step of `convert-moa-to-dnf`. Calls may read the kernel, but not change it.
class PsiObserver {
public:
  virtual ~PsiObserver() = default;
  /// No law has been applied: the outputs are ψ of the returned arrays.
  virtual void began(dnf::KernelOp kernel) = 0;
  /// One law has been applied, at one place.
  virtual void applied(llvm::StringRef law, dnf::KernelOp kernel) = 0;
  /// After the laws: `what` was done to the whole kernel.
  virtual void tidied(llvm::StringRef what, dnf::KernelOp kernel) = 0;
  /// The normal form is reached: lets have their names and order, and unused ones are erased.
  virtual void ended(dnf::KernelOp kernel) = 0;
};

} // namespace moa

#endif // MOA_CONVERSION_MOATODNF_OBSERVER_H
