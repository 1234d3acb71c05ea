//===- Features.h - what code needs of a processor --------------*- C++ -*-===//
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

/// One bit of what the instruction CPUID reports, and the register state that
/// the system must save for it (Runtime.h).
struct Feature {
  const char *name;
  unsigned leaf, subleaf, reg, bit, state;
};

/// A processor by its LLVM name, and the extensions that code for it may use.
struct Processor {
  std::string name;
  std::vector<Feature> features;
};

/// The intrinsic that every code with tiles calls.
constexpr llvm::StringLiteral kTilesIntrinsic = "llvm.x86.ldtilecfg";

/// What the machine generates code for. Without features on other than x86, and without those of
/// tiles where no code `usesTiles`: a process has to ask for their registers.
Processor getProcessor(const llvm::TargetMachine &machine, bool usesTiles);

/// Whether it has dot products of four bytes (`vpdpbusd`) for all vectors it has.
bool hasByteDots(const llvm::TargetMachine &machine);
/// What it has for sums of products of bf16.
Bf16Dots getBf16Dots(const llvm::TargetMachine &machine);

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_FEATURES_H
