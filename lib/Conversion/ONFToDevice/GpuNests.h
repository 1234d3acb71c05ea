//===- GpuNests.h - nests of a kernel, for the cost model -------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H
#define MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/GpuSchedule.h"

namespace moa {

/// Returns the kernel's nests in order: their axes and, if a nest can run with tiles, the
/// resources of a tile.
std::vector<GpuNest> gpuNests(onf::KernelOp kernel);

/// Returns why a nest cannot run with tiles on a machine's tensor cores; empty if it can.
std::string whyNoTiles(const GpuNest &nest, const GpuMachine &machine);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H
