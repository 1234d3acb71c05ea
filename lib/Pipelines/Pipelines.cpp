//===- Pipelines.cpp - the arrows between the levels ----------------------===//

#include "lib/Pipelines/Pipelines.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/MoA/Transforms/Passes.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Analysis/Passes.h"
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Schedule/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace moa {

void buildMoAToDNF(mlir::OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createMoAVerify());
  pm.addPass(createConvertMoAToDNFPass(options.disabledLaws, /*seed=*/0, options.psiObserver));
  pm.addPass(dnf::createDNFVerify());
}

void buildDNFToONF(mlir::OpPassManager &pm, const PipelineOptions &options) {
  if (options.spends)
    pm.addPass(createBoundErrorsPass());
  pm.addPass(createConvertDNFToONFPass(options.disabledRules, options.foldObserver));
  pm.addPass(createOrderRowsPass());
  pm.addPass(onf::createONFVerify());
}

/// Largest part of the time of the unmodified nest, or of a plan with smaller errors, that a plan
/// may take. Rounding and the sample cost a part of the saving, and the model has an error too.
static constexpr double kMostOfTime = 0.9;

/// Returns the average number of fold indices that a row sees if all extents have one size. Other
/// values that its pieces depend on, such as a window's length, count as 1. Returns nothing if the
/// number is unknown.
static std::optional<double> countSeen(onf::FoldOp fold, int64_t size) {
  constexpr int64_t rows = 64;
  double seen = 0;
  llvm::SmallVector<int64_t> bounds;
  for (mlir::Value bound : fold.getBounds()) {
    auto extent = bound.getDefiningOp<onf::ExtentOp>();
    auto known = [&](llvm::StringRef) { return std::optional(size); };
    bounds.push_back(extent ? extent.getExpr().evaluate(known).value_or(1) : 1);
  }
  for (int64_t k = 0; k < rows; ++k) {
    auto visited = countVisited(fold, k * (size / rows), bounds, size);
    if (!visited)
      return std::nullopt;
    seen += double(*visited);
  }
  return seen / rows;
}

/// Returns whether rows see few of a fold's indices, or none, however many there are. For example,
/// under a sliding window.
static bool seesFew(onf::FoldOp fold) {
  if (fold.getBody().getOps<onf::GuardOp>().empty())
    return false;
  if (llvm::Error error = deriveFoldIntervals(fold)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  if (!fold.getPiecesAttr())
    return false;
  auto few = countSeen(fold, 1 << 14), many = countSeen(fold, 1 << 16); // four times as many indices
  return few && many && (*many == 0 || *many < 2 * *few);
}

NestReason tellsSlowOn(std::string gpu, bool wherePays) {
  return [gpu, wherePays](onf::KernelOp kernel, onf::ForOp nest) -> std::string {
    auto machine = loadGpuMachine(gpu);
    if (!machine) // lifting reports the name
      return llvm::consumeError(machine.takeError()), std::string();
    std::vector<GpuNest> described;
    for (auto each : kernel.getBody().getOps<onf::ForOp>())
      described.push_back(llvm::cantFail(readNest(each, findForms(each))));
    auto nests = llvm::zip_equal(kernel.getBody().getOps<onf::ForOp>(), described);
    auto cost = [&](const GpuNest &of) { return rankTileShapes(of, *machine).front().second.perPair; };
    std::string why;
    double own = 0;
    for (auto [other, about] : nests)
      if (other == nest && (why = whyNoTiles(about, *machine)).empty())
        own = cost(about);
    if (!why.empty() || !wherePays)
      return why;
    // Plans are ordered by their bits: later ones have smaller errors, and 0 is the unmodified
    // nest.
    for (auto [other, about] : nests) {
      int64_t number = other.getChoice().value_or(0);
      bool isBetter = other.getChoices() == nest.getChoices() && (number == 0 || number > int64_t(*nest.getChoice()));
      if (!isBetter || !whyNoTiles(about, *machine).empty() || own <= kMostOfTime * cost(about))
        continue;
      return "it takes " + llvm::formatv("{0:f2}", own / cost(about)).str() + " of the time of " +
             (number == 0 ? "the unmodified nest" : "a plan with smaller errors") + ", by the model of '" +
             machine->name + "', but must save a tenth to pay for rounding";
    }
    return tellsFewSeen()(kernel, nest);
  };
}

NestReason tellsFewSeen() {
  return [](onf::KernelOp, onf::ForOp nest) -> std::string {
    for (auto fold : llvm::make_early_inc_range(nest.getBody().getOps<onf::FoldOp>()))
      if (seesFew(fold))
        return "rows see only few indices of '" + fold.getName().str() +
               "', however many there are, but all of them would be rounded";
    return std::string();
  };
}

/// Returns the disabled laws that belong to a pass.
static std::vector<std::string> onlyOf(llvm::ArrayRef<std::string> disabled, llvm::ArrayRef<const char *> laws) {
  std::vector<std::string> own;
  llvm::copy_if(disabled, std::back_inserter(own),
                [&](const std::string &law) { return llvm::is_contained(laws, law); });
  return own;
}

void buildAdapted(mlir::OpPassManager &pm, const PipelineOptions &options, NestReason tellsSlow) {
  const PrecisionOptions &precision = options.precision;
  if (options.lowRankFrom > 0) {
    LowRankPassOptions condense{precision.decisions,       precision.check, precision.table, options.lowRankFrom,
                                /*shared=*/options.spends, /*warns=*/true,  /*disable=*/{}};
    llvm::append_range(condense.disable, onlyOf(precision.disabledLaws, accuracy::kLowRankLaws));
    pm.addPass(createLowRankPass(condense));
  }
  if (options.spends) {
    AdaptPrecisionPassOptions adapt;
    adapt.decisions = precision.decisions;
    adapt.check = precision.check;
    adapt.sums = precision.sums;
    adapt.halves = precision.halves;
    adapt.bf16 = precision.bf16;
    adapt.table = precision.table;
    adapt.fewest = precision.fewest;
    adapt.pilot = precision.pilot;
    adapt.warns = precision.warns;
    llvm::append_range(adapt.disable, onlyOf(precision.disabledLaws, accuracy::kPrecisionLaws));
    if (auto machine = loadGpuMachine(options.gpu)) {
      adapt.workPerByte8 = machine->workPerByte8;
      adapt.workPerByte16 = machine->workPerByte16;
      adapt.workPerByteSplit = machine->workPerByteSplit;
    } else {
      llvm::consumeError(machine.takeError()); // lifting reports it
    }
    pm.addPass(createAdaptPrecisionPass(adapt, tellsSlow));
  }
  if (options.lowRankFrom <= 0 && !options.spends)
    return;
  pm.addPass(onf::createONFVerify());
}

void buildONFToLifted(mlir::OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createBlockColumnsPass());
  if (options.derivesIntervals)
    pm.addPass(createDeriveIntervalsPass());
  pm.addPass(createLiftPass());
  pm.addPass(createVerifyLiftingPass());
  pm.addPass(onf::createONFVerify());
}

void buildLiftedToVector(mlir::OpPassManager &pm, const PipelineOptions &options) {
  ONFToVectorOptions vector;
  vector.byteDots = options.byteDots;
  vector.bf16Dots = options.bf16Dots;
  pm.addPass(createConvertONFToVectorPass(vector));
}

void buildVectorToLLVM(mlir::OpPassManager &pm, const PipelineOptions &options) { buildVectorToLLVMPipeline(pm); }

void buildONFToLiftedGpu(mlir::OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSeparateColumnsPass());
  pm.addPass(createSeparateFoldsPass(/*forTiles=*/true, options.spends));
  buildAdapted(pm, options, tellsSlowOn(options.gpu, options.precision.fewest == 0));
  if (options.splitsFolds) {
    pm.addPass(onf::createONFPackRows());
    pm.addPass(onf::createONFSplitFolds());
  }
  pm.addPass(createFuseNestsPass());
  pm.addPass(onf::createONFFuseFolds());
  pm.addPass(createReadThroughCopiesPass());
  pm.addPass(createOrderProductsPass());
  if (options.derivesIntervals)
    pm.addPass(createDeriveIntervalsPass());
  pm.addPass(createFindFormsPass());
  pm.addPass(createLiftGpuPass(options.gpu));
  pm.addPass(createVerifyLiftingPass());
  pm.addPass(onf::createONFVerify());
}

/// Blocks of 128 threads with up to 64 registers that fit on a multiprocessor.
static constexpr int64_t kBlocksPerMultiprocessor = 8;
/// Fewest launches that are worth combining: two that mostly have work take longer as one.
static constexpr int64_t kFewestStages = 3;

void buildLiftedToDevice(mlir::OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createConvertONFToDevicePass());
  // The loop of the first tile must stay a loop, like those of the other tiles.
  pm.addPass(mlir::createCanonicalizerPass({}, {"(anonymous namespace)::SimplifyTrivialLoops"}));
  pm.addPass(mlir::createCSEPass());
  pm.addPass(mlir::createLoopInvariantCodeMotionPass());
  pm.addPass(mlir::createCSEPass());
  pm.addPass(device::createDeviceJoinBlocks());
  pm.addPass(device::createDeviceCombineKernels());
  pm.addPass(device::createDeviceOverlapKernels());
  pm.addPass(device::createDeviceSkipUnchosen());
  if (auto machine = loadGpuMachine(options.gpu))
    pm.addPass(device::createDeviceChainKernels({kBlocksPerMultiprocessor * machine->multiprocessors, kFewestStages}));
  else
    llvm::consumeError(machine.takeError()); // lifting reports it
  pm.addPass(device::createDeviceAlignRuns());
  pm.addPass(device::createDeviceVerify());
}

void buildONFToDevice(mlir::OpPassManager &pm, const PipelineOptions &options) {
  buildONFToLiftedGpu(pm, options);
  buildLiftedToDevice(pm, options);
}

void registerPipelines() {
  using Build = void (*)(mlir::OpPassManager &, const PipelineOptions &);
  static const Build arrows[] = {buildMoAToDNF, buildDNFToONF, buildONFToLifted, buildLiftedToVector,
                                 buildVectorToLLVM};
  static const char *const levels[] = {"dnf", "onf", "lifted", "vector", "llvm"};
  for (size_t last = 0; last < std::size(levels); ++last) {
    std::string flag = std::string("moa-to-") + levels[last] + "-pipeline";
    std::string what =
        std::string("Every pass from moa to ") + levels[last] + ", with the contracts between the levels";
    auto build = [last](mlir::OpPassManager &pm, llvm::StringRef,
                        llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)>) {
      for (size_t k = 0; k <= last; ++k)
        arrows[k](pm, PipelineOptions());
      return mlir::success();
    };
    mlir::registerPassPipeline(flag, what, build, [](llvm::function_ref<void(const mlir::detail::PassOptions &)>) {});
  }
  mlir::registerPassPipeline(
      "moa-to-device-pipeline", "Every pass from moa to device, with the contracts between the levels",
      [](mlir::OpPassManager &pm, llvm::StringRef, llvm::function_ref<mlir::LogicalResult(const llvm::Twine &)>) {
        for (Build arrow : {buildMoAToDNF, buildDNFToONF, buildONFToDevice})
          arrow(pm, PipelineOptions());
        return mlir::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)>) {});
}

} // namespace moa
