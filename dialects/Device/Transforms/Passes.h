//===- Passes.h - passes on the device dialect ------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa::device {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/Device/Transforms/DevicePasses.h.inc"
} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_H
