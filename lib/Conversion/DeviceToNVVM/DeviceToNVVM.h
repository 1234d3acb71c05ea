//===- DeviceToNVVM.h - from programs for a GPU to LLVM's dialects -*- C++ -*-===//
#ifndef MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H
#define MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H

#include "dialects/Device/IR/Device.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace moa {

/// `convert-device-to-nvvm`: every `device.kernel` becomes an `llvm.func` that is
/// an nvvm kernel, its program disappears. A fragment becomes its registers, one
/// value each, those of 16-bit floats in pairs; rings and barriers become addresses
/// in shared memory; what NVVM has no op for is inline assembly.
///
///     device.arrive %empty[%s] : <2, 8>
///     ⇒  llvm.inline_asm "…@p mbarrier.arrive.shared::cta.b64 _, [$1];…" %lane, %address
///
/// **Requires** the contract of `device-verify`. **Establishes** functions in arith,
/// math, scf, nvvm and llvm whose parameters are those of moa::gpu::Launch, in its
/// order. **Numerics**: exact; every operation has the rounding of the device level,
/// and reductions its order. Elementary functions are calls of CUDA's libdevice.
/// **Cost**: linear in the registers of the fragments.
std::unique_ptr<mlir::Pass> createConvertDeviceToNVVMPass();

/// `convert-gpu-functions-to-llvm`: scalar code and control flow of functions in llvm.
///
///     %r = scf.if %c -> (f32) { scf.yield %x : f32 } else { scf.yield %y : f32 }
///     %s = arith.addf %r, %z : f32
///     ⇒  llvm.cond_br %c, ^1, ^2   ^1: llvm.br ^3(%x)   ^2: llvm.br ^3(%y)
///        ^3(%r: f32): %s = llvm.fadd %r, %z : f32
///
/// **Requires** the result of `convert-device-to-nvvm`. **Establishes** functions in
/// llvm and nvvm alone. **Numerics**: exact. **Cost**: one walk; ops without an equal in
/// llvm go through MLIR's conversions, which take several times as long.
std::unique_ptr<mlir::Pass> createConvertGPUFunctionsToLLVMPass();

/// Registers the passes, and device-to-llvm-pipeline.
void registerDeviceToNVVMPasses();
void registerFunctionsToLLVMPass();

/// convert-device-to-nvvm and convert-gpu-functions-to-llvm.
void buildDeviceToLLVMPipeline(mlir::OpPassManager &manager);

} // namespace moa

#endif // MOA_CONVERSION_DEVICETONVVM_DEVICETONVVM_H
