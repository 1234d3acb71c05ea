//===- Passes.h - passes that spend accuracy --------------------*- C++ -*-===//
#ifndef MOA_ACCURACY_PASSES_H
#define MOA_ACCURACY_PASSES_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"

namespace moa {

using NestReason = std::function<std::string(onf::KernelOp, onf::ForOp)>;

#define GEN_PASS_DECL
#include "lib/Accuracy/AccuracyPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Accuracy/AccuracyPasses.h.inc"

/// Creates the pass with `reasonSlow`, which returns why a nest would run slowly, or an empty
/// string. Plans whose nests would run slowly are left out.
std::unique_ptr<mlir::Pass> createAdaptPrecisionPass(AdaptPrecisionPassOptions options, NestReason reasonSlow);

/// Attributes of a kernel with plans. Per result a list of texts, one for each plan:
inline constexpr llvm::StringLiteral kSpentAttr = "moa.spent";

/// The laws that the plans of each nest apply, as lines: "O, plan 1", then "  B1: …".
inline constexpr llvm::StringLiteral kLawsAttr = "moa.laws";

/// The number of temporaries before the pass; nests that store others were added.
inline constexpr llvm::StringLiteral kStoredAttr = "moa.stored";

/// For each result that the pass has added, the name of the result that it describes.
inline constexpr llvm::StringLiteral kDecisionsAttr = "moa.decisions";

namespace accuracy {
std::string tellPlans(unsigned count);

/// The laws that `disable` of onf-adapt-precision and of onf-low-rank accepts.
inline constexpr const char *kPrecisionLaws[] = {"B1", "B2", "B3", "B4", "B5", "B6", "B7"};
inline constexpr const char *kLowRankLaws[] = {"F2", "F9"};
} // namespace accuracy

} // namespace moa

#endif // MOA_ACCURACY_PASSES_H
