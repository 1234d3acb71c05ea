//===- ONFToDevice.h - from lifted loops to programs for a GPU --*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
#define MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Error.h"

namespace moa {

struct GpuMachine;
struct Schedule;

/// Binds a kernel's nests to a GPU: by the cost model's schedule if none is given,
/// else by the given one, which is checked. A remark says why a nest has no tiles.
/// Returns the schedule used.
llvm::Expected<Schedule> liftToGpu(onf::KernelOp kernel, const GpuMachine &machine,
                                   const Schedule *given);

/// `onf-separate-columns`, `onf-separate-folds`, `onf-fuse-nests`, `onf-read-through-copies`,
/// `onf-order-products`, `onf-lift-gpu`, and below `convert-onf-to-device`;
/// lib/Conversion/Passes.td describes them.
std::unique_ptr<mlir::Pass> createSeparateColumnsPass();
std::unique_ptr<mlir::Pass> createSeparateFoldsPass(bool forTiles, bool forPlans);
std::unique_ptr<mlir::Pass> createFuseNestsPass();
std::unique_ptr<mlir::Pass> createReadThroughCopiesPass();
std::unique_ptr<mlir::Pass> createOrderProductsPass();
std::unique_ptr<mlir::Pass> createLiftGpuPass(std::string machine = "h200");
std::unique_ptr<mlir::Pass> createConvertONFToDevicePass();

/// One nest as a kernel whose threads take a row each: the last axis is cut into
/// tiles of `threads` rows, and a block takes one tile and one index of every
/// other axis. Fails with a diagnostic at the op that cannot be lowered.
mlir::LogicalResult lowerRows(onf::ForOp nest, device::ProgramOp program, unsigned number,
                              int64_t threads);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
