# REQUIRES: ptxas
# RUN: %python %s
"""What the run-time library declares of CUDA's driver (lib/Runtime/Cuda.h) is what cuda.h declares."""
import os
import shutil
import subprocess
import tempfile
import unittest

import moa_testing as mt

TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("ptxas"))))
PROGRAM = r"""
#include <cuda.h> // first: it gives later names to functions
#include "lib/Runtime/Cuda.h"
#include <cstddef>
#include <type_traits>
namespace m = moa::runtime::cuda;
#define SAME(a, b) static_assert(int(a) == int(b))
SAME(m::CUDA_SUCCESS, CUDA_SUCCESS);
SAME(m::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(m::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(m::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(m::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(m::CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(m::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(m::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(m::CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(m::CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(m::CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(m::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
SAME(sizeof(m::CUtensorMap), sizeof(CUtensorMap));
static_assert(alignof(m::CUtensorMap) >= alignof(CUtensorMap));
SAME(sizeof(m::CUlaunchAttribute), sizeof(CUlaunchAttribute));
SAME(offsetof(m::CUlaunchAttribute, value), offsetof(CUlaunchAttribute, value));
SAME(sizeof(m::CUlaunchAttribute::value), sizeof(CUlaunchAttributeValue));
SAME(sizeof(m::CUlaunchConfig), sizeof(CUlaunchConfig));
SAME(offsetof(m::CUlaunchConfig, blockDimX), offsetof(CUlaunchConfig, blockDimX));
SAME(offsetof(m::CUlaunchConfig, sharedMemBytes), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(m::CUlaunchConfig, hStream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(m::CUlaunchConfig, attrs), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(m::CUlaunchConfig, numAttrs), offsetof(CUlaunchConfig, numAttrs));

// Parameters of functions: as many, each of the same size.
template <typename R, typename S, typename... P, typename... Q> constexpr bool isLike(R (*)(P...), S (*)(Q...)) {
  if constexpr (sizeof...(P) != sizeof...(Q))
    return false;
  else
    return sizeof(R) == sizeof(S) && ((sizeof(P) == sizeof(Q)) && ...);
}
constexpr m::Driver d = {};
#define LIKE(f) static_assert(isLike(decltype(d.f){}, decltype(&f){}), #f)
LIKE(cuInit);
LIKE(cuDriverGetVersion);
LIKE(cuDeviceGet);
LIKE(cuDeviceGetAttribute);
LIKE(cuDevicePrimaryCtxRetain);
LIKE(cuCtxGetCurrent);
LIKE(cuCtxSetCurrent);
LIKE(cuCtxPushCurrent);
LIKE(cuCtxPopCurrent);
LIKE(cuCtxGetDevice);
LIKE(cuStreamSynchronize);
LIKE(cuMemcpyDtoHAsync);
LIKE(cuLibraryLoadData);
LIKE(cuLibraryUnload);
LIKE(cuLibraryGetKernel);
LIKE(cuKernelGetFunction);
LIKE(cuKernelSetAttribute);
LIKE(cuTensorMapEncodeTiled);
LIKE(cuLaunchKernelEx);
// The names that cuda.h gives to these in the library.
#define TEXT(x) #x
#define NAME(x) TEXT(x)
constexpr bool equal(const char *a, const char *b) { return *a == *b && (!*a || equal(a + 1, b + 1)); }
static_assert(equal(NAME(cuCtxPushCurrent), "cuCtxPushCurrent_v2"));
static_assert(equal(NAME(cuCtxPopCurrent), "cuCtxPopCurrent_v2"));
static_assert(equal(NAME(cuMemcpyDtoHAsync), "cuMemcpyDtoHAsync_v2"));
static_assert(equal(NAME(cuDevicePrimaryCtxRetain), "cuDevicePrimaryCtxRetain"));
int main() {}
"""


class Header(unittest.TestCase):

    def test_declarations(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            source = os.path.join(directory, "same.cpp")
            with open(source, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            done = subprocess.run([os.environ["CXX"], "-std=c++17", "-fsyntax-only", "-I" + mt.SOURCE_ROOT,
                                   "-I" + os.path.join(mt.SOURCE_ROOT, "include"), "-I" + TOOLKIT + "/include", source],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
