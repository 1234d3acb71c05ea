//===- Observer.h - observer of the derivation of folds ---------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_OBSERVER_H
#define MOA_CONVERSION_DNFTOONF_OBSERVER_H

#include "lib/Conversion/DNFToONF/Derivation.h"

namespace moa {

/// Is notified of every step of `convert-dnf-to-onf`. Expressions belong to the derivation and live
/// until planned() returns; reductions have their names only then.
class FoldObserver {
public:
  virtual ~FoldObserver() = default;
  /// R0, R1, or one of R4 to R7, rewrote `reduce` to `after`. The term at index `j` is `body`, over
  /// those j where `present` holds, if it is given.
  virtual void rewrote(llvm::StringRef rule, Expr reduce, int64_t j, Expr body, Expr present, Expr after) = 0;
  /// R3 found no rescale for `acc`, which takes another pass.
  virtual void refused(const AccPlan &acc) = 0;
  /// The folds, their states and their rescales are final.
  virtual void planned(dnf::KernelOp kernel, ExprContext &exprs, FoldRules &rules, llvm::ArrayRef<NestPlan> nests) = 0;
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_OBSERVER_H
