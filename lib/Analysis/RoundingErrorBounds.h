//===- RoundingErrorBounds.h - bounds that passes may read ------*- C++ -*-===//
#ifndef MOA_ANALYSIS_ROUNDINGERRORBOUNDS_H
#define MOA_ANALYSIS_ROUNDINGERRORBOUNDS_H

#include "llvm/ADT/StringRef.h"

namespace moa {

/// On a kernel of dnf, and on that of onf which it becomes, with a result whose tolerance is
/// component-wise and holds for every input: JSON, with the bounds of such results as the report
/// has them,
///
///   { "scores": [Q, K], "sums": [V], "atoms": […],
///     "results": [{ "result": O, "indices": [b, h, n, k], "written": bound, "halves": bound,
///     "split": bound,
///                    "bf16": bound, "bf16x2": bound }] }
///
/// for the kernel as it is written; with the operands of contractions of two inputs in fp16p and
/// those of the others in bf16, or in fp16x2 and bf16x2, if `scores` and `sums`, the inputs that
/// they read, have none in common; and with all of them in bf16, or in bf16x2. A bound is {
/// "relative": e, "absolute": e, "facts": [{ "value": e, "limit": x }], "assumes": text } with what
/// is assumed and not checked, if anything is.
inline constexpr llvm::StringLiteral kBoundsAttr = "moa.bounds";

} // namespace moa

#endif // MOA_ANALYSIS_ROUNDINGERRORBOUNDS_H
