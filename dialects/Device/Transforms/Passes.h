//===- Passes.h - passes on the device dialect ------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa::device {
/// On kernels that store an output which others store too: `by`, the name of the array that chooses
/// among them, and `is`, its value for which this kernel runs. If the array has this value only
/// where another array has one, `where` is that other choice.
inline constexpr llvm::StringLiteral kChosenAttr = "moa.chosen";
/// On a kernel that is derived from a nest with a choice but runs whether or not it is chosen.
inline constexpr llvm::StringLiteral kAlwaysAttr = "moa.always";
/// On a kernel that may overlap with the kernel before it, and with those which that one overlaps
/// with (unit).
inline constexpr llvm::StringLiteral kOverlapAttr = "moa.beside";
/// On a kernel that has no work if a flag is 0: the name of the flag's array. The flag is final
/// before a kernel ahead of this one starts, so blocks end without waiting for that kernel.
inline constexpr llvm::StringLiteral kSkipFlagAttr = "moa.idle";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/Device/Transforms/DevicePasses.h.inc"
} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
