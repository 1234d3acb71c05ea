//===- FoldTrace.h - the derivation of folds as text ------------*- C++ -*-===//
#ifndef MOA_EXPLAIN_FOLDTRACE_H
#define MOA_EXPLAIN_FOLDTRACE_H

#include "lib/Conversion/DNFToONF/Observer.h"
#include "llvm/ADT/StringMap.h"

namespace moa {

/// Records the rewrites of reductions by the rules of fusion in `convert-dnf-to-onf`.
class FoldTrace final : public FoldObserver {
public:
  void rewrote(llvm::StringRef rule, Expr reduce, int64_t j, Expr body, Expr present, Expr after) final;
  void refused(const AccPlan &acc) final;
  void planned(dnf::KernelOp kernel, ExprContext &exprs, FoldRules &rules, llvm::ArrayRef<NestPlan> nests) final;

  /// Returns the derivation of one kernel; empty if no kernel of that name was derived.
  std::string print(llvm::StringRef kernel) const;

private:
  struct Rewrite {
    std::string rule;
    Expr reduce;
    int64_t j;
    Expr body, present, after;
  };
  struct Refusal {
    Expr reduce, blocked;
    std::string reason;
  };

  std::vector<Rewrite> rewrites;
  std::vector<Refusal> refusals;
  llvm::StringMap<std::string> texts;
};

} // namespace moa

#endif // MOA_EXPLAIN_FOLDTRACE_H
