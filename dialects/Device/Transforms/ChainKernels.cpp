//===- ChainKernels.cpp - one launch for dependent kernels with little work -===//
//
// A launch costs a few microseconds, even if it has no work. This pass turns consecutive kernels,
// each of which may depend on those before it, into one launch whose blocks wait for each other
// instead (device.stages).
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/KernelRewrites.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICECHAINKERNELS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// Returns true if a kernel may be a stage: it has few blocks, a skip flag and no early exit,
/// stores only to the workspace, and raises no flag.
bool canChain(KernelOp kernel, unsigned degree) {
  auto program = kernel->getParentOfType<ProgramOp>();
  if (!llvm::all_of(Accesses(kernel).written, [&](Value array) { return program.isWorkspace(array); }))
    return false;
  return isPlain(kernel) && getSkipFlag(kernel) && degreeOf(kernel) < degree &&
         kernel.getBody().getOps<ExitIfOp>().empty() &&
         !kernel.walk([](RaiseOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool haveSameLaunch(KernelOp a, KernelOp b) {
  return a->getAttr(kSkipFlagAttr) == b->getAttr(kSkipFlagAttr) &&
         a->getAttr(onf::kLaunchIfAttr) == b->getAttr(onf::kLaunchIfAttr);
}

/// Returns the runs of consecutive kernels with at least `fewest` stages.
SmallVector<SmallVector<KernelOp>> findChains(ProgramOp program, size_t fewest) {
  unsigned degree = 0;
  for (auto kernel : program.getBody().getOps<KernelOp>())
    degree = std::max(degree, degreeOf(kernel));
  SmallVector<SmallVector<KernelOp>> chains(1);
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    SmallVector<KernelOp> &last = chains.back();
    bool isStage = canChain(kernel, degree);
    if (!last.empty() && !(isStage && haveSameLaunch(last.front(), kernel)))
      chains.emplace_back();
    if (isStage)
      chains.back().push_back(kernel);
  }
  llvm::erase_if(
      chains, [&](ArrayRef<KernelOp> chain) { return chain.size() < fewest || !isFirstOver(program, chain.front()); });
  return chains;
}

/// Emits one kernel with the given kernels as its stages.
KernelOp chain(ArrayRef<KernelOp> kernels, FirstStores &stores, int64_t residents) {
  KernelOp first = kernels.front();
  auto program = first->getParentOfType<ProgramOp>();
  OpBuilder b(first);
  Location loc = b.getFusedLoc(llvm::map_to_vector(kernels, [](KernelOp kernel) { return kernel.getLoc(); }));
  SymExpr blocks;
  int64_t threads = 0;
  for (KernelOp kernel : kernels) {
    blocks = blocks + kernel.getBlocks();
    threads = std::max<int64_t>(threads, kernel.getThreads());
  }
  Value turns = program.addWorkspace(freshArrayName(program, (first.getSymName() + "_turns").str()),
                                     ArrayType::get(b.getContext(), {SymExpr(kTurns)}, b.getI32Type()));
  for (int64_t element : {int64_t(0), kTurns - 1})
    stores.clear(turns, element);
  auto made = KernelOp::create(b, loc, first.getSymName(), blocks, threads);
  setAttributesOfAll(made, kernels);
  made->removeAttr(kOverlapAttr);
  b.setInsertionPointToStart(&made.getBody().emplaceBlock());
  SmallVector<Value> counts;
  for (KernelOp kernel : kernels)
    counts.push_back(SymbolOp::create(b, loc, kernel.getBlocks()));
  auto stages = StagesOp::create(b, loc, turns, counts, residents, kernels.size());
  for (auto [one, stage] : llvm::zip_equal(kernels, stages.getStages())) {
    KernelOp kernel = one;
    Location own = kernel.getLoc();
    b.setInsertionPointToStart(&stage.emplaceBlock());
    Value number = stage.addArgument(b.getIndexType(), own);
    if (static_cast<int64_t>(kernel.getThreads()) < threads) {
      Value count = arith::ConstantIndexOp::create(b, own, kernel.getThreads());
      Value isOne = arith::CmpIOp::create(b, own, arith::CmpIPredicate::slt, ThreadOp::create(b, own), count);
      b.setInsertionPoint(scf::IfOp::create(b, own, isOne, /*withElseRegion=*/false).thenYield());
    }
    moveBody(kernel, b, number);
  }
  for (KernelOp kernel : kernels)
    kernel.erase();
  return made;
}

struct DeviceChainKernels final : impl::DeviceChainKernelsBase<DeviceChainKernels> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](ProgramOp program) {
      SmallVector<SmallVector<KernelOp>> chains = findChains(program, std::max<int64_t>(fewest, 2));
      if (chains.empty())
        return;
      FirstStores stores(program);
      for (ArrayRef<KernelOp> kernels : chains) {
        KernelOp made = chain(kernels, stores, residents);
        // A kernel that may overlap with the last stage may depend on an earlier one.
        auto next = dyn_cast_or_null<KernelOp>(made->getNextNode());
        for (Accesses all(made); next && next->hasAttr(kOverlapAttr);
             next = dyn_cast_or_null<KernelOp>(next->getNextNode()))
          if (Accesses(next).interferes(all)) {
            next->removeAttr(kOverlapAttr);
            break;
          }
      }
    });
  }
};
} // namespace
} // namespace moa::device
