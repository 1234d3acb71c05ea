//===- Passes.h - passes between the levels ---------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_PASSES_H
#define MOA_CONVERSION_PASSES_H

#include "lib/Conversion/ONFToVector/Bf16Dots.h"
#include "mlir/Pass/Pass.h"

namespace moa {

#define GEN_PASS_DECL
#include "lib/Conversion/ConversionPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/ConversionPasses.h.inc"

} // namespace moa

#endif // MOA_CONVERSION_PASSES_H
