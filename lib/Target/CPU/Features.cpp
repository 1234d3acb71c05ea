//===- Features.cpp - required CPU extensions -----------------------------===//

#include "lib/Target/CPU/Features.h"
#include "lib/Target/CPU/Runtime/Runtime.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace moa::cpu {

/// Extensions beyond x86-64, by their LLVM names. Except for tiles, omits extensions that only
/// intrinsics use.
static const Feature kFeatures[] = {
    {"sse3", 1, 0, kECX, 0, kNoState},
    {"ssse3", 1, 0, kECX, 9, kNoState},
    {"sse4.1", 1, 0, kECX, 19, kNoState},
    {"sse4.2", 1, 0, kECX, 20, kNoState},
    {"movbe", 1, 0, kECX, 22, kNoState},
    {"popcnt", 1, 0, kECX, 23, kNoState},
    {"lzcnt", 0x80000001, 0, kECX, 5, kNoState},
    {"bmi", 7, 0, kEBX, 3, kNoState},
    {"bmi2", 7, 0, kEBX, 8, kNoState},
    {"gfni", 7, 0, kECX, 8, kNoState},
    {"avx", 1, 0, kECX, 28, kAVXState},
    {"avx2", 7, 0, kEBX, 5, kAVXState},
    {"fma", 1, 0, kECX, 12, kAVXState},
    {"f16c", 1, 0, kECX, 29, kAVXState},
    {"avxvnni", 7, 1, kEAX, 4, kAVXState},
    {"avx512f", 7, 0, kEBX, 16, kAVX512State},
    {"avx512dq", 7, 0, kEBX, 17, kAVX512State},
    {"avx512ifma", 7, 0, kEBX, 21, kAVX512State},
    {"avx512cd", 7, 0, kEBX, 28, kAVX512State},
    {"avx512bw", 7, 0, kEBX, 30, kAVX512State},
    {"avx512vl", 7, 0, kEBX, 31, kAVX512State},
    {"avx512vbmi", 7, 0, kECX, 1, kAVX512State},
    {"avx512vbmi2", 7, 0, kECX, 6, kAVX512State},
    {"avx512vnni", 7, 0, kECX, 11, kAVX512State},
    {"avx512bitalg", 7, 0, kECX, 12, kAVX512State},
    {"avx512vpopcntdq", 7, 0, kECX, 14, kAVX512State},
    {"avx512fp16", 7, 0, kEDX, 23, kAVX512State},
    {"avx512bf16", 7, 1, kEAX, 5, kAVX512State},
    {"amx-tile", 7, 0, kEDX, 24, kTileState},
    {"amx-bf16", 7, 0, kEDX, 22, kTileState},
};

Processor getProcessor(const TargetMachine &machine, bool usesTiles) {
  Processor processor{machine.getTargetCPU().str(), {}};
  if (machine.getTargetTriple().getArch() != Triple::x86_64)
    return processor;
  for (const Feature &feature : kFeatures)
    if ((usesTiles || feature.state != kTileState) &&
        machine.getMCSubtargetInfo()->checkFeatures(std::string("+") + feature.name))
      processor.features.push_back(feature);
  return processor;
}

bool hasByteDots(const TargetMachine &machine) {
  const MCSubtargetInfo &subtarget = *machine.getMCSubtargetInfo();
  if (machine.getTargetTriple().getArch() != Triple::x86_64)
    return false;
  if (subtarget.checkFeatures("+avx512vnni") && subtarget.checkFeatures("+avx512vl"))
    return true;
  return subtarget.checkFeatures("+avxvnni") && !subtarget.checkFeatures("+avx512f");
}

Bf16Dots getBf16Dots(const TargetMachine &machine) {
  const MCSubtargetInfo &subtarget = *machine.getMCSubtargetInfo();
  auto has = [&](const char *feature) { return subtarget.checkFeatures(feature); };
  if (machine.getTargetTriple().getArch() != Triple::x86_64 || !has("+avx512vl") || !has("+avx512bf16"))
    return Bf16Dots::none;
  if (has("+amx-tile") && has("+amx-bf16"))
    return Bf16Dots::tiles;
  // On Zen a bf16 dot product is as fast as an f32 FMA. Intel's take 3 to 4 times as long, so f32
  // is faster there (benchmarks/cpu/NOTES.md).
  return machine.getTargetCPU().starts_with("znver") ? Bf16Dots::pairs : Bf16Dots::none;
}

} // namespace moa::cpu
