//===- Cuda.h - the CUDA driver, opened at run time -------------*- C++ -*-===//
//
// Declares what the library uses of cuda.h, so that it builds without a toolkit. A test compares
// the declarations with cuda.h (test/Runtime/cuda_header.py).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_RUNTIME_CUDA_H
#define MOA_RUNTIME_CUDA_H

#include "lib/Runtime/Checked.h"

namespace moa::runtime::cuda {

using Result = int;
using Device = int;
using Context = void *;
using Library = void *;
using Kernel = void *;
using Stream = void *;

enum {
  kSuccess = 0,
  kErrorNoDevice = 100,
  kMaxDynamicSharedBytes = 8,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kProgrammaticStreamSerialization = 6,
  kUint8 = 0,
  kFloat16 = 6,
  kBfloat16 = 9,
  kInterleaveNone = 0,
  kSwizzle128B = 3,
  kPromotion256B = 3,
  kFillZeros = 0,
};

struct LaunchAttribute {
  int id;
  int padding;
  union {
    char room[64];
    int isAllowed;
  } value;
};

struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

struct alignas(128) TensorMap {
  uint64_t words[16];
};

/// The functions of libcuda. Some have names of a later version in the library.
struct Driver {
  Result (*cuInit)(unsigned);
  Result (*cuDriverGetVersion)(int *);
  Result (*cuDeviceGet)(Device *, int);
  Result (*cuDeviceGetAttribute)(int *, int, Device);
  Result (*cuDevicePrimaryCtxRetain)(Context *, Device);
  Result (*cuCtxGetCurrent)(Context *);
  Result (*cuCtxSetCurrent)(Context);
  Result (*cuCtxPushCurrent)(Context);
  Result (*cuCtxPopCurrent)(Context *);
  Result (*cuCtxGetDevice)(Device *);
  Result (*cuStreamSynchronize)(Stream);
  Result (*cuMemcpyDtoHAsync)(void *, unsigned long long, size_t, Stream);
  Result (*cuLibraryLoadData)(Library *, const void *, const int *, void **, unsigned, const int *, void **, unsigned);
  Result (*cuLibraryUnload)(Library);
  Result (*cuLibraryGetKernel)(Kernel *, Library, const char *);
  Result (*cuKernelGetFunction)(void **, Kernel);
  Result (*cuKernelSetAttribute)(int, int, Kernel, Device);
  Result (*cuTensorMapEncodeTiled)(TensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                   const uint32_t *, const uint32_t *, int, int, int, int);
  Result (*cuLaunchKernelEx)(const LaunchConfig *, Kernel, void **, void **);
  int version; ///< for example 12070
};

/// What kernels need of a driver and a device.
struct Requirements {
  int driver = 0;           ///< its least version, for example 12070
  int major = 0, minor = 0; ///< the compute capability
  bool isExact = false;     ///< no later capability will do
  const char *target = "";  ///< for messages
};

/// Opens libcuda.so.1, or the file that MOA_LIBCUDA names (for tests), and initialises it. Returns
/// null and the reason if there is no driver or device, or if the driver is too old.
const Driver *openDriver(Message m, const Requirements &needed);

/// Returns the driver if it has been opened, or null.
const Driver *getDriver();

/// Finds the device of the current context. Without a context, that of device 0 becomes current, as
/// in the CUDA runtime. Refuses a device of another architecture.
int32_t findDevice(Message m, const Requirements &needed, const Driver *&driver, Device &device);

/// Refuses a device of another architecture.
int32_t checkArchitecture(Message m, const Requirements &needed, const Driver &driver, Device device);

/// Returns the primary context of a device, which it retains once, or null.
Context getPrimaryContext(const Driver &driver, Device device);

} // namespace moa::runtime::cuda

#endif // MOA_RUNTIME_CUDA_H
