//===- GpuNests.h - what the cost model sees of a nest ----------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H
#define MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/GpuSchedule.h"

namespace moa {

/// The kernel's nests in order: their indices, and of those that can run with
/// tiles what one takes.
std::vector<GpuNest> gpuNests(onf::KernelOp kernel);

/// Why a nest of a kernel runs without tiles on a machine's tensor cores; empty where it runs with
/// them.
std::string whyNoTiles(const GpuNest &nest, const GpuMachine &machine);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H
