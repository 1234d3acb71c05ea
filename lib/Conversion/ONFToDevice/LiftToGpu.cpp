//===- LiftToGpu.cpp - binds nests to blocks, warpgroups and threads ------===//
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/IR/BuiltinOps.h"

namespace moa {
#define GEN_PASS_DECL_LIFTGPU
#define GEN_PASS_DEF_LIFTGPU
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

/// Returns why the default schedule has one thread per row although the nest has a tile plan.
static std::string whyNoShape(const GpuNest &nest, const GpuMachine &machine) {
  TileShape least;
  least.warpgroups = 1;
  least.keys = machine.tensorDepth;
  assignRegisters(least, machine);
  std::string reason = "no tile fits into shared memory and registers";
  if (llvm::Error error = checkTileShape(*nest.fold, least, machine, "the smallest"))
    return reason + "; " + llvm::toString(std::move(error));
  return reason;
}

std::string moa::whyNoTiles(const GpuNest &nest, const GpuMachine &machine) {
  if (!nest.fold)
    return nest.why;
  return rankTileShapes(nest, machine).empty() ? whyNoShape(nest, machine) : std::string();
}

llvm::Expected<Schedule> moa::liftToGpu(onf::KernelOp kernel, const GpuMachine &machine, const Schedule *given) {
  std::vector<GpuNest> nests = gpuNests(kernel);
  if (given)
    if (llvm::Error error = checkGpuSchedule(kernel.getSymName(), nests, *given, machine))
      return error;
  Schedule schedule = given ? *given : chooseGpuSchedule(kernel.getSymName(), nests, machine);
  auto ops = kernel.getBody().getOps<onf::ForOp>();
  for (auto [op, nest, lifted] : llvm::zip_equal(ops, nests, schedule.nests)) {
    // Choices of a given schedule need no explanation.
    bool hasLanes = runsWithLanes(lifted);
    if (tileShapeOf(lifted) || (hasLanes ? nest.lanes->serial.empty() : runsWithWarps(lifted)) ||
        (given && (nest.fold || nest.isProduct || nest.lanes || nest.columns)))
      continue;
    std::string why = whyNoTiles(nest, machine);
    // Users of the default schedule expect tensor cores here.
    std::string how = hasLanes ? std::to_string(nest.lanes->lanes) + " lanes" : "one thread";
    if (!given && contractsNarrow(op))
      op.emitWarning("runs with ") << how << " per row, without tensor cores, which is slow: " << why;
    else
      op.emitRemark("runs with ") << how << " per row, without tensor cores: " << why;
  }
  if (failed(lift(kernel, schedule)))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "schedule: it does not fit the kernel");
  return schedule;
}

namespace {
struct LiftGpu final : moa::impl::LiftGpuBase<LiftGpu> {
  using Base::Base;

  void refuse(Operation *op, llvm::Error error) {
    mlir::emitError(op->getLoc(), llvm::toString(std::move(error)));
    signalPassFailure();
  }

  void runOnOperation() final {
    auto target = loadGpuMachine(machine);
    if (!target)
      return refuse(getOperation(), target.takeError());
    std::optional<Schedule> given;
    if (!schedule.empty()) {
      auto loaded = loadSchedule(schedule);
      if (!loaded)
        return refuse(getOperation(), loaded.takeError());
      given = std::move(*loaded);
    }
    SmallVector<onf::KernelOp> kernels(getOperation().getOps<onf::KernelOp>());
    bool used = kernels.empty();
    for (onf::KernelOp kernel : kernels) {
      // A module may have several kernels. The file applies to the one that it names.
      bool named = given && (kernels.size() == 1 || given->kernel == kernel.getSymName());
      used |= named;
      auto result = liftToGpu(kernel, *target, named ? &*given : nullptr);
      if (!result)
        return refuse(kernel, result.takeError());
      if (print)
        llvm::outs() << printSchedule(*result);
      if (rank)
        for (const auto &[k, nest] : llvm::enumerate(gpuNests(kernel)))
          llvm::outs() << kernel.getSymName() << ", nest " << k << "\n" << printRanking(nest, *target);
    }
    if (given && !used)
      refuse(getOperation(), llvm::createStringError(llvm::inconvertibleErrorCode(),
                                                     "schedule: no kernel is named '" + given->kernel + "'"));
  }
};
} // namespace

std::unique_ptr<Pass> moa::createLiftGpuPass(std::string machine) {
  LiftGpuOptions options;
  options.machine = std::move(machine);
  return createLiftGpu(options);
}
