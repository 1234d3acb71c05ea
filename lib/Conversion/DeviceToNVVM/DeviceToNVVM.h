//===- DeviceToNVVM.h - from programs for a GPU to LLVM's dialects -*- C++ -*-===//
#ifndef MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H
#define MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H

#include "dialects/Device/IR/Device.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace moa {

/// Creates `convert-device-to-nvvm`, and below `convert-gpu-functions-to-llvm`;
/// lib/Conversion/Passes.td describes them.
std::unique_ptr<mlir::Pass> createConvertDeviceToNVVMPass();

std::unique_ptr<mlir::Pass> createConvertGPUFunctionsToLLVMPass();

/// Registers device-to-llvm-pipeline.
void registerDeviceToNVVMPipelines();

/// Adds convert-device-to-nvvm and convert-gpu-functions-to-llvm.
void buildDeviceToLLVMPipeline(mlir::OpPassManager &manager);

} // namespace moa

#endif // MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H
