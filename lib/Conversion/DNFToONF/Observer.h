//===- Observer.h - who hears of the derivation of folds --------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_OBSERVER_H
#define MOA_CONVERSION_DNFTOONF_OBSERVER_H

#include "lib/Conversion/DNFToONF/Derivation.h"

namespace moa {

/// Hears of what `convert-dnf-to-onf` does to a kernel while it does it. Expressions
/// belong to the derivation and live until planned() returns; only then do reductions
/// have their names.
class FoldObserver {
public:
  virtual ~FoldObserver() = default;
  /// R0, R1, R5 or R6 made `after` of `reduce`, whose term at index `j` is `body`,
  /// over those j where `present` holds, if it is given.
  virtual void rewrote(llvm::StringRef rule, Expr reduce, int64_t j, Expr body, Expr present,
                       Expr after) = 0;
  /// R3 found no repair for `acc`, which takes another pass.
  virtual void refused(const AccPlan &acc) = 0;
  /// Folds, their states and repairs are fixed.
  virtual void planned(dnf::KernelOp kernel, ExprContext &exprs, FoldRules &rules,
                       llvm::ArrayRef<NestPlan> nests) = 0;
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_OBSERVER_H
