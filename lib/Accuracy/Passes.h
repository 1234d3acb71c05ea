//===- Passes.h - passes that spend accuracy --------------------*- C++ -*-===//
#ifndef MOA_ACCURACY_PASSES_H
#define MOA_ACCURACY_PASSES_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"

namespace moa {

/// What there is to say of a nest of a kernel.
using NestTeller = std::function<std::string(onf::KernelOp, onf::ForOp)>;

#define GEN_PASS_DECL
#include "lib/Accuracy/AccuracyPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Accuracy/AccuracyPasses.h.inc"

/// The same, and plans are left out whose nests would run slowly: where `tellsSlow` says why, and
/// not nothing.
std::unique_ptr<mlir::Pass> createAdaptPrecisionPass(AdaptPrecisionPassOptions options, NestTeller tellsSlow);

/// On a kernel that accuracy was spent on: per result a list of texts, one for each choice.
inline constexpr llvm::StringLiteral kSpentAttr = "moa.spent";

/// Beside it, the laws that the plans of each nest apply, in lines: "O, plan 1", and behind it "
/// B1: …".
inline constexpr llvm::StringLiteral kLawsAttr = "moa.laws";

/// Beside it, how many temporaries the kernel had before: nests that store others are none of the
/// specification's.
inline constexpr llvm::StringLiteral kStoredAttr = "moa.stored";

/// Beside it, the result that each result which the pass has added tells of.
inline constexpr llvm::StringLiteral kDecisionsAttr = "moa.decisions";

namespace accuracy {
/// Which numbers of plans there are where there are so many beside 0, as messages say it.
std::string tellPlans(unsigned count);

/// Laws of docs/Accuracy/Bounds.md that onf-adapt-precision applies, and of
/// docs/Accuracy/LowRank.md that onf-low-rank does. Without one of them plans do without it, or are
/// left out.
inline constexpr const char *kPrecisionLaws[] = {"B1", "B2", "B3", "B4", "B5", "B6", "B7"};
inline constexpr const char *kLowRankLaws[] = {"F2", "F9"};
} // namespace accuracy

} // namespace moa

#endif // MOA_ACCURACY_PASSES_H
