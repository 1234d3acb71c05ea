# REQUIRES: tvm-ffi
# RUN: %venv_python %s
"""Objects with --binding=tvm-ffi, loaded by tvm-ffi and called with NumPy and PyTorch arrays.

References are written in NumPy, in float64.
"""
import ctypes
import os
import subprocess
import tempfile
import unittest

import numpy as np
import tvm_ffi

import moa_testing as mt

try:
    import torch
except ImportError:
    torch = None

MIXED = """kernel mixed[N](x : f32[N], keep : bool[N], flag : bool, k : i8, w : u16, big : i64, a : bf16, h : f16, d : f64)
    -> (y : f32[N], z : i64[N], r : f64[N], s : f32[N])
{
  y = [i < N] select(keep[i], select(flag, x[i], 2.0 * x[i]), a)
  z = [i < N] big + k + w
  r = [i < N] d
  s = [i < N] h
}
"""


def load(directory, spec, *flags):
    base = os.path.join(directory, "kernel")
    made = mt.tool("moa-codegen", spec, *flags, "--target=cpu", "--binding=tvm-ffi", "-o", base + ".o")
    assert made.returncode == 0, made.stderr
    libraries = os.path.dirname(mt.LIBOMP)
    subprocess.run([os.environ["CC"], "-shared", base + ".o", "-o", base + ".so", "-L" + libraries,
                    "-Wl,-rpath," + libraries, "-lomp", "-lm"], check=True, timeout=60)
    return tvm_ffi.load_module(base + ".so")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def call(module, name, *arguments):
    """Runs a kernel with a workspace of the size that it asks for."""
    size = getattr(module, name + "_workspace")(*arguments)
    code = getattr(module, name)(*arguments, np.empty(size, np.uint8))
    assert code == 0, code


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(q, k, v, scale):
    return softmax(np.einsum("bhnd,bhmd->bhnm", q.astype(float), k) * scale) @ v.astype(float)


class Elsewhere:
    """An array that says that it is in the memory of a GPU."""

    class Managed(ctypes.Structure):
        _fields_ = [("tensor", mt.DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, array):
        self.managed = self.Managed(mt.describe(array, "f32"), None, None)
        self.managed.tensor.device_type = 2

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


class Case(unittest.TestCase):
    spec, flags = None, ()

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        spec = cls.spec
        if "\n" in spec:
            spec = os.path.join(cls.directory.name, "spec.moa")
            with open(spec, "w", encoding="utf-8") as file:
                file.write(cls.spec)
        cls.module = load(cls.directory.name, spec, *cls.flags)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def assertClose(self, got, want, bound=2e-6):
        self.assertLess(mt.relative_error(got.astype(float), want), bound)

    def assertRefused(self, kind, message, function, *arguments):
        with self.assertRaises(kind) as caught:
            function(*arguments)
        self.assertIs(type(caught.exception), kind)
        self.assertEqual(str(caught.exception).split("\n")[0], message)


class Sdpa(Case):
    spec, flags = mt.example("sdpa"), ("--set", "T=f32", "--set", "D=16")

    def arguments(self, b=2, h=3, n=20, m=30):
        q, k, v = (normal(b, h, rows, 16, seed=s) for s, rows in enumerate((n, m, m)))
        return [q, k, v, 0.25, np.full_like(q, np.nan)]

    def test_values(self):
        given = self.arguments()
        call(self.module, "sdpa", *given)
        self.assertClose(given[4], attention(*given[:4]))

    def test_tensors_of_tvm_ffi(self):
        given = self.arguments()
        tensors = [tvm_ffi.from_dlpack(x) if isinstance(x, np.ndarray) else x for x in given]
        size = self.module.sdpa_workspace(*tensors)
        self.assertEqual(self.module.sdpa(*tensors, tvm_ffi.from_dlpack(np.empty(size, np.uint8))), 0)
        self.assertClose(given[4], attention(*given[:4]))

    def test_an_int_for_a_float(self):
        given = self.arguments()
        given[3] = 1
        call(self.module, "sdpa", *given)
        self.assertClose(given[4], attention(*given[:4]), 1e-5)

    def test_views(self):
        """Views that are not contiguous, and one index with any stride."""
        wide = [normal(20, 3, 40, 2, seed=s).transpose(3, 1, 0, 2)[..., ::2][..., :16] for s in range(3)]
        out = np.zeros((2, 3, 20, 32), np.float32)[..., ::2]
        call(self.module, "sdpa", *wide, 0.25, out)
        self.assertClose(out, attention(*wide, 0.25))
        one = [np.lib.stride_tricks.as_strided(normal(1, 1, 1, 16, seed=s), (1, 1, 1, 16), (-12, 4 << 40, 0, 4))
               for s in range(3)]
        out = np.zeros((1, 1, 1, 16), np.float32)
        call(self.module, "sdpa", *one, 0.25, out)
        self.assertClose(out, one[2].astype(float))

    def test_empty(self):
        given = self.arguments(n=0)
        call(self.module, "sdpa", *given)
        given = self.arguments(m=0)
        call(self.module, "sdpa", *given)
        self.assertTrue((given[4] == 0).all())

    def test_numbers_of_arguments(self):
        given, module = self.arguments(), self.module
        names = "(Q, K, V, scale, O)"
        self.assertRefused(TypeError, f"sdpa takes 5 arguments {names} and optionally a workspace, but got 0",
                           module.sdpa)
        self.assertRefused(TypeError, f"sdpa takes 5 arguments {names} and optionally a workspace, but got 7",
                           module.sdpa, *given, None, None)
        self.assertRefused(TypeError, f"sdpa_workspace takes 5 arguments {names}, but got 6",
                           module.sdpa_workspace, *given, None)

    def test_kinds_of_arguments(self):
        given, module = self.arguments(), self.module
        for value, what in ((3, "an int"), (None, "None"), (True, "a bool"), (0.5, "a float"), ("Q", "a str"),
                            ([], "another object"), (tvm_ffi.dtype("float32"), "a dtype"),
                            (tvm_ffi.device("cpu"), "a device")):
            self.assertRefused(TypeError, f"Q: expects a tensor, but argument 0 is {what}", module.sdpa, value,
                               *given[1:])
        self.assertRefused(TypeError, "scale: expects a float, but argument 3 is a tensor", module.sdpa, *given[:3],
                           given[0], given[4])
        self.assertRefused(TypeError, "scale: expects a float, but argument 3 is None", module.sdpa_workspace,
                           *given[:3], None, given[4])

    def test_checks(self):
        """The message is that of NAME_check."""
        given, module = self.arguments(), self.module
        q, k, v, scale, o = given
        for function in module.sdpa, module.sdpa_workspace:
            self.assertRefused(TypeError, "K: expects f32[B, H, M, 16], elements float32, but got float64 with 1 lanes "
                               "(DLPack code 2)", function, q, k.astype(float), v, scale, o)
            self.assertRefused(ValueError, "Q: expects f32[B, H, N, 16], rank 4, but got rank 3", function, q[0], k, v,
                               scale, o)
            self.assertRefused(ValueError, "K: expects f32[B, H, M, 16], so H = 3 on axis 1, but got 2 with B = 2, H = 3, "
                               "N = 20, M = 30", function, q, k[:, :2], v, scale, o)
            self.assertRefused(ValueError, "Q: stride -16 on axis 2 is negative", function, q[:, :, ::-1], k, v, scale, o)
            with self.assertRaisesRegex(ValueError, r"^output O \(7680 bytes at 0x.*\) overlaps Q \(7680 bytes"):
                function(q, k, v, scale, q)

    def test_another_device(self):
        given, module = self.arguments(), self.module
        elsewhere = Elsewhere(given[1])
        self.assertRefused(RuntimeError, "K: expects memory of the CPU (device type 1), but got device type 2", module.sdpa,
                           given[0], elsewhere, *given[2:])
        elsewhere = Elsewhere(given[0])
        elsewhere.managed.tensor.code, elsewhere.managed.tensor.bits, elsewhere.managed.tensor.ndim = 1, 8, 1
        elsewhere.managed.tensor.strides[0] = 1
        self.assertRefused(RuntimeError, "workspace: expects memory of device type 1, but got type 2", module.sdpa, *given,
                           elsewhere)

    def test_workspaces(self):
        given, module = self.arguments(), self.module
        size = module.sdpa_workspace(*given)
        self.assertGreater(size, 0)
        few = np.empty(size - 1, np.uint8)
        for workspace in (), (None,):
            self.assertRefused(ValueError, f"workspace: sdpa needs {size} bytes, but got 0 at (nil)", module.sdpa,
                               *given, *workspace)
        with self.assertRaisesRegex(ValueError, rf"^workspace: sdpa needs {size} bytes, but got 64 at 0x"):
            module.sdpa(*given, few[:64])
        self.assertRefused(TypeError, "workspace: expects a tensor or None, but argument 5 is an int", module.sdpa,
                           *given, size)
        self.assertRefused(TypeError, "workspace: expects elements of uint8, but got DLPack type code 2 of 32 bits, 1 "
                           "lanes", module.sdpa, *given, np.empty(size, np.float32))
        self.assertRefused(ValueError, "workspace: expects one axis, but got 2", module.sdpa,
                           *given, np.empty((size, 1), np.uint8))
        self.assertRefused(ValueError, "workspace: expects adjacent bytes, but got stride 2", module.sdpa,
                           *given, np.empty(2 * size, np.uint8)[::2])
        memory = np.zeros(size + given[4].nbytes, np.uint8)
        out = memory[:given[4].nbytes].view(np.float32).reshape(given[4].shape)
        self.assertRefused(ValueError, "workspace: overlaps an array of sdpa", module.sdpa, *given[:4], out, memory)
        self.assertTrue(np.isnan(given[4]).all(), "nothing is written")

    @unittest.skipUnless(torch, "PyTorch is missing: build/venv/bin/pip install torch")
    def test_torch(self):
        given = self.arguments()
        tensors = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in given]
        size = self.module.sdpa_workspace(*tensors)
        self.assertEqual(self.module.sdpa(*tensors, torch.empty(size, dtype=torch.uint8)), 0)
        self.assertClose(given[4], attention(*given[:4]))


class GqaCausal(Case):
    spec, flags = mt.example("gqa_causal"), ("--set", "T=f32", "--set", "D=8")

    def test_values(self):
        q, k, v = normal(2, 4, 12, 8), normal(2, 2, 9, 8, seed=1), normal(2, 2, 9, 8, seed=2)
        out, lse = np.empty_like(q), np.empty((2, 4, 12), np.float32)
        call(self.module, "gqa_causal", q, k, v, 0.3, out, lse)
        wide = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)
        scores = np.einsum("bhnd,bhmd->bhnm", q.astype(float), wide[0]) * np.float32(0.3)
        seen = np.arange(9)[None, :] <= np.arange(12)[:, None] - 3
        powers = np.where(seen, np.exp(scores), 0)
        sums = powers.sum(axis=-1)
        self.assertClose(out, powers / np.where(sums, sums, 1)[..., None] @ wide[1].astype(float))
        self.assertTrue((out[:, :, :3] == 0).all() and (lse[:, :, :3] == -np.inf).all())
        self.assertClose(lse[:, :, 3:], np.log(sums[:, :, 3:]))

    def test_constraint(self):
        q, k = normal(1, 4, 2, 8), normal(1, 3, 2, 8)
        out, lse = np.empty_like(q), np.empty((1, 4, 2), np.float32)
        with self.assertRaisesRegex(ValueError, "^requires H % G == 0, but H % G = 1 with "):
            self.module.gqa_causal(q, k, k, 1.0, out, lse)


class LayerNorm(Case):
    spec, flags = mt.example("layernorm_product"), ("--set", "D=24", "--set", "E=5")

    def test_values(self):
        x, gamma, beta, w = normal(7, 24), normal(24, seed=1), normal(24, seed=2), normal(24, 5, seed=3)
        y = np.empty((7, 5), np.float32)
        call(self.module, "layernorm_product", x, gamma, beta, w, 1e-5, y)
        c = x.astype(float) - x.astype(float).mean(axis=1, keepdims=True)
        norm = c / np.sqrt((c * c).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta
        self.assertClose(y, norm @ w.astype(float), 1e-5)


class Mixed(Case):
    spec = MIXED

    def run_mixed(self, flag=True, k=-128, w=65535, big=2**63 - 100000, a=1 + 2**-9, h=0.1, d=0.1):
        x, keep = normal(6), np.array([True, False] * 3)
        outs = [np.empty(6, t) for t in (np.float32, np.int64, np.float64, np.float32)]
        call(self.module, "mixed", x, keep, flag, k, w, big, a, h, d, *outs)
        return x, keep, outs

    def test_values(self):
        x, keep, (y, z, r, s) = self.run_mixed()
        self.assertTrue((y == np.where(keep, x, np.float32(1))).all())  # a is rounded to bf16
        self.assertTrue((z == 2**63 - 100000 - 128 + 65535).all())
        self.assertTrue((r == 0.1).all())
        self.assertTrue((s == np.float32(np.float16(0.1))).all())
        x, keep, (y, z, r, s) = self.run_mixed(flag=0, k=True, w=0, big=-2**63, a=2, h=1, d=3)
        self.assertTrue((y == np.where(keep, 2 * x, np.float32(2))).all())
        self.assertTrue((z == -2**63 + 1).all() and (r == 3).all() and (s == 1).all())

    def test_scalars(self):
        for changes, kind, message in (
                (dict(k=128), ValueError, "k: expects an int from -128 to 127, but argument 3 is 128"),
                (dict(k=-129), ValueError, "k: expects an int from -128 to 127, but argument 3 is -129"),
                (dict(w=-1), ValueError, "w: expects an int from 0 to 65535, but argument 4 is -1"),
                (dict(w=65536), ValueError, "w: expects an int from 0 to 65535, but argument 4 is 65536"),
                (dict(k=1.0), TypeError, "k: expects an int, but argument 3 is a float"),
                (dict(flag=2), ValueError, "flag: expects a bool or an int from 0 to 1, but argument 2 is 2"),
                (dict(flag=1.0), TypeError, "flag: expects a bool, but argument 2 is a float"),
                (dict(d="1"), TypeError, "d: expects a float, but argument 8 is a str"),
                (dict(big=2**63), TypeError, "big: expects an int, but argument 5 is an int of more than 64 bits")):
            with self.subTest(**changes):
                self.assertRefused(kind, message, lambda: self.run_mixed(**changes))


class Tolerance(Case):
    spec, flags = mt.example("sdpa"), ("--set", "T=f32", "--set", "D=16", "--within", "O=1e-3")

    def test_shown(self):
        q = normal(1, 2, 8, 16)
        out = np.empty_like(q)
        workspace = np.empty(self.module.sdpa_workspace(q, q, q, 0.25, out), np.uint8)
        arguments = q, q, q, 0.25, out, workspace
        self.assertEqual((self.module.sdpa(*arguments), self.module.sdpa_shown(*arguments)), (0, ""))
        q *= 1e4
        self.assertEqual(self.module.sdpa(*arguments), 15)
        self.assertRegex(self.module.sdpa_shown(*arguments), r"^O is not shown to be within 0?\.?[0-9e.-]+.*: ")
        self.assertRefused(TypeError, "sdpa_shown takes 5 arguments (Q, K, V, scale, O) and optionally a workspace, but "
                           "got 1", self.module.sdpa_shown, q)
        with self.assertRaisesRegex(ValueError, "^sdpa: the workspace is NULL"):
            self.module.sdpa_shown(*arguments[:5])


if __name__ == "__main__":
    unittest.main(verbosity=2)
