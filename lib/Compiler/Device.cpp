//===- Device.cpp - the levels that lead to a GPU --------------------------===//

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Bounds/RoundingError.h"
#include "lib/Analysis/DataMovement.h"
#include "lib/Compiler/CompilationImpl.h"
#include "lib/Conversion/DeviceToNVVM/DeviceToNVVM.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/PTX/PTX.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace moa {

bool Compilation::Impl::runValidated(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
  OperationFingerPrint before(module);
  if (!runPasses(module, "onf", build))
    return false;
  return OperationFingerPrint(module) == before || entry > Level::DNF ||
         validate(Level::ONF, getModule(Level::DNF), module);
}

/// Moves computations that would keep sums of products off tensor cores into nests of their own.
/// Runs for a GPU and for mixed precision.
bool Compilation::Impl::separateFolds(ModuleOp module, bool isForGpu) {
  return runValidated(module, [&](OpPassManager &pm) {
    if (isForGpu)
      pm.addPass(createSeparateColumnsPass());
    pm.addPass(createSeparateFoldsPass(/*forTiles=*/isForGpu, getPipelineOptions().spends));
    pm.addPass(onf::createONFVerify());
  });
}

/// For a GPU, splits folds if rows are few (R4) and fuses nests.
bool Compilation::Impl::splitFolds(ModuleOp module) {
  bool splits = getPipelineOptions().splitsFolds;
  return runValidated(module, [&](OpPassManager &pm) {
    if (splits) {
      pm.addPass(onf::createONFPackRows());
      pm.addPass(onf::createONFSplitFolds());
    }
    pm.addPass(createFuseNestsPass());
    pm.addPass(onf::createONFFuseFolds());
    pm.addPass(createReadThroughCopiesPass());
    pm.addPass(createOrderProductsPass());
    pm.addPass(onf::createONFVerify());
  });
}

/// Reorders nests that run in blocks of columns on a CPU.
bool Compilation::Impl::blockColumns(ModuleOp module) {
  return runValidated(module, [](OpPassManager &pm) {
    pm.addPass(createBlockColumnsPass());
    pm.addPass(onf::createONFVerify());
  });
}

ModuleOp Compilation::Impl::getDeviceModule() {
  auto found = modules.find(Level::Device);
  if (found != modules.end())
    return *found->second;
  // The lifted level may be a CPU's. Then this module is lifted separately.
  bool isLifted = !options.architecture.empty() || entry == Level::Lifted;
  ModuleOp above = isLifted ? getModule(Level::Lifted) : getAdapted();
  if (!above)
    return {};
  OwningOpRef<ModuleOp> module = above.clone();
  PipelineOptions pipeline = getPipelineOptions();
  std::vector<Schedule> used;
  auto check = [&] { return entry > Level::ONF || !checksAnyTolerance() || addChecks(*module, true); };
  if ((!isLifted &&
       (!separateFolds(*module, true) || !splitFolds(*module) || !check() || !liftForGpu(*module, used))) ||
      !runPasses(*module, "device", [&](OpPassManager &pm) { buildLiftedToDevice(pm, pipeline); }))
    return {};
  for (auto [program, signature] : llvm::zip_equal(module->getOps<device::ProgramOp>(), signatures)) {
    auto whole = take(getSignature(program));
    if (!whole)
      return {};
    signature.shownLater = std::move(whole->shownLater);
  }
  modules[Level::Device] = std::move(module);
  dumpModule(llvm::sys::path::stem(fileName), Level::Device, *modules[Level::Device]);
  return *modules[Level::Device];
}

static std::string describeMovement(const DataMovementReport &movement) {
  bool isExact = llvm::all_of(movement.inputs, [](const ArrayCount &count) { return count.exact; });
  return "Moves in elements: reads " + std::string(isExact ? "" : "at most ") + movement.inputElements().str() +
         ", writes " + movement.outputElements().str() + "; one operator after the other, reads or keeps " +
         movement.classicalElements().str() + ".\n";
}

/// Lists the options that may make results less accurate than specified, as the tools spell them.
static void listLossyOptions(const AccuracyOptions &options, std::vector<std::string> &given) {
  auto number = [](int64_t value) { return "=" + std::to_string(value); };
  if (options.mixedPrecision)
    given.push_back("spend" + (options.mixedPrecisionFrom ? number(options.mixedPrecisionFrom) : ""));
  if (options.pilotFrom >= 0)
    given.push_back("pilot" + (options.pilotFrom ? number(options.pilotFrom) : ""));
  if (options.lowRankFrom)
    given.push_back("low-rank" + number(options.lowRankFrom));
  if (!options.plans.empty())
    given.push_back((options.checksPlans ? "checked plans" : "plans") +
                    (options.plansFile.empty() ? "" : " of " + options.plansFile));
  if (options.decisions)
    given.push_back("decisions");
}

std::optional<std::string> Compilation::Impl::makeNotes(std::optional<std::string> forms) {
  if (!forms || getEntryLevel() != Level::MoA)
    return forms ? std::optional(sourceText + "\n" + *forms) : std::nullopt;
  // Replace the signature, which the specification already has, by the options and the elements
  // moved.
  for (const KernelInfo &info : infos) {
    std::string signature = "kernel " + info.text + "\n";
    size_t at = forms->find(signature);
    if (at != std::string::npos)
      forms->replace(at, signature.size(),
                     describeMovement(analyzeDataMovement(cast<KernelOp>(getKernelOp(info.name, Level::MoA)))));
  }
  // Merge each form's heading with the kernel's name.
  const std::string heading = " normal form\n\n";
  for (size_t at = forms->find(heading); at != std::string::npos; at = forms->find(heading, at))
    forms->replace(at, heading.size(), " normal form of ");
  std::vector<std::string> given = options.settings;
  for (const std::string &tolerance : accuracy.tolerances)
    given.push_back("within " + tolerance);
  listLossyOptions(accuracy, given);
  std::string set = given.empty() ? "" : "Compiled with " + llvm::join(given, ", ") + ".\n";
  return sourceText + "\n" + set + *forms;
}

std::optional<PTXFiles> Compilation::ptx() {
  ModuleOp module = ok() ? impl->getDeviceModule() : ModuleOp();
  if (!module)
    return std::nullopt;
  std::optional<std::string> notes = impl->makeNotes(mathematics());
  if (!notes)
    return std::nullopt;
  OwningOpRef<ModuleOp> code = module.clone();
  // The translation verifies its own result.
  if (!impl->runPasses(*code, "nvvm", [&](OpPassManager &pm) { buildDeviceToLLVMPipeline(pm); }, false))
    return std::nullopt;
  std::vector<gpu::HostTable> programs;
  for (auto [program, signature] : llvm::zip_equal(module.getOps<device::ProgramOp>(), impl->signatures)) {
    std::vector<gpu::HostLaunch> launches;
    for (auto kernel : program.getBody().getOps<device::KernelOp>())
      launches.push_back(gpu::getLaunch(kernel));
    programs.emplace_back(signature, gpu::getWorkspace(program), std::move(launches));
  }
  PTXFiles files;
  bool made = impl->timed("ptx", [&] {
    auto llvm = impl->take(ptx::translate(*code, impl->llvmContext, "kernels"));
    auto text = llvm ? impl->take(ptx::emit(**llvm)) : std::nullopt;
    auto launcher = text ? impl->take(ptx::printLauncher(programs, *notes, *text, impl->getBinding())) : std::nullopt;
    files = {text.value_or(""), launcher.value_or(""), ptx::printManifest(programs)};
    return launcher.has_value();
  });
  return made ? std::optional(std::move(files)) : std::nullopt;
}

std::optional<std::vector<char>> Compilation::cubin() {
  std::optional<PTXFiles> files = ptx();
  if (!files)
    return std::nullopt;
  std::optional<std::vector<char>> bytes;
  impl->timed("ptxas", [&] {
    bytes = impl->take(ptx::assemble(files->text));
    return bytes.has_value();
  });
  return bytes;
}

std::optional<std::string> Compilation::cuda() {
  ModuleOp module = ok() ? impl->getDeviceModule() : ModuleOp();
  if (!module)
    return std::nullopt;
  std::optional<std::string> notes = impl->makeNotes(mathematics());
  if (!notes)
    return std::nullopt;
  std::vector<cuda::ProgramText> programs;
  auto ops = module.getOps<device::ProgramOp>();
  for (auto [program, signature] : llvm::zip_equal(ops, impl->signatures))
    programs.push_back({program, signature, ""});
  programs.front().notes = *notes;
  std::optional<std::string> text;
  impl->timed("cuda", [&] {
    text = impl->take(cuda::printFile(programs, impl->getBinding()));
    return text.has_value();
  });
  return text;
}

} // namespace moa
