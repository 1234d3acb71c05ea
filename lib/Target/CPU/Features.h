//===- Features.h - required CPU extensions ---------------------*- C++ -*-===//
#ifndef MOA_TARGET_CPU_FEATURES_H
#define MOA_TARGET_CPU_FEATURES_H

#include "lib/Conversion/ONFToVector/Bf16Dots.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace moa::cpu {

/// One bit of CPUID, and the register state that the operating system must save for it (Runtime.h).
struct Feature {
  const char *name;
  unsigned leaf, subleaf, reg, bit, state;
};

/// A processor by its LLVM name, and the extensions that code for it may use.
struct Processor {
  std::string name;
  std::vector<Feature> features;
};

/// All code with AMX tiles calls this intrinsic.
constexpr llvm::StringLiteral kTilesIntrinsic = "llvm.x86.ldtilecfg";

/// Returns the processor that the machine generates code for. Lists features on x86 only. Lists
/// features of tiles only if the code `usesTiles`, because a process must request them.
Processor getProcessor(const llvm::TargetMachine &machine, bool usesTiles);

/// Returns whether all vectors of the machine have dot products of four bytes (`vpdpbusd`).
bool hasByteDots(const llvm::TargetMachine &machine);
/// Returns the bf16 dot products that code for the machine should use.
Bf16Dots getBf16Dots(const llvm::TargetMachine &machine);

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_FEATURES_H
