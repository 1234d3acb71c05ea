//===- OverlapKernels.cpp - mark launches that may overlap ----------------===//
//
// While the last blocks of a launch run, the other multiprocessors could run blocks of the next
// launch. A kernel that does not depend on the one before it may start then, even if both cannot be
// one launch.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/ONF/IR/Hints.h"
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
      // Kernels that may still run when the next one starts: one that has waited for all earlier
      // kernels, and those that overlap with it.
      SmallVector<Accesses> running;
      const llvm::SetVector<KernelOp> telling = findReportOnly(program); // hosts launch them separately
      KernelOp before;
      for (auto kernel : program.getBody().getOps<KernelOp>()) {
        Accesses accesses(kernel);
        bool isLaunched = !kernel.getBlocks().isZero(), needsAny = false;
        for (const Accesses &other : running)
          needsAny |= accesses.interferes(other);
        if (before && telling.contains(before) != telling.contains(kernel))
          running.clear();
        if (before && onf::areComplementary(before, kernel)) // only one of them is launched
          running.clear();
        before = kernel;
        bool overlapsPrevious = !running.empty() && isLaunched && !needsAny;
        if (overlapsPrevious)
          kernel->setAttr(kOverlapAttr, UnitAttr::get(&getContext()));
        else
          running.clear();
        running.push_back(std::move(accesses));
      }
    });
  }
};
} // namespace
} // namespace moa::device
