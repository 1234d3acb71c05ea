//===- LevelsFuzzer.cpp - any text as a module of the levels --------------===//
//
// Text is parsed and verified as a module of moa, dnf, onf, lifted onf or device; what
// passes goes through the pipelines behind its level, on the way to a CPU and to a GPU.
// They may refuse it with a message.
//
//===----------------------------------------------------------------------===//
#include "Context.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/ONF.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Schedule/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace moa;

namespace {
enum Stage { FromMoA, FromDNF, FromONF, FromLifted, FromDevice, Unknown };
} // namespace

static Stage getStage(ModuleOp module) {
  std::optional<Stage> stage;
  for (Operation &op : *module.getBody()) {
    Stage own = Unknown;
    if (isa<KernelOp>(op))
      own = FromMoA;
    else if (isa<dnf::KernelOp>(op))
      own = FromDNF;
    else if (auto kernel = dyn_cast<onf::KernelOp>(op))
      own = llvm::any_of(kernel.getBody().getOps<onf::ForOp>(), [](onf::ForOp loop) { return bool(loop.getLift()); })
                ? FromLifted
                : FromONF;
    else if (isa<device::ProgramOp>(op))
      own = FromDevice;
    if (stage && *stage != own)
      return Unknown;
    stage = own;
  }
  return stage.value_or(Unknown);
}

static bool run(ModuleOp module, void (*build)(OpPassManager &, const PipelineOptions &)) {
  PassManager pm(module.getContext());
  build(pm, PipelineOptions());
  return succeeded(pm.run(module));
}

/// The contract of each stage's level; that of moa stands in its pipeline.
static void (*const checks[])(OpPassManager &, const PipelineOptions &) = {
    [](OpPassManager &, const PipelineOptions &) {},
    [](OpPassManager &pm, const PipelineOptions &) { pm.addPass(dnf::createDNFVerify()); },
    [](OpPassManager &pm, const PipelineOptions &) { pm.addPass(onf::createONFVerify()); },
    [](OpPassManager &pm, const PipelineOptions &) {
      pm.addPass(createVerifyLiftingPass());
      pm.addPass(onf::createONFVerify());
    },
    [](OpPassManager &pm, const PipelineOptions &) { pm.addPass(device::createDeviceVerify()); }};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  MLIRContext &context = fuzz::getContext(registerDialects);
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return 0;
  Stage stage = getStage(*module);
  if (stage == Unknown || !run(*module, checks[stage]))
    return 0;
  if (stage == FromMoA && !run(*module, buildMoAToDNF))
    return 0;
  if (stage <= FromDNF && !run(*module, buildDNFToONF))
    return 0;
  if (stage == FromDevice)
    return 0;
  if (stage <= FromONF) {
    OwningOpRef<ModuleOp> copy = module->clone();
    if (run(*copy, buildONFToLiftedGpu))
      run(*copy, buildLiftedToDevice);
    if (!run(*module, buildONFToLifted))
      return 0;
  }
  run(*module, buildLiftedToVector);
  return 0;
}
