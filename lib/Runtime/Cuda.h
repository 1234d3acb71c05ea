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

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = void *;
using CUlibrary = void *;
using CUkernel = void *;
using CUfunction = void *;
using CUstream = void *;
using CUtensorMapDataType = int;
using cuuint32_t = uint32_t;
using cuuint64_t = uint64_t;

enum {
  CUDA_SUCCESS = 0,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

struct CUlaunchAttribute {
  int id;
  int padding;
  union {
    char room[64];
    int programmaticStreamSerializationAllowed;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

struct alignas(128) CUtensorMap {
  uint64_t words[16];
};

/// The functions of libcuda: the name in cuda.h, the name in the library, and the parameters.
#define MOA_DRIVER_FUNCTIONS(F)                                                                                        \
  F(cuInit, "cuInit", unsigned)                                                                                        \
  F(cuDriverGetVersion, "cuDriverGetVersion", int *)                                                                   \
  F(cuDeviceGet, "cuDeviceGet", CUdevice *, int)                                                                       \
  F(cuDeviceGetAttribute, "cuDeviceGetAttribute", int *, int, CUdevice)                                                \
  F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext *, CUdevice)                                       \
  F(cuCtxGetCurrent, "cuCtxGetCurrent", CUcontext *)                                                                   \
  F(cuCtxSetCurrent, "cuCtxSetCurrent", CUcontext)                                                                     \
  F(cuCtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                                                                \
  F(cuCtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext *)                                                                \
  F(cuCtxGetDevice, "cuCtxGetDevice", CUdevice *)                                                                      \
  F(cuStreamSynchronize, "cuStreamSynchronize", CUstream)                                                              \
  F(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", void *, CUdeviceptr, size_t, CUstream)                                  \
  F(cuLibraryLoadData, "cuLibraryLoadData", CUlibrary *, const void *, const int *, void **, unsigned, const int *,    \
    void **, unsigned)                                                                                                 \
  F(cuLibraryUnload, "cuLibraryUnload", CUlibrary)                                                                     \
  F(cuLibraryGetKernel, "cuLibraryGetKernel", CUkernel *, CUlibrary, const char *)                                     \
  F(cuKernelGetFunction, "cuKernelGetFunction", void **, CUkernel)                                                     \
  F(cuKernelSetAttribute, "cuKernelSetAttribute", int, int, CUkernel, CUdevice)                                        \
  F(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", CUtensorMap *, int, uint32_t, void *, const uint64_t *,          \
    const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int)                                          \
  F(cuLaunchKernelEx, "cuLaunchKernelEx", const CUlaunchConfig *, CUkernel, void **, void **)

struct Driver {
#define MOA_DECLARE(function, name, ...) CUresult (*function)(__VA_ARGS__);
  MOA_DRIVER_FUNCTIONS(MOA_DECLARE)
#undef MOA_DECLARE
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
int32_t findDevice(Message m, const Requirements &needed, const Driver *&driver, CUdevice &device);

/// Gives the device that findDevice has found last in this thread.
int32_t moa_find_device(int *device);

/// Refuses a device of another architecture.
int32_t checkArchitecture(Message m, const Requirements &needed, const Driver &driver, CUdevice device);

/// Returns the primary context of a device, which it retains once, or null.
CUcontext getPrimaryContext(const Driver &driver, CUdevice device);

} // namespace moa::runtime::cuda

#endif // MOA_RUNTIME_CUDA_H
