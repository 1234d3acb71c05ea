//===- Passes.h - passes on the moa dialect ---------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_MOA_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_MOA_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/MoA/Transforms/MoAPasses.h.inc"
} // namespace moa

#endif // MOA_DIALECTS_MOA_TRANSFORMS_PASSES_H
