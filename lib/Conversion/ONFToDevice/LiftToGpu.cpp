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
  assignRegisters(least, *nest.fold, machine);
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

/// Replaces the list of a nest's forms by the name of the one that its schedule has. Lists the
/// interleaved arrays of that form on the kernel.
static void setForm(onf::ForOp nest, StringRef name) {
  Builder b(nest.getContext());
  auto forms = cast<ArrayAttr>(nest->removeAttr(onf::kFormsAttr));
  nest->setAttr(onf::kFormAttr, b.getStringAttr(name));
  for (auto form : forms.getAsRange<onf::FormAttr>()) {
    DictionaryAttr data = form.getName() == name ? form.getData() : DictionaryAttr();
    auto added = data ? data.getAs<DenseI64ArrayAttr>(kInterleavedKey) : DenseI64ArrayAttr();
    if (!added)
      continue;
    Operation *kernel = nest->getParentOp();
    auto known = kernel->getAttrOfType<DenseI64ArrayAttr>(kInterleavedAttr);
    SmallVector<int64_t> arrays(added.asArrayRef());
    llvm::append_range(arrays, known ? known.asArrayRef() : ArrayRef<int64_t>());
    kernel->setAttr(kInterleavedAttr, b.getDenseI64ArrayAttr(arrays));
  }
}

/// Returns whether the folds of a nest read temporaries only: they merge what other nests computed,
/// and hold nothing for tensor cores.
static bool mergesParts(onf::ForOp nest) {
  auto kernel = nest->getParentOfType<onf::KernelOp>();
  bool reads = false;
  WalkResult others = nest.walk([&](onf::LoadOp load) {
    if (!load->getParentOfType<onf::FoldOp>())
      return WalkResult::advance();
    reads = true;
    bool isStored = kernel.isTemporary(cast<BlockArgument>(load.getArray()).getArgNumber());
    return isStored ? WalkResult::advance() : WalkResult::interrupt();
  });
  return reads && !nest.getExtents().empty() && !others.wasInterrupted() && !contractsNarrow(nest);
}

llvm::Expected<Schedule> moa::liftToGpu(onf::KernelOp kernel, const GpuMachine &machine, const Schedule *given) {
  auto nests = readNests(kernel);
  if (!nests)
    return nests.takeError();
  if (given)
    if (llvm::Error error = checkGpuSchedule(kernel.getSymName(), *nests, *given, machine))
      return error;
  Schedule schedule = given ? *given : chooseGpuSchedule(kernel.getSymName(), *nests, machine);
  if (failed(lift(kernel, schedule)))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "schedule: it does not fit the kernel");
  kernel->removeAttr(kInterleavedAttr);
  for (auto [op, nest, lifted] : llvm::zip_equal(kernel.getBody().getOps<onf::ForOp>(), *nests, schedule.nests)) {
    const FixedForm *fixed = findFixed(nest, lifted);
    bool hasTiles = tileShapeOf(lifted).has_value();
    setForm(op, hasTiles ? kTilesForm.str() : fixed ? fixed->name : kRowsForm.str());
    std::string how = fixed ? fixed->slow : "one thread";
    // Choices of a given schedule need no explanation.
    if (hasTiles || how.empty() || (given && (nest.fold || nest.getFixed())))
      continue;
    if (mergesParts(op))
      continue;
    std::string why = whyNoTiles(nest, machine);
    // Users of the default schedule expect tensor cores here.
    if (!given && contractsNarrow(op))
      op.emitWarning("runs with ") << how << " per row, without tensor cores, which is slow: " << why;
    else
      op.emitRemark("runs with ") << how << " per row, without tensor cores: " << why;
  }
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
      auto nests = readNests(kernel);
      if (!nests)
        return refuse(kernel, nests.takeError());
      auto result = liftToGpu(kernel, *target, named ? &*given : nullptr);
      if (!result)
        return refuse(kernel, result.takeError());
      if (print)
        llvm::outs() << printSchedule(*result);
      if (rank)
        for (const auto &[k, nest] : llvm::enumerate(*nests))
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
