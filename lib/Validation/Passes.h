//===- Passes.h - passes of the validation ----------------------*- C++ -*-===//
#ifndef MOA_VALIDATION_PASSES_H
#define MOA_VALIDATION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace moa {

#define GEN_PASS_DECL
#include "lib/Validation/ValidationPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Validation/ValidationPasses.h.inc"

} // namespace moa

#endif // MOA_VALIDATION_PASSES_H
