# REQUIRES: ptxas
# RUN: %python %s
"""The launcher, linked with a driver that writes down what it is asked to do: every
launch is the manifest's, on the values of the call; what is wrong is refused with the
codes of all targets, and nothing is launched.
"""
import ctypes
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import shown_cases

TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("ptxas"))))
DRIVER = r"""
#include <cuda.h>
#include <stdio.h>
#include <string.h>
int sizes[64], count, launches, loads, fails, overlaps, copies, refuses, maps, refused_map = -1;
unsigned grid[3], block[3], shared, attribute;
char kernel_name[128];
unsigned char values[64][128];
void *stream_of_launch;
CUresult cuInit(unsigned f) { return f ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *c) { *c = (CUcontext)&sizes; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { (void)c; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext c) { (void)c; return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext *c) { *c = NULL; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *d) { *d = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int k) { *d = k; return k ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { (void)d; return cuCtxGetCurrent(c); }
CUresult cuLibraryLoadData(CUlibrary *l, const void *code, CUjit_option *a, void **b, unsigned c,
                           CUlibraryOption *d, void **e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  ++loads;
  *l = (CUlibrary)&loads;
  return strstr(code, ".visible .entry") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}
CUresult cuLibraryUnload(CUlibrary l) { (void)l; return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name) {
  snprintf(kernel_name, sizeof kernel_name, "%s", name);
  *k = (CUkernel)&kernel_name;
  return l == (CUlibrary)&loads ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuKernelGetFunction(CUfunction *f, CUkernel k) { *f = (CUfunction)k; return CUDA_SUCCESS; }
CUresult cuKernelSetAttribute(CUfunction_attribute a, int v, CUkernel k, CUdevice d) {
  (void)k, (void)d;
  if (a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    attribute = v;
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *base,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave i, CUtensorMapSwizzle s,
                                CUtensorMapL2promotion l, CUtensorMapFloatOOBfill fill) {
  struct { int type, rank; void *base; cuuint64_t extents[5], strides[4]; cuuint32_t box[5]; } seen = {0};
  if (maps++ == refused_map)
    return CUDA_ERROR_INVALID_VALUE;
  seen.type = type, seen.rank = rank, seen.base = base;
  for (unsigned k = 0; k < rank; ++k) {
    if (steps[k] != 1)
      return CUDA_ERROR_INVALID_VALUE;
    seen.extents[k] = extents[k], seen.box[k] = box[k];
    if (k + 1 < rank)
      seen.strides[k] = strides[k];
  }
  memcpy(m, &seen, sizeof seen);
  return i == CU_TENSOR_MAP_INTERLEAVE_NONE && s == CU_TENSOR_MAP_SWIZZLE_128B &&
                 l == CU_TENSOR_MAP_L2_PROMOTION_L2_256B && fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream stream) { (void)stream; @COPY@ }
CUresult cuStreamSynchronize(CUstream stream) { (void)stream; return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **extra) {
  (void)f, (void)extra;
  grid[0] = c->gridDimX, grid[1] = c->gridDimY, grid[2] = c->gridDimZ;
  block[0] = c->blockDimX, block[1] = c->blockDimY, block[2] = c->blockDimZ;
  shared = c->sharedMemBytes, stream_of_launch = c->hStream;
  overlaps = 2 * overlaps;
  if (c->numAttrs == 1 && c->attrs[0].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
    overlaps += c->attrs[0].value.programmaticStreamSerializationAllowed;
  for (int k = 0; k < count; ++k)
    memcpy(values[k], p[k], sizes[k]);
  ++launches;
  return fails ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}
"""
DRIVER = DRIVER.replace("@COPY@", shown_cases.COPY)
MIXED = """kernel mixed[N](x : f32[N], a : bf16, b : f16, flag : bool, k : i8, d : f64) -> y : f32[N]
{
  y = [i < N] select(flag, x[i] * a + b, x[i] + k) + d
}
"""
# Parts of a sum beside b, then the sum.
TWO = """kernel two[N, M](x : f32[N], y : f32[M]) -> (a : f32, b : f32[M]) { a = +/ x  b = 3.0 * y }
"""
TOLERANT = """kernel tolerant[N, M](x : f32[N, 16], y : f32[M, 16], v : f32[M, 16])
    -> z : f32[N, 16] within 5e-2 relative sampled
{ z = softmax(x +.* transpose(y)) +.* v }
"""
SIZES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
OK, RANK, DTYPE, SHAPE, CONSTRAINT, STRIDES, ALIGNMENT = 0, 2, 3, 4, 5, 6, 7
DEVICE, NULL_DATA, OVERLAP, OVERFLOW, LAUNCH = 8, 9, 10, 12, 14


class Launcher(mt.Kernel):

    def __init__(self, directory, spec, flags=(), **settings):
        base = os.path.join(directory, "kernel")
        if "\n" in spec:
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(spec)
            spec = base + ".moa"
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        made = mt.tool("moa-codegen", spec, *sets, *flags, "--target=ptx", "-o", base + ".ptx")
        if made.returncode:
            raise RuntimeError(made.stderr)
        with open(base + ".json", encoding="utf-8") as file:
            program = json.load(file)["programs"][0]
        self.launch_facts = program["launches"]
        with open(base + ".driver.c", "w", encoding="utf-8") as file:
            file.write(DRIVER)
        subprocess.run([os.environ["CC"], "-w", "-shared", "-fPIC", "-I" + TOOLKIT + "/include",
                        base + ".c", base + ".driver.c", "-o", base + ".so"], check=True)
        self.loaded = ctypes.CDLL(base + ".so")
        self.name = program["name"]
        self.parameters = [mt.Parameter("out" if a["role"] == "output" else "in", a["name"],
                                        a["type"], ", ".join(a["shape"]))
                           for a in program["arguments"]]
        kinds = {"pointer": 8, "workspace": 8, "symbol": 8, "tensor_map": 128}
        sizes = [kinds.get(p["kind"]) or SIZES[p["type"]] for p in self.launch_facts[0]["parameters"]]
        (ctypes.c_int * 64).in_dll(self.loaded, "sizes")[:len(sizes)] = sizes
        self.number("count").value = len(sizes)

    def number(self, name):
        return ctypes.c_int.in_dll(self.loaded, name)

    def triple(self, name):
        return list((ctypes.c_uint * 3).in_dll(self.loaded, name))

    def passed(self):
        """The bytes of every parameter of the last launch, with its facts."""
        table = (ctypes.c_ubyte * 128 * 64).in_dll(self.loaded, "values")
        return [(fact, bytes(table[k])) for k, fact in enumerate(self.launch_facts[0]["parameters"])]


def tensors(**shapes):
    """Descriptors of device memory, each with a range of addresses of its own."""
    result, address = {}, 0x7000_0000_0000
    for name, (shape, kind) in shapes.items():
        array = np.lib.stride_tricks.as_strided(np.empty(1, mt.STORAGE[kind][0]), shape,
                                                np.empty(shape, np.int8).strides)
        tensor = mt.describe(array, kind, strides=False)
        tensor.device_type, tensor.data, tensor.array_shape = 2, address, shape
        result[name] = tensor
        address += 1 << 32
    return result


class Launches(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        cls.kernel = Launcher(cls.directory.name, mt.example("gqa_causal"))

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def values(self, B=2, H=6, G=3, N=300, M=400):
        values = tensors(Q=((B, H, N, 128), "bf16"), K=((B, G, M, 128), "bf16"),
                         V=((B, G, M, 128), "bf16"), O=((B, H, N, 128), "bf16"),
                         lse=((B, H, N), "f32"))
        return {**values, "scale": 0.125}

    def test_launch(self):
        values = self.values()
        before = self.kernel.number("launches").value
        self.assertEqual(self.kernel.launch(values), OK)
        self.assertEqual(self.kernel.number("launches").value, before + 1)
        fact = self.kernel.launch_facts[0]
        self.assertEqual(self.kernel.triple("grid"), [3 * 2 * 6, 1, 1])
        self.assertEqual(self.kernel.triple("block"), [fact["block"], 1, 1])
        self.assertEqual(self.kernel.number("shared").value, fact["shared_bytes"])
        self.assertEqual(self.kernel.number("attribute").value, fact["shared_bytes"])
        symbols = {"B": 2, "H": 6, "G": 3, "N": 300, "M": 400, "lse.s0": 1800, "lse.s1": 300, "lse.s2": 1}
        described = set()
        for parameter, data in self.kernel.passed():
            if parameter["kind"] == "pointer":
                self.assertEqual(struct.unpack_from("q", data)[0], values[parameter["array"]].data)
            elif parameter["kind"] == "symbol":
                self.assertEqual(struct.unpack_from("q", data)[0], symbols[parameter["name"]], parameter)
            elif parameter["kind"] == "scalar":
                self.assertEqual(struct.unpack_from("f", data)[0], 0.125)
            else:
                kind, rank, base, *rest = struct.unpack_from("iiQ5Q4Q5I", data)
                shape = values[parameter["array"]].array_shape
                b, h, n, d = shape
                self.assertEqual((kind, rank), (9, 4))  # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                self.assertEqual(base, values[parameter["array"]].data)
                self.assertEqual(rest[:4], [d, n, h, b])
                self.assertEqual(rest[5:8], [2 * d, 2 * d * n, 2 * d * n * h])
                self.assertEqual(rest[9:13], parameter["box"])
                described.add(parameter["array"])
        self.assertEqual(described, {"Q", "K", "V", "O"})
        # The code is loaded once.
        self.assertEqual(self.kernel.launch(values), OK)
        self.assertEqual(self.kernel.number("loads").value, 1)

    def test_nothing_to_do(self):
        before = self.kernel.number("launches").value
        self.assertEqual(self.kernel.launch(self.values(N=0)), OK)
        self.assertEqual(self.kernel.number("launches").value, before)

    def test_refusals(self):
        def change(name, **fields):
            values = self.values()
            for field, value in fields.items():
                setattr(values[name], field, value)
            return values

        def strided(*strides):
            values = self.values()
            values["keep"] = values["K"].strides = mt.int64s(strides)
            return values

        overlap = self.values()
        overlap["O"].data = overlap["Q"].data + 64
        cases = [
            (change("Q", ndim=3), RANK, "Q: expects bf16[B, H, N, 128], rank 4, but got rank 3"),
            (change("K", code=2), DTYPE, "K: expects bf16[B, G, M, 128], but got DLPack type code 2 of 16 bits"),
            (self.values(G=4), CONSTRAINT, "requires H % G == 0, but the left side is 2 and the right side 0"),
            (change("V", data=None), NULL_DATA, "V: data is NULL, but the array is not empty"),
            (change("V", device_type=1), DEVICE, "V: expects memory of a CUDA device (type 2), but got type 1"),
            (change("V", device_id=1), DEVICE, "V: is on device 1, but device 0 is current"),
            (change("V", data=0x7000_0000_0008), ALIGNMENT, "is not a multiple of 16"),
            (strided(400 * 128 * 3, 400 * 128, -128, 1), STRIDES, "K: stride -128 on axis 2 is negative"),
            (strided(400 * 132 * 3, 400 * 132, 132, 1), STRIDES, "K: stride 132 on axis 2 is not a positive multiple of 16"),
            (strided(400 * 256 * 3, 400 * 256, 256, 2), STRIDES, "K: expects adjacent elements on axis 3, but got stride 2"),
            (strided(400 * 128 * 3, 400 * 128, 128, 0), STRIDES, "K: expects adjacent elements on axis 3, but got stride 0"),
            (overlap, OVERLAP, "output O"),
        ]
        short = self.values()
        short["V"] = self.values(M=399)["V"]
        cases.append((short, SHAPE, "V: expects bf16[B, G, M, 128], so M = 400 on axis 2, but got 399"))
        before = self.kernel.number("launches").value
        for values, code, text in cases:
            with self.subTest(text=text):
                self.assertEqual(self.kernel.launch(values), code)
                found, message = self.kernel.check(values)
                self.assertEqual(found, code)
                self.assertIn(text, message)
                self.assertEqual(self.kernel.workspace_bytes(values), -code)
        self.assertEqual(self.kernel.number("launches").value, before)

    def test_driver(self):
        self.kernel.number("fails").value = 1
        self.assertEqual(self.kernel.launch(self.values()), LAUNCH)
        self.kernel.number("fails").value = 0
        self.assertEqual(self.kernel.workspace_bytes(self.values()), 0)
        prepare = getattr(self.kernel.loaded, "gqa_causal_prepare")
        self.assertEqual((prepare(0), prepare(1)), (OK, DEVICE))

    def test_shown(self):
        """What stands in the workspace is compared with tolerances."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            Launcher(directory, shown_cases.SPEC).number("count").value = 0
            base = os.path.join(directory, "kernel")
            with open(base + ".json", encoding="utf-8") as file:
                shown_cases.check(self, base + ".so", json.load(file)["programs"][0])

    def test_several(self):
        """A launch behind another of the call may overlap with its end; the first one may not."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            kernel = Launcher(directory, TWO)
            kernel.number("count").value = 0
            for n, m, launched, overlap in ((5, 7, 2, 0b01), (0, 7, 2, 0b01), (5, 0, 2, 0b01), (0, 0, 1, 0)):
                kernel.number("launches").value = kernel.number("overlaps").value = 0
                values = tensors(x=((n,), "f32"), y=((m,), "f32"), a=((), "f32"), b=((m,), "f32"))
                self.assertEqual(kernel.launch(values), OK)
                self.assertEqual((kernel.number("launches").value, kernel.number("overlaps").value), (launched, overlap))

    def test_nothing_is_launched(self):
        """A tensor map or a grid of a later launch is refused before the first launch."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            kernel = Launcher(directory, mt.example("backward"))
            kernel.number("count").value = 0

            def values(B, H, N, M):
                keys = {name: ((B, H, M, 128), "bf16") for name in ("K", "V", "dK", "dV")}
                rows = {name: ((B, H, N, 128), "bf16") for name in ("Q", "O", "dO", "dQ")}
                return {**tensors(**keys, **rows, lse=((B, H, N), "f32")), "scale": 1.0}

            def launched(values):
                kernel.number("launches").value = kernel.number("maps").value = 0
                return kernel.launch(values), kernel.number("launches").value

            few = values(2, 4, 64, 64)
            self.assertEqual(launched(few), (OK, 3))
            maps = kernel.number("maps").value
            self.assertGreaterEqual(maps, 10)
            for k in range(10):
                kernel.number("refused_map").value = k
                kernel.number("maps").value = 0
                code, message = kernel.check(few)
                self.assertEqual(code, LAUNCH)
                self.assertRegex(message, ": no tiles of this array$")
            for k in range(maps - 10, maps):  # the query for the workspace describes them too
                kernel.number("refused_map").value = k
                self.assertEqual(launched(few), (LAUNCH, 0))
            kernel.number("refused_map").value = -1
            space = np.zeros(1 << 20, np.uint8)
            pointer = (space.ctypes.data + 63) // 64 * 64
            entry = kernel.entry("", ctypes.c_int32)
            for at, code in ((pointer, OVERLAP), (pointer + (1 << 30), OK)):
                few["dQ"].data = at
                kernel.number("launches").value = 0
                self.assertEqual(entry(*kernel.arguments(few), ctypes.c_void_p(pointer), ctypes.c_size_t(1 << 19), None), code)
                self.assertEqual(kernel.number("launches").value, 0 if code else 3)
            many = values(1, 4, 16, 64)
            for k, name in enumerate(("K", "V", "dK", "dV", "Q", "O", "dO", "dQ", "lse")):
                shape = (1, 1 << 15, 1 << 23 if k < 4 else 16, 128)[:len(many[name].array_shape)]
                many[name].shape, many[name].data = mt.int64s(shape), 1 << 48 + k
            self.assertEqual(launched(many), (OVERFLOW, 0))
            self.assertEqual(kernel.check(many), (OVERFLOW, "a grid has more than 2^31 - 1 blocks"))

    def test_what_is_not_needed(self):
        """Where too little is there for fewer bits to be tried, only what says so and the kernel as written start."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            kernel = Launcher(directory, TOLERANT, flags=("--spend=300",))
            kernel.number("count").value = 0
            conditions = [launch.get("needed_where") for launch in kernel.launch_facts]
            self.assertEqual(conditions.count(None), 3)
            self.assertTrue(all(c in (None, ["N > 299", "M > 299"]) for c in conditions), conditions)
            beside = [launch.get("beside", False) for launch in kernel.launch_facts]
            self.assertTrue(beside[-1] and conditions[-2] is not None and beside.count(True) > 1)
            # All but the first overlap with the launch before; one beside another does where that one has been launched.
            every = 2 ** (len(conditions) - 1) - 1
            for n, m, launched, overlap in ((299, 400, 3, 0b010), (400, 299, 3, 0b010), (300, 300, len(conditions), every)):
                kernel.number("launches").value = kernel.number("overlaps").value = 0
                values = tensors(x=((n, 16), "f32"), y=((m, 16), "f32"), v=((m, 16), "f32"), z=((n, 16), "f32"))
                self.assertEqual(kernel.launch(values), OK)
                self.assertEqual((kernel.number("launches").value, kernel.number("overlaps").value), (launched, overlap), (n, m))

    def test_no_blocks(self):
        """A kernel that a later one counts on to have waited is not launched where it has no blocks: then that one does not
        overlap."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            with open(os.path.join(mt.SOURCE_ROOT, "test", "Target", "skip.mlir"), encoding="utf-8") as file:
                text = file.read()
            for old, new in (('symbols = ["B", "N"]', 'symbols = ["B", "N", "M"]'), ('arg_names = ["x"]', 'arg_names = ["x", "z"]'),
                             ("%x: !moa.array<[B], f32>,", "%x: !moa.array<[B], f32>, %z: !moa.array<[M], f32>,"),
                             ('@roles blocks "B*N"', '@roles blocks "B*M"')):
                self.assertIn(old, text)
                text = text.replace(old, new)
            source, made = os.path.join(directory, "skip.mlir"), os.path.join(directory, "made.mlir")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            done = mt.tool("moa-opt", source, "-device-skip-unchosen", "-device-verify", "-o", made)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            kernel = Launcher(directory, made)
            kernel.number("count").value = 0
            self.assertEqual([launch.get("overlaps_behind") for launch in kernel.launch_facts], [None, None, None, 2])
            for m, launched, overlap in ((7, 4, 0b0111), (0, 3, 0b010)):
                kernel.number("launches").value = kernel.number("overlaps").value = 0
                values = tensors(x=((3,), "f32"), z=((m,), "f32"), y=((3, 5), "f32"))
                self.assertEqual(kernel.launch(values), OK)
                self.assertEqual((kernel.number("launches").value, kernel.number("overlaps").value), (launched, overlap), m)

    def test_scalars(self):
        """Scalars arrive in their own types, those of 16 bits rounded to nearest."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            kernel = Launcher(directory, MIXED)
            for number in (0.1, -3.3e-6, 1e-7, 65519.0, 65520.0, -1e9, 5.9e-8, 1.00048828125, 0.0):
                values = {**tensors(x=((5,), "f32"), y=((5,), "f32")), "a": number, "b": number,
                          "flag": True, "k": -7, "d": number}
                self.assertEqual(kernel.launch(values), OK)
                found = {p["name"]: data for p, data in kernel.passed() if p["kind"] == "scalar"}
                single = np.float32(number)
                with np.errstate(over="ignore"):
                    half = single.astype(np.float16)
                self.assertEqual(found["a"][:2], mt.to_bf16(np.array([single])).tobytes(), number)
                self.assertEqual(found["b"][:2], half.tobytes(), number)
                self.assertEqual((found["flag"][0], found["k"][0]), (1, 249))
                self.assertEqual(struct.unpack_from("d", found["d"])[0], number)


if __name__ == "__main__":
    unittest.main(verbosity=2)
