//===- Passes.h - passes on the onf dialect ---------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_ONF_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa::onf {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/ONF/Transforms/ONFPasses.h.inc"
} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_TRANSFORMS_PASSES_H
