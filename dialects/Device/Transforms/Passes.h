//===- Passes.h - passes on the device dialect ------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa::device {
/// On kernels that store an output which others store too: the name of the array that chooses
/// among them, `by`, and the value that it has where this one runs, `is`. If it has this value only
/// where another array has one, that stands in `where`.
inline constexpr llvm::StringLiteral kChosenAttr = "moa.chosen";
/// Of a kernel that does no work of the nest it is made for, so that it runs whether that is chosen
/// or not.
inline constexpr llvm::StringLiteral kAlwaysAttr = "moa.always";
/// Of a kernel that may run beside the one in front of it, and beside those that this one may run
/// beside: a unit.
inline constexpr llvm::StringLiteral kBesideAttr = "moa.beside";
/// Of a kernel that has nothing to do where a flag is 0: the name of the flag's array, which was
/// raised or not before a kernel in front of this one began, so that blocks end without waiting for
/// that.
inline constexpr llvm::StringLiteral kIdleAttr = "moa.idle";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/Device/Transforms/DevicePasses.h.inc"
} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
