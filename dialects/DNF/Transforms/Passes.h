//===- Passes.h - passes on the dnf dialect ---------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DNF_TRANSFORMS_PASSES_H
#define MOA_DIALECTS_DNF_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa::dnf {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dialects/DNF/Transforms/DNFPasses.h.inc"
} // namespace moa::dnf

#endif // MOA_DIALECTS_DNF_TRANSFORMS_PASSES_H
