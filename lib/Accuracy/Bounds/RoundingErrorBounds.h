//===- RoundingErrorBounds.h - error bounds for passes ----------*- C++ -*-===//
#ifndef MOA_ACCURACY_ROUNDINGERRORBOUNDS_H
#define MOA_ACCURACY_ROUNDINGERRORBOUNDS_H

#include "mlir/IR/Operation.h"

namespace moa {

/// Attribute of a dnf kernel, and of the onf kernel lowered from it, with a result whose tolerance
/// is component-wise and holds for every input. It is JSON with the bounds of such results:
///
///    { "scores": [Q, K], "sums": [V], "atoms": […],
///      "results": [{ "result": O, "indices": [b, h, n, k], "written": bound, "halves": bound,
///                    "split": bound, "bf16": bound, "bf16x2": bound }] }
///
/// - "written": the kernel with its own formats;
/// - "halves": contractions of two inputs in fp16p, all others in bf16;
/// - "split": the same in fp16x2 and bf16x2;
/// - "bf16", "bf16x2": all contractions in that format.
///
/// "halves" and "split" are present only if no input is read by both classes, `scores` and `sums`.
/// A bound is { "relative": e, "absolute": e, "facts": [{ "value": e, "limit": x }], "assumes":
/// text }; "assumes" lists the assumptions that are not checked, if there are any.
inline constexpr llvm::StringLiteral kBoundsAttr = "moa.bounds";

bool usesF64(mlir::Operation *kernel);

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORBOUNDS_H
