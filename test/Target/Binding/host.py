# REQUIRES: nvcc
# RUN: %python %s
"""The functions for tvm-ffi of CUDA C++ and of a launcher, beside libraries that stand for CUDA and for tvm-ffi.

They pass the stream of the environment, raise errors with their kinds, and launch nothing if anything is refused.
"""
import ctypes as C
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import moa_testing as mt

TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc"))))

FFI = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
int stream_device[2], errors;
float bound; // of the errors of every result
char kind[64], message[2048], string[2048];
void *TVMFFIEnvGetStream(int32_t type, int32_t device) {
  stream_device[0] = type, stream_device[1] = device;
  return (void *)0x5000;
}
void TVMFFIErrorSetRaisedFromCStr(const char *of, const char *text) {
  ++errors;
  snprintf(kind, sizeof kind, "%s", of);
  snprintf(message, sizeof message, "%s", text);
}
int TVMFFIStringFromByteArray(const void *bytes, void *out) {
  snprintf(string, sizeof string, "%.*s", (int)((size_t *)bytes)[1], *(const char **)bytes);
  *(int32_t *)out = 65;
  return 0;
}
"""
RUNTIME = r"""
int launches, failing, current;
void *stream;
int cudaLaunchKernelExC(const struct { unsigned grid[3], block[3]; size_t shared; void *stream; } *config,
                        const void *kernel, void **arguments) {
  ++launches;
  stream = config->stream;
  return failing;
}
int cudaFuncSetAttribute(const void *kernel, int attribute, int value) { return 0; }
static int encode() { return 0; }
int cudaFree(void *place) { return place != 0; }
int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags,
                                     int *result) {
  *found = (void *)encode;
  return result ? *result = 0 : 0;
}
int cudaGetDevice(int *device) { *device = current; return 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream) {
  for (size_t k = 0; k < n / 4; ++k) ((float *)to)[k] = bound;
  return 0;
}
int cudaStreamSynchronize(void *stream) { return 0; }
"""
DRIVER = r"""
#include <cuda.h>
int launches, failing, current;
void *stream;
CUresult cuInit(unsigned f) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *c) { *c = (CUcontext)&launches; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext c) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext *c) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *d) { *d = current; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int k) { *d = k; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { return cuCtxGetCurrent(c); }
CUresult cuLibraryLoadData(CUlibrary *l, const void *code, CUjit_option *a, void **b, unsigned c,
                           CUlibraryOption *d, void **e, unsigned f) {
  *l = (CUlibrary)&launches;
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary l) { return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name) { *k = (CUkernel)&launches; return CUDA_SUCCESS; }
CUresult cuKernelGetFunction(CUfunction *f, CUkernel k) { *f = (CUfunction)k; return CUDA_SUCCESS; }
CUresult cuKernelSetAttribute(CUfunction_attribute a, int v, CUkernel k, CUdevice d) { return CUDA_SUCCESS; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *base,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave i, CUtensorMapSwizzle s,
                                CUtensorMapL2promotion l, CUtensorMapFloatOOBfill fill) { return CUDA_SUCCESS; }
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
  for (size_t k = 0; k < n / 4; ++k) ((float *)to)[k] = bound;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream s) { return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **extra) {
  ++launches;
  stream = c->hStream;
  return failing ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}
"""


class Any(C.Structure):
    class Value(C.Union):
        _fields_ = [("int", C.c_int64), ("float", C.c_double), ("pointer", C.c_void_p)]
    _fields_ = [("type", C.c_int32), ("padding", C.c_uint32), ("value", Value)]


class Tensor(C.Structure):
    """A tensor object: its header, then DLPack's descriptor."""
    _fields_ = [("header", C.c_int64 * 3), ("data", C.c_void_p), ("device", C.c_int32 * 2), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


NONE, INT, BOOL, FLOAT, POINTER, TENSOR = 0, 1, 2, 3, 7, 70


def tensor(shape, data, code=4, bits=16, device=(2, 0)):
    sizes, strides = (C.c_int64 * len(shape))(*shape), []
    for k in range(len(shape)):
        size = 1
        for extent in shape[k + 1:]:
            size *= extent
        strides.append(12345 if shape[k] == 1 else size)  # that of one index has no meaning
    return Tensor((C.c_int64 * 3)(1, TENSOR, 0), data, device, len(shape), code, bits, 1, sizes,
                  (C.c_int64 * len(shape))(*strides), 0)


def value(argument, as_pointer):
    """An argument as a tagged value."""
    result = Any()
    if argument is None:
        result.type = NONE
    elif isinstance(argument, Tensor):
        place = C.addressof(argument)
        result.type, result.value.pointer = (POINTER, place + 24) if as_pointer else (TENSOR, place)
    elif isinstance(argument, (bool, int)):
        result.type, result.value.int = BOOL if isinstance(argument, bool) else INT, argument
    else:
        result.type, result.value.float = FLOAT, argument
    return result


def examine(path, has_tolerance):
    """In a process of its own, beside what stands for CUDA and tvm-ffi."""
    library, stubs = C.CDLL(path), C.CDLL(None)

    def number(name):
        return C.c_int.in_dll(stubs, name)

    def call(name, *arguments, as_pointer=False):
        """The result of a call, or its error, and the number of launches."""
        values = (Any * max(len(arguments), 1))(*[value(x, as_pointer) for x in arguments])
        result = Any()
        number("launches").value = number("errors").value = 0
        code = getattr(library, "__tvm_ffi_" + name)(None, values, len(arguments), C.byref(result))
        assert number("errors").value == (code != 0), (code, number("errors").value)
        if code:
            return tuple((C.c_char * 2048).in_dll(stubs, "message").value.decode() if part == "message" else
                         (C.c_char * 64).in_dll(stubs, "kind").value.decode() for part in ("kind", "message")) + (
                             number("launches").value,)
        if name.endswith("_shown"):
            assert result.type == 65, result.type
            return (C.c_char * 2048).in_dll(stubs, "string").value.decode()
        assert result.type == INT, result.type
        return result.value.int, number("launches").value

    def expect(want, *arguments, **how):
        got = call(*arguments, **how)
        assert got == want, (got, want)

    def given(device=(2, 0), b=2, **changes):
        shape = [b, 4, 64, 128]
        arrays = [tensor(shape, (k + 1) << 32, device=device) for k in range(4)]
        result = dict(Q=arrays[0], K=arrays[1], V=arrays[2], scale=0.125, O=arrays[3])
        return list({**result, **changes}.values())

    if has_tolerance:
        size, launches = call("sdpa_workspace", *given())
        assert size > 0 and not launches
        for workspace in ([], [None]):
            expect(("ValueError", f"workspace: sdpa needs {size} bytes at a multiple of 64, but got 0 at (nil)", 0), "sdpa",
                   *given(), *workspace)
        expect(("ValueError", f"workspace: sdpa needs {size} bytes at a multiple of 64, but got {size} at 0x900000020", 0),
               "sdpa", *given(), tensor([size], (9 << 32) + 32, 1, 8))
        expect(("ValueError", "workspace: overlaps an array of sdpa", 0), "sdpa", *given(), tensor([size], 4 << 32, 1, 8))
        workspace = tensor([size], 9 << 32, 1, 8)
        assert call("sdpa", *given(), workspace)[0] == 0
        expect("", "sdpa_shown", *given(), workspace)
        C.c_float.in_dll(stubs, "bound").value = 0.5
        found = call("sdpa_shown", *given(), workspace)
        assert found.startswith("O is not shown to be within 3e-2: the bound on its errors is 5.00e-01 at [0, 0"), found
        expect(("TypeError", "sdpa_shown takes 5 arguments (Q, K, V, scale, O) and optionally a workspace, but got 1", 0),
               "sdpa_shown", given()[0])
        found = call("sdpa_shown", *given())
        assert found[:2] == ("ValueError", f"the workspace has 0 bytes, but {size} are needed"), found
        return print("examined")
    stream = C.c_void_p.in_dll(stubs, "stream")
    devices = (C.c_int * 2).in_dll(stubs, "stream_device")
    for b in (1, 2):
        for as_pointer in (False, True):
            stream.value = 0
            expect((0, 1), "sdpa", *given(b=b), as_pointer=as_pointer)
            assert stream.value == 0x5000 and list(devices) == [2, 0], (stream.value, list(devices))
    expect((0, 1), "sdpa", *given(), None)
    expect((0, 1), "sdpa", *given(), tensor([64], 9 << 32, 1, 8))
    expect((0, 1), "sdpa", *given(scale=2))
    expect((0, 0), "sdpa_workspace", *given())
    # The device of the arrays must be the current one.
    message = "Q: is on device 3, but device 0 is current"
    expect(("RuntimeError", message, 0), "sdpa", *given(device=(2, 3)))
    number("current").value = 3
    expect((0, 1), "sdpa", *given(device=(2, 3)))
    assert list(devices) == [2, 3], list(devices)
    number("current").value = 0
    message = "Q: expects memory of a CUDA device (type 2), but got type 1"
    expect(("RuntimeError", message, 0), "sdpa", *given(device=(1, 0)))
    # Kinds of errors
    for name in ("sdpa", "sdpa_workspace"):
        expect(("TypeError", "scale: expects a float, but argument 3 is None", 0), name, *given(scale=None))
        expect(("TypeError", "V: expects a tensor, but argument 2 is an int", 0), name, *given(V=1))
        wrong = tensor([2, 4, 64, 128], 1 << 32, 2, 16)
        expect(("TypeError", "Q: expects bf16[B, H, N, 128], but got DLPack type code 2 of 16 bits, 1 lanes", 0), name,
               *given(Q=wrong))
        wrong = tensor([2, 4, 65, 128], 1 << 36)
        expect(("ValueError", "V: expects bf16[B, H, M, 128], so M = 64 on axis 2, but got 65", 0), name,
               *given(V=wrong))
        more = " and optionally a workspace" if name == "sdpa" else ""
        expect(("TypeError", f"{name} takes 5 arguments (Q, K, V, scale, O){more}, but got 2", 0), name, *given()[:2])
    expect(("RuntimeError", "workspace: expects memory of device type 2, but got type 1", 0), "sdpa", *given(),
           tensor([64], 9 << 32, 1, 8, (1, 0)))
    expect(("RuntimeError", "workspace: expects memory of device 0, but is on device 1", 0), "sdpa", *given(),
           tensor([64], 9 << 32, 1, 8, (2, 1)))
    number("failing").value = 700
    expect(("RuntimeError", "sdpa: CUDA refused a launch, code 14", 1), "sdpa", *given())
    print("examined")


class Host(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        self.addCleanup(directory.cleanup)
        self.base = os.path.join(directory.name, "kernel")
        with open(self.base + "-stubs.c", "w", encoding="utf-8") as file:
            file.write(FFI)

    def examined(self, target, stubs, build, *flags):
        with open(self.base + "-stubs.c", "a", encoding="utf-8") as file:
            file.write(stubs)
        device = self.base + "-stubs.so"
        subprocess.run(["cc", "-w", "-shared", "-fPIC", f"-I{TOOLKIT}/include", self.base + "-stubs.c", "-o", device],
                       check=True, timeout=60)
        made = mt.tool("moa-codegen", mt.example("sdpa"), "--target=" + target, "--binding=tvm-ffi", *flags,
                       "-o", self.base + {"cuda": ".cu", "ptx": ".ptx"}[target])
        self.assertEqual(made.returncode, 0, made.stderr)
        built = subprocess.run(build + ["-shared", "-o", self.base + ".so"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(built.returncode, 0, built.stdout)
        done = subprocess.run([sys.executable, __file__, "--examine", self.base + ".so", *flags], text=True, timeout=60,
                              env=os.environ | {"LD_PRELOAD": device}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, "examined\n"), done.stdout)

    def examined_cuda(self, *flags):
        self.examined("cuda", RUNTIME, ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "shared", "-Werror",
                                        "all-warnings", "-Xcompiler", "-fPIC", self.base + ".cu"], *flags)

    def examined_ptx(self, *flags):
        self.examined("ptx", DRIVER, ["cc", "-O2", "-Wall", "-Wextra", "-Wmissing-declarations", "-Werror", "-fPIC",
                                      f"-I{TOOLKIT}/include", self.base + ".c"], *flags)

    def test_cuda(self):
        self.examined_cuda()

    def test_ptx(self):
        self.examined_ptx()

    def test_a_tolerance_of_cuda(self):
        self.examined_cuda("--within", "O=3e-2")

    def test_a_tolerance_of_ptx(self):
        self.examined_ptx("--within", "O=3e-2")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--examine"]:
        examine(sys.argv[2], len(sys.argv) > 3)
    else:
        unittest.main(verbosity=2)
