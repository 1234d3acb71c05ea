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

/// `onf-lift-gpu`: factors the axes of nests and folds and binds them to blocks,
/// warpgroups, warps, registers, lanes and stages, or to threads.
///
///     onf.for ["h", "i"] in ["H", "N"] { onf.fold "j" in "M" … }
///     onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>,
///         #onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>]
///         pipeline <consumer = 240, producer = 24, …> {
///       onf.fold "j" in "M" lift <sequential: 0, stage: 2, shared: 128> … }
///
/// **Requires** the operational normal form. **Establishes** a lift on every nest
/// and on the folds in it. **Numerics**: reassociates folds (rule R4) by tiles whose
/// boundaries depend on the index alone. **Cost**: a hundred evaluations of a
/// formula per nest.
std::unique_ptr<mlir::Pass> createLiftGpuPass(std::string machine = "h200");
void registerLiftGpuPass();

/// `convert-onf-to-device`: every `onf.kernel` becomes a `device.program` with
/// one `device.kernel` per nest.
///
/// **Requires** the operational normal form bound to a GPU by `onf-lift-gpu`, with
/// the intervals of `onf-derive-intervals` where there are any, and constant extents
/// of carried axes. **Establishes** the contract of `device-verify`. **Numerics**: the
/// values of onf in the types it names; sums in ascending order, a product that
/// is added to a sum in one rounding. **Cost**: linear in the kernel.
std::unique_ptr<mlir::Pass> createConvertONFToDevicePass();
void registerONFToDevicePasses();

/// One nest as a kernel whose threads take a row each: the last axis is cut into
/// tiles of `threads` rows, and a block takes one tile and one index of every
/// other axis. Fails with a diagnostic at the op that cannot be lowered.
mlir::LogicalResult lowerRows(onf::ForOp nest, device::ProgramOp program,
                              unsigned number, int64_t threads);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
