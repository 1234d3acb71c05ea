# REQUIRES: moa-python
# RUN: %moa_python %s
"""Kernels for CUDA called from Python, beside a stand-in for the driver: what is launched, and what is refused."""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import DOUBLE, SOURCE, Case, np  # noqa: E402

import moa  # noqa: E402

DRIVER = SOURCE / "test" / "Runtime" / "Inputs" / "driver.c"
NAMED = "kernel named[N](x : f32[N], a : f32) -> (y : f32[N], z : f32[N]) { y = [i < N] a * x[i]  z = [i < N] x[i] + x[i] }\n"
# The second nest reads the first one's result, which is an array of the workspace.
CHAIN = """kernel chain[N, M](x : f32[N, M]) -> y : f32[M]
{
  s = [i < N] +/ x[i]
  y = [j < M] +/ [i < N] s[i] * x[i, j]
}
"""


class Elsewhere:
    """A NumPy array that says that it is in the memory of a GPU."""

    class Managed(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                    ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, array, device=0, kind=2):
        self.array, self.shape = array, (ctypes.c_int64 * array.ndim)(*array.shape)
        code = {"i": 0, "u": 1, "f": 2}[array.dtype.kind]
        self.managed = self.Managed(array.ctypes.data, kind, device, array.ndim, code, 8 * array.itemsize, 1,
                                    ctypes.addressof(self.shape), None, 0, None, None)

    def __dlpack_device__(self):
        return self.managed.device_type, self.managed.device

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


class Missing(Case):
    """These run before the driver is there."""

    def test_driver(self):
        os.environ["MOA_LIBCUDA"] = "/nonexistent/libcuda.so.1"
        kernel = moa.compile(NAMED, "cuda")
        x = np.zeros(5, np.float32)
        for array in (x, Elsewhere(x)):
            with self.assertRaisesRegex(moa.DeviceError, "^there is no CUDA driver .*; install the NVIDIA driver") as caught:
                kernel(array, 1.0)
            self.assertEqual(caught.exception.code, 8)

    def test_forms(self):
        kernel = moa.compile(NAMED, target="cuda")
        self.assertEqual(kernel.target, "cuda")
        self.assertIn(".visible .entry", kernel.source("ptx"))
        self.assertIn("named_check", kernel.source("launcher"))
        self.assertEqual(kernel.manifest["target"], "sm_90a")
        self.assertRegex(repr(kernel), "target cuda>$")


class WithDriver(Case):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        path = os.path.join(cls.directory.name, "libcuda.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", str(DRIVER), "-o", path], check=True)
        os.environ["MOA_LIBCUDA"] = path
        cls.driver = ctypes.CDLL(path)
        cls.kernel, cls.chain = moa.compile(NAMED, "cuda"), moa.compile(CHAIN, "cuda")
        for launch in (launch for kernel in (cls.kernel, cls.chain) for program in kernel.manifest["programs"]
                       for launch in program["launches"]):
            cls.driver.set_kernel(launch["kernel"].encode(), 0, None)
        # An older driver is refused, and may be replaced.
        x = Elsewhere(np.zeros(5, np.float32))
        version = ctypes.c_int.in_dll(cls.driver, "version")
        version.value = 12000
        with cls().assertRaisesRegex(moa.DeviceError, "^the CUDA driver is one of CUDA 12.0, but these kernels need"):
            cls.kernel(x, 1.0, out=(x, x))
        version.value = 13000

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def runTest(self):
        pass

    def setUp(self):
        self.driver.clear_record()
        self.arrays = [Elsewhere(np.zeros(5, np.float32)) for _ in range(3)]

    def launched(self):
        record = (ctypes.c_char * (1 << 20)).in_dll(self.driver, "record").value.decode()
        return [line for line in record.splitlines() if " stream " in line]

    def test_launch(self):
        x, *out = self.arrays
        result = self.kernel(x, 2.0, out=out)
        self.assertTrue(result.y is out[0] and result.z is out[1])
        self.assertEqual(len(self.launched()), len(self.kernel.manifest["programs"][0]["launches"]))
        self.assertIn(" stream (nil) ", self.launched()[0])

    def test_streams(self):
        class OfTorch:
            cuda_stream = 0x1230

        class OfCupy:
            ptr = 0x1240

        class OfAnother:

            def __cuda_stream__(self):
                return 0, 0x1260

        x, *out = self.arrays
        for stream, text in ((OfTorch, "0x1230"), (OfCupy, "0x1240"), (0x1250, "0x1250"), (OfAnother(), "0x1260"),
                             (0, "(nil)"), (None, "(nil)")):
            self.driver.clear_record()
            self.kernel(x, 2.0, out=out, stream=stream)
            self.assertIn(f" stream {text} ", self.launched()[0])
        self.assertRefused(moa.ArgumentTypeError, "stream: expects a stream of PyTorch or CuPy, or its handle, but got str",
                           self.kernel, x, 2.0, out=out, stream="0")

    def test_results(self):
        self.assertRefused(moa.ArgumentError, "the library of the first array allocates no memory for this package; give out=",
                           self.kernel, self.arrays[0], 2.0)

    def test_workspace(self):
        x, y = Elsewhere(np.zeros((8, 64), np.float32)), Elsewhere(np.zeros(64, np.float32))
        size = self.chain.workspace_bytes(x, out=y)
        if not size:
            self.skipTest("the kernel needs no workspace")
        self.assertRefused(moa.ArgumentError, "the library of the first array allocates no memory for this package; give "
                           f"workspace=, an array of {size} elements of u8 on CUDA device 0", self.chain, x, out=y)
        memory = np.zeros(size + 64, np.uint8)
        begin = -memory.ctypes.data % 64
        self.chain(x, out=y, workspace=Elsewhere(memory[begin:begin + size]))
        self.assertTrue(self.launched())

    def test_devices(self):
        x, y, z = self.arrays
        other = Elsewhere(np.zeros(5, np.float32), device=1)
        self.assertRefused(moa.DeviceError, "y: is on CUDA device 1, but an array before it on device 0", self.kernel, x, 1.0,
                           out=(other, z))
        self.assertRefused(moa.DeviceError, "z: is in the memory of the CPU, but the kernel runs on a CUDA device; copy it "
                           "there, or compile with target=\"cpu\"", self.kernel, x, 1.0, out=(y, z.array))
        managed = Elsewhere(np.zeros(5, np.float32), kind=13)
        self.kernel(managed, 1.0, out=(y, z))
        with self.assertRaisesRegex(moa.DeviceError, "is on device 1, but device 0 is current"):
            self.kernel(other, 1.0, out=[Elsewhere(np.zeros(5, np.float32), device=1) for _ in range(2)])
        kernel = moa.compile(DOUBLE)
        self.assertRefused(moa.DeviceError, "x: is on a device of DLPack type 2, but the kernel runs on the CPU; copy it to "
                           "the CPU, or compile with target=\"cuda\"", kernel, Elsewhere(np.zeros(5, np.int32)))

    def test_refused_launch(self):
        x, *out = self.arrays
        self.kernel(x, 1.0, out=out)
        refused = ctypes.c_int.in_dll(self.driver, "refused_call")
        for number in range(20):
            self.driver.clear_record()
            refused.value = number
            try:
                self.kernel(x, 1.0, out=out)
            except moa.DeviceError as error:
                if error.code == 14:
                    break
            finally:
                refused.value = -1
        else:
            self.fail("no launch was refused")

    def test_loads(self):
        """Loading happens once."""
        x, *out = self.arrays
        self.kernel(x, 1.0, out=out)
        loads = ctypes.c_int.in_dll(self.driver, "loads").value
        self.kernel(x, 1.0, out=out)
        self.assertEqual(ctypes.c_int.in_dll(self.driver, "loads").value, loads)


if __name__ == "__main__":
    unittest.main(verbosity=2)
