//===- Hints.h - what lowerings may know and need not -----------*- C++ -*-===//
//
// Discardable attributes of onf. A program means the same without them.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_HINTS_H
#define MOA_DIALECTS_ONF_IR_HINTS_H

#include "llvm/ADT/StringRef.h"

namespace moa::onf {

/// On a nest with a choice and on the kernels of a GPU that it becomes, expressions over symbols
/// x₁, y₁, x₂, y₂, …: but where each xₖ > yₖ, no index is chosen, so that a host that knows the
/// symbols need not start it.
inline constexpr llvm::StringLiteral kRunsAttr = "moa.runs";

/// On a nest, a unit: it does little beside others of the kernel, so that code for it should be
/// short.
inline constexpr llvm::StringLiteral kShortAttr = "moa.short";

/// On a sum (onf.acc) with factors of bf16, a bool: nothing computes it again, so that it need not
/// have the bits of multiply-adds in order. Without it a lowering looks for what does; with it
/// copies of a fold, for some of its rows too, are added up as it is.
inline constexpr llvm::StringLiteral kAloneAttr = "moa.alone";

/// On a kernel that tells whether its results are near enough: of a result with a tolerance
/// { result = "O", bound = "O_shown", within = #moa.within<…> }, the temporary in f32 with what is
/// compared with the tolerance, a bound on the errors or, of one that is sampled, an estimate of
/// them, and `why` where none is known. A program of a GPU and the module of a CPU's nests have
/// what the kernel has.
inline constexpr llvm::StringLiteral kShownAttr = "moa.shown";

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_HINTS_H
