//===- Passes.h - passes of dimension lifting -------------------*- C++ -*-===//
#ifndef MOA_SCHEDULE_PASSES_H
#define MOA_SCHEDULE_PASSES_H

#include "dialects/ONF/IR/ONF.h"
#include "mlir/Pass/Pass.h"

namespace moa {

#define GEN_PASS_DECL
#include "lib/Schedule/SchedulePasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lib/Schedule/SchedulePasses.h.inc"

mlir::LogicalResult verifyLifting(onf::KernelOp kernel);

} // namespace moa

#endif // MOA_SCHEDULE_PASSES_H
