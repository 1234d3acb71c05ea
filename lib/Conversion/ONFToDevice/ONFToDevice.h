//===- ONFToDevice.h - from scheduled loop nests to GPU programs -*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
#define MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Error.h"

namespace moa {

struct GpuMachine;
struct Schedule;

/// Binds a kernel's nests, whose forms are known, to a GPU and returns the schedule used: `given`,
/// which is checked, or the cost model's choice if that is null. Emits a remark or warning for each nest without tiles.
llvm::Expected<Schedule> liftToGpu(onf::KernelOp kernel, const GpuMachine &machine, const Schedule *given);

/// `onf-separate-columns`, `onf-separate-folds`, `onf-fuse-nests`, `onf-read-through-copies`,
/// `onf-order-products`, `onf-find-forms`, `onf-lift-gpu` and `convert-onf-to-device`, as described in
/// lib/Conversion/Passes.td.
std::unique_ptr<mlir::Pass> createSeparateColumnsPass();
std::unique_ptr<mlir::Pass> createSeparateFoldsPass(bool forTiles, bool forPlans);
std::unique_ptr<mlir::Pass> createFuseNestsPass();
std::unique_ptr<mlir::Pass> createReadThroughCopiesPass();
std::unique_ptr<mlir::Pass> createOrderProductsPass();
std::unique_ptr<mlir::Pass> createFindFormsPass();
std::unique_ptr<mlir::Pass> createLiftGpuPass(std::string machine = "h200");
std::unique_ptr<mlir::Pass> createConvertONFToDevicePass();

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
