//===- ONFToDevice.h - from lifted loops to programs for a GPU --*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H
#define MOA_CONVERSION_ONFTODEVICE_ONFTODEVICE_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"

namespace moa {

/// `convert-onf-to-device`: every `onf.kernel` becomes a `device.program` with
/// one `device.kernel` per nest.
///
/// **Requires** the operational normal form, with the intervals of
/// `onf-derive-intervals` where there are any, and constant extents of carried
/// axes. **Establishes** the contract of `device-verify`. **Numerics**: the
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
