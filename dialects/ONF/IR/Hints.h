//===- Hints.h - optional hints for lowerings -------------------*- C++ -*-===//
//
// Discardable attributes of onf. They do not change the meaning of a program.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_HINTS_H
#define MOA_DIALECTS_ONF_IR_HINTS_H

#include "dialects/MoA/IR/MoA.h"

namespace moa::onf {

/// On a nest with a choice, and on the GPU kernels derived from it: expressions over symbols x₁,
/// y₁, x₂, y₂, …. No index is chosen unless each xₖ > yₖ, so a host that knows the symbols need not
/// launch it otherwise.
inline constexpr llvm::StringLiteral kLaunchIfAttr = "moa.runs";

/// Returns the pairs x, y of `where` of a nest, and of kLaunchIfAttr.
inline llvm::SmallVector<std::pair<ExprAttr, ExprAttr>> getLaunchConditions(mlir::Operation *op) {
  llvm::SmallVector<std::pair<ExprAttr, ExprAttr>> pairs;
  for (llvm::StringRef name : {llvm::StringRef("where"), llvm::StringRef(kLaunchIfAttr)})
    if (auto runs = op->getAttrOfType<mlir::ArrayAttr>(name))
      for (size_t k = 0; k + 1 < runs.size(); k += 2)
        pairs.emplace_back(llvm::cast<ExprAttr>(runs[k]), llvm::cast<ExprAttr>(runs[k + 1]));
  return pairs;
}

/// Returns whether exactly one of two nests or kernels runs: one where x > y, the other where
/// y + 1 > x.
inline bool areComplementary(mlir::Operation *op, mlir::Operation *other) {
  auto ofOne = getLaunchConditions(op), ofOther = getLaunchConditions(other);
  if (ofOne.size() != 1 || ofOther.size() != 1)
    return false;
  auto excludes = [](const std::pair<ExprAttr, ExprAttr> &a, const std::pair<ExprAttr, ExprAttr> &b) {
    return a.second.getValue() + SymExpr(1) == b.first.getValue() && a.first == b.second;
  };
  return excludes(ofOne[0], ofOther[0]) || excludes(ofOther[0], ofOne[0]);
}

/// On a nest (unit): it does little of the kernel's work, so its code should be short.
inline constexpr llvm::StringLiteral kShortAttr = "moa.short";

/// On a sum (onf.acc) with factors of bf16, a bool. True: the sum is not recomputed elsewhere, so
/// it need not have the bits of multiply-adds in order. Copies of a fold, also for some of its
/// rows, keep the attribute. Without it a lowering searches for recomputations.
inline constexpr llvm::StringLiteral kAloneAttr = "moa.alone";

/// On a kernel that reports the errors of its results: one entry per result with a tolerance, {
/// result = "O", bound = "O_shown", within = #moa.within<…> }. `bound` names the temporary, in f32,
/// that is compared with the tolerance: a bound on the errors. `why` is the reason if none is known. A GPU program and
/// a CPU module inherit the attribute.
inline constexpr llvm::StringLiteral kShownAttr = "moa.shown";

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_HINTS_H
