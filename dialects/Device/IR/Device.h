//===- Device.h - the device dialect ----------------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICE_H
#define MOA_DIALECTS_DEVICE_IR_DEVICE_H

#include "dialects/MoA/IR/MoA.h"

#include "dialects/Device/IR/DeviceDialect.h.inc"
#include "dialects/Device/IR/DeviceEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Device/IR/DeviceAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Device/IR/DeviceTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Device/IR/DeviceOps.h.inc"

namespace moa::device {
/// Elements of the array of `device.stages`. The first and the last one are counters.
inline constexpr int64_t kTurns = 33;
/// Returns true if an operation of the dialect uses only registers of its thread and warp, arrays,
/// and values that are the same for all threads of the grid.
bool isPlainOp(mlir::Operation *op);
/// Returns true if threads copy rows that complete phases of these barriers (device.copy_rows).
/// Contractions read shared memory through another proxy, so waits for such a phase need a fence.
bool isFilledByThreads(mlir::Value barriers);
} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_IR_DEVICE_H
