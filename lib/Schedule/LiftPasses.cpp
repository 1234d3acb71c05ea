//===- LiftPasses.cpp - passes onf-lift and onf-verify-lifting ------------===//
#include "lib/Schedule/Lifting.h"
#include "lib/Schedule/Passes.h"
#include "lib/Schedule/Schedule.h"

namespace moa {
#define GEN_PASS_DEF_LIFTPASS
#define GEN_PASS_DEF_VERIFYLIFTINGPASS
#include "lib/Schedule/SchedulePasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// onf-lift
//===----------------------------------------------------------------------===//

namespace {
struct LiftPass final : moa::impl::LiftPassBase<LiftPass> {
  using Base::Base;

  void runOnOperation() override {
    auto target = loadMachine(machine);
    if (!target)
      return refuse(getOperation(), target.takeError());
    std::optional<Schedule> given;
    if (!schedule.empty()) {
      auto loaded = loadSchedule(schedule);
      if (!loaded)
        return refuse(getOperation(), loaded.takeError());
      given = std::move(*loaded);
    }
    SmallVector<onf::KernelOp> kernels;
    getOperation()->walk([&](onf::KernelOp kernel) { kernels.push_back(kernel); });
    bool used = false;
    for (onf::KernelOp kernel : kernels) {
      // A module may have several kernels; the file applies to the kernel that it names.
      bool named = given && (kernels.size() == 1 || given->kernel == kernel.getSymName());
      used |= named;
      if (failed(run(kernel, *target, named ? &*given : nullptr)))
        return signalPassFailure();
    }
    if (given && !used && !kernels.empty())
      refuse(getOperation(), llvm::createStringError(llvm::inconvertibleErrorCode(),
                                                     "schedule: no kernel is named '" + given->kernel + "'"));
  }

  LogicalResult run(onf::KernelOp kernel, const Machine &target, const Schedule *given) {
    Schedule chosen = given ? *given : chooseSchedule(kernel, target);
    if (!ranges)
      joinRanges(chosen);
    if (llvm::Error error = checkSchedule(kernel, chosen, target)) {
      if (given)
        return mlir::emitError(kernel.getLoc(), llvm::toString(std::move(error)));
      // The default is the smallest tile, which spills out of the cache.
      mlir::emitRemark(kernel.getLoc(), llvm::toString(std::move(error)));
    }
    if (print)
      llvm::outs() << printSchedule(chosen);
    return lift(kernel, chosen);
  }

  void refuse(Operation *op, llvm::Error error) {
    mlir::emitError(op->getLoc(), llvm::toString(std::move(error)));
    signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// onf-verify-lifting
//===----------------------------------------------------------------------===//

static LogicalResult verifyAxis(Operation *op, onf::AxisAttr axis, const Twine &what) {
  if (llvm::Error error = verifyBijection(axis))
    return op->emitOpError("expects a bijection for ") << what << " (C1), but " << llvm::toString(std::move(error));
  return success();
}

/// Returns true for valid inner factors of rows on a GPU. They are 64 rows of a warpgroup, or of
/// four warps, in the accumulator layout (C5); lanes along rows or runs of columns; threads; or
/// none.
static bool isGpuAxis(onf::AxisAttr axis) {
  using onf::Resource;
  SmallVector<std::pair<Resource, int64_t>> inner;
  for (unsigned k = 1; k < axis.getSizes().size(); ++k)
    inner.emplace_back(axis.getResource(k), axis.getSizes()[k]);
  if (inner.empty() || (inner.size() == 1 && inner[0].first == Resource::thread))
    return true;
  if (inner.size() > 1 && inner[0].first == Resource::sequential && inner[1].first == Resource::warp)
    inner.erase(inner.begin());
  // Four warps whose lanes share rows or the columns of rows, or have runs of columns.
  if (inner[0] == std::make_pair(Resource::warp, int64_t(4)) && inner.size() < 3)
    return inner.size() == 1 || inner[1].first == Resource::lane || inner[1].first == Resource::register_;
  if (inner[0].first == Resource::sequential)
    inner.erase(inner.begin());
  // Only lanes process rows in sequence.
  if (inner.empty())
    return false;
  if (inner.size() < 3 && inner[0].first == Resource::lane)
    return inner.size() == 1 || inner[1].first == Resource::register_;
  if (inner[0].first == Resource::warpgroup)
    inner.erase(inner.begin());
  return inner.size() == 3 && inner[0] == std::make_pair(Resource::warp, int64_t(4)) &&
         inner[1] == std::make_pair(Resource::register_, int64_t(2)) &&
         inner[2] == std::make_pair(Resource::lane, int64_t(8));
}

static bool hasWarpgroups(onf::AxisAttr axis) {
  return axis.getSizes().size() > 1 && axis.getResource(1) == onf::Resource::warpgroup;
}

/// Checks a nest. Lanes and registers hold rows of the last axis; other axes are only distributed.
static LogicalResult verifyNest(onf::ForOp nest) {
  auto lift = nest.getLift();
  if (!lift)
    return success();
  bool warpgroups = false;
  for (auto axis : lift->getAsRange<onf::AxisAttr>()) {
    if (axis.getResource(0) == onf::Resource::block && !isGpuAxis(axis))
      return nest.emitOpError("expects threads, or warpgroups of warp: 4, register: 2, "
                              "lane: 8 in a block (C5), but got ")
             << axis;
    warpgroups |= hasWarpgroups(axis);
  }
  if (warpgroups != nest.getPipeline().has_value())
    return nest.emitOpError("expects a pipeline if and only if the nest has warpgroups (C6)");
  for (auto [k, attribute] : llvm::enumerate(*lift)) {
    auto axis = cast<onf::AxisAttr>(attribute);
    StringRef name = cast<StringAttr>(nest.getNames()[k]).getValue();
    if (failed(verifyAxis(nest, axis, "axis '" + name + "'")))
      return failure();
    onf::Resource outer = axis.getResource(0);
    if (outer != onf::Resource::core && outer != onf::Resource::block)
      return nest.emitOpError("expects the factor core outermost on axis '") << name << "', or block (C2)";
    if (outer != cast<onf::AxisAttr>((*lift)[0]).getResource(0))
      return nest.emitOpError("expects the same outermost factor on every axis (C2), but "
                              "axis '")
             << name << "' has " << axis;
    bool sharesColumns = axis.getSizes().size() > 1 && axis.getResource(1) == onf::Resource::warp &&
                         cast<onf::AxisAttr>(lift->getValue().back()).getTile() != 1 && k + 2 == lift->size();
    // A lane per row, or per several rows in sequence, with a run of columns.
    auto last = cast<onf::AxisAttr>(lift->getValue().back());
    bool inSequence = axis.getSizes().size() == 3 && axis.getResource(1) == onf::Resource::sequential;
    bool hasRuns = (axis.getSizes().size() == 2 || inSequence) &&
                   axis.getResources().back() == int64_t(onf::Resource::lane) && last.getSizes().size() == 3 &&
                   last.getResource(1) == onf::Resource::warp && last.getResource(2) == onf::Resource::register_;
    if (k + 1 < lift->size() && axis.getTile() != 1 && !sharesColumns && !hasRuns)
      return nest.emitOpError("expects tiles on the last axis only (C3), but axis '")
             << name << "' has a tile of " << axis.getTile();
  }
  return success();
}

/// Checks a fold. Rule R4: a range may be split if and only if the state's monoid is associative.
/// Rescaling (`repair` regions) applies between parts as it does between indices.
static LogicalResult verifyFold(onf::FoldOp fold) {
  auto axis = fold.getLift();
  if (!axis)
    return success();
  if (failed(verifyAxis(fold, *axis, "fold '" + fold.getName() + "'")))
    return failure();
  auto nest = cast<onf::ForOp>(fold->getParentOp());
  bool overCores = axis->getResource(0) == onf::Resource::core;
  if (axis->getResource(0) != onf::Resource::sequential && !overCores)
    return fold.emitOpError("expects the factor sequential outermost, or core (C2)");
  if (overCores && (nest.getPipeline() || fold != *nest.getBody().getOps<onf::FoldOp>().begin()))
    return fold.emitOpError("expects parts over cores in the first fold of a nest for a CPU "
                            "only (C7)");
  bool isStaged = llvm::is_contained(axis->getResources(), static_cast<int64_t>(onf::Resource::shared));
  bool hasPipeline = cast<onf::ForOp>(fold->getParentOp()).getPipeline().has_value();
  bool isLast = fold == llvm::to_vector(nest.getBody().getOps<onf::FoldOp>()).back();
  if (isStaged != (hasPipeline && isLast))
    return fold.emitOpError("expects tiles in shared memory where the nest has a pipeline "
                            "and nowhere else (C6)");
  // A range that is not split keeps its order.
  if (axis->getSizes().size() == 1)
    return success();
  for (auto acc : fold.getBody().getOps<onf::AccOp>())
    switch (acc.getMonoid()) {
    case Monoid::add:
    case Monoid::mul:
    case Monoid::max:
    case Monoid::min:
    case Monoid::and_:
    case Monoid::or_:
    case Monoid::user: // the user asserts associativity
      continue;
    default:
      return acc.emitOpError("expects an associative monoid in a lifted fold (C4)");
    }
  return success();
}

LogicalResult moa::verifyLifting(onf::KernelOp kernel) {
  for (auto nest : kernel.getBody().getOps<onf::ForOp>()) {
    if (failed(verifyNest(nest)))
      return failure();
    for (auto fold : nest.getBody().getOps<onf::FoldOp>())
      if (failed(verifyFold(fold)))
        return failure();
  }
  return success();
}

namespace {
struct VerifyLiftingPass final : moa::impl::VerifyLiftingPassBase<VerifyLiftingPass> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](onf::KernelOp kernel) {
      return failed(verifyLifting(kernel)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
