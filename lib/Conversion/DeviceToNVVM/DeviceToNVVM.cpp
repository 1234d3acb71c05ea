//===- DeviceToNVVM.cpp - from programs for a GPU to LLVM's dialects ------===//
#include "lib/Conversion/DeviceToNVVM/DeviceToNVVM.h"
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa {
namespace {

/// Loops that run once, as that of a first tile, become the code inside.
void promoteSingleIterations(device::KernelOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  kernel.walk([&](scf::ForOp loop) { (void)loop.promoteIfSingleIteration(rewriter); });
}

struct ConvertDeviceToNVVM : PassWrapper<ConvertDeviceToNVVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertDeviceToNVVM)
  StringRef getArgument() const final { return "convert-device-to-nvvm"; }
  StringRef getDescription() const final {
    return "Lower GPU programs to functions in nvvm, llvm, scf and arith";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    NVVM::NVVMDialect, scf::SCFDialect>();
  }
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

std::unique_ptr<Pass> createConvertDeviceToNVVMPass() {
  return std::make_unique<ConvertDeviceToNVVM>();
}

void registerDeviceToNVVMPasses() {
  PassRegistration<ConvertDeviceToNVVM>();
  registerFunctionsToLLVMPass();
  PassPipelineRegistration<>("device-to-llvm-pipeline",
                             "Every pass from device to the llvm dialect for PTX",
                             buildDeviceToLLVMPipeline);
}

void buildDeviceToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(createConvertDeviceToNVVMPass());
  manager.addPass(createConvertGPUFunctionsToLLVMPass());
}

} // namespace moa
