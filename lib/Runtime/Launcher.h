//===- Launcher.h - the functions of emitted launchers ----------*- C++ -*-===//
#ifndef MOA_RUNTIME_LAUNCHER_H
#define MOA_RUNTIME_LAUNCHER_H

#include "lib/Runtime/Cuda.h"

namespace moa::runtime::cuda {

// The text calls the functions of the driver by their names.
#define cuLaunchKernelEx getDriver()->cuLaunchKernelEx
#define cuMemcpyDtoHAsync getDriver()->cuMemcpyDtoHAsync
#define cuStreamSynchronize getDriver()->cuStreamSynchronize
#define cuTensorMapEncodeTiled getDriver()->cuTensorMapEncodeTiled
#define MOA_PART_MEMORY
#define MOA_PART_TILES
#define MOA_PART_STEPS
#define MOA_PART_ROUND
#define MOA_PART_LAUNCH
#define MOA_PART_BOUNDS
#include "lib/Target/Host/Launcher.c"
#undef MOA_PART_MEMORY
#undef MOA_PART_TILES
#undef MOA_PART_STEPS
#undef MOA_PART_ROUND
#undef MOA_PART_LAUNCH
#undef MOA_PART_BOUNDS
#undef cuLaunchKernelEx
#undef cuMemcpyDtoHAsync
#undef cuStreamSynchronize
#undef cuTensorMapEncodeTiled

} // namespace moa::runtime::cuda

#endif // MOA_RUNTIME_LAUNCHER_H
