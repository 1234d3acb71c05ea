//===- OverlapKernels.cpp - launches that need not wait for each other -----===//
//
// While the last blocks of a launch run, multiprocessors have nothing to do but what the next
// launch brings. A kernel that does not need what the one in front of it writes may start there,
// though it cannot be one launch with it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "lib/Support/SymExpr.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICEOVERLAPKERNELS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
struct DeviceOverlapKernels final : impl::DeviceOverlapKernelsBase<DeviceOverlapKernels> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](ProgramOp program) {
      // Those that may still run when the next one starts: one that has waited for all before it,
      // and those beside it.
      SmallVector<Accesses> running;
      const llvm::SetVector<KernelOp> telling =
          findTelling(program); // which hosts launch by themselves
      KernelOp before;
      for (auto kernel : program.getBody().getOps<KernelOp>()) {
        Accesses accesses(kernel);
        bool isLaunched = !SymExpr::parse(kernel.getBlocks())->isZero(), needsAny = false;
        for (const Accesses &other : running)
          needsAny |= accesses.interferes(other);
        if (before && telling.contains(before) != telling.contains(kernel))
          running.clear();
        before = kernel;
        bool isBeside = !running.empty() && isLaunched && !needsAny;
        if (isBeside)
          kernel->setAttr(kBesideAttr, UnitAttr::get(&getContext()));
        else
          running.clear();
        running.push_back(std::move(accesses));
      }
    });
  }
};
} // namespace
} // namespace moa::device
