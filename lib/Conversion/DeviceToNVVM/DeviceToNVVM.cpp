//===- DeviceToNVVM.cpp - from programs for a GPU to LLVM's dialects ------===//
#include "lib/Conversion/DeviceToNVVM/DeviceToNVVM.h"
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_CONVERTDEVICETONVVM
#include "lib/Conversion/ConversionPasses.h.inc"

namespace {

/// Inlines loops that run once, such as that of a first tile.
void promoteSingleIterations(device::KernelOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  kernel.walk([&](scf::ForOp loop) { (void)loop.promoteIfSingleIteration(rewriter); });
}

struct ConvertDeviceToNVVM final : impl::ConvertDeviceToNVVMBase<ConvertDeviceToNVVM> {
  void runOnOperation() final {
    SmallVector<device::ProgramOp> programs(getOperation().getOps<device::ProgramOp>());
    for (device::ProgramOp program : programs) {
      for (auto kernel : program.getBody().getOps<device::KernelOp>()) {
        promoteSingleIterations(kernel);
        if (failed(nvvm::KernelEmitter(kernel, getOperation()).run()))
          return signalPassFailure();
      }
      program.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createConvertDeviceToNVVMPass() { return std::make_unique<ConvertDeviceToNVVM>(); }

void registerDeviceToNVVMPipelines() {
  PassPipelineRegistration<>("device-to-llvm-pipeline", "Every pass from device to the llvm dialect for PTX",
                             buildDeviceToLLVMPipeline);
}

void buildDeviceToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createConvertDeviceToNVVMPass());
  manager.addPass(createConvertGPUFunctionsToLLVMPass());
}

} // namespace moa
