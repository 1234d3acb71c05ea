//===- Passes.h - passes that spend accuracy --------------------*- C++ -*-===//
#ifndef MOA_PRECISION_PASSES_H
#define MOA_PRECISION_PASSES_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"

namespace moa {

#define GEN_PASS_DECL
#include "lib/Precision/PrecisionPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Precision/PrecisionPasses.h.inc"

/// On a kernel that accuracy was spent on: per result a list of texts, one for each choice.
inline constexpr llvm::StringLiteral kSpentAttr = "moa.spent";

/// Beside it, the result that each result which the pass has added tells of.
inline constexpr llvm::StringLiteral kDecisionsAttr = "moa.decisions";

} // namespace moa

#endif // MOA_PRECISION_PASSES_H
