# REQUIRES: moa-python
# RUN: %moa_python %s
"""What compilations and calls from Python refuse, with the texts. Nothing is written by a refused call."""
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import DOUBLE, EXAMPLES, Case, Lender, normal, np  # noqa: E402

import moa  # noqa: E402

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

SUMS = "kernel sums[N, M](x : f32[N, M]) -> y : f32[N] { y = +/ x }"
SIGNATURE = ("sdpa(Q: f32[B, H, N, 16], K: f32[B, H, M, 16], V: f32[B, H, M, 16], scale: f32) -> O: f32[B, H, N, 16]")


class Compilation(Case):

    def test_diagnostic(self):
        with self.assertRaises(moa.CompileError) as caught:
            moa.compile("kernel k[N](x : f32[N]) -> y : f32[N] { y = z }")
        error = caught.exception
        self.assertRegex(str(error), r"^input\.moa:1:45: error: .*'z'.*\n  kernel k.*\n +\^$")
        (found,) = error.diagnostics
        self.assertEqual((found.severity, found.file, found.line, found.column), ("error", "input.moa", 1, 45))
        self.assertIn("'z'", found.message)

    def test_file(self):
        with self.assertRaises(FileNotFoundError):
            moa.compile("missing.moa")
        with self.assertRaisesRegex(moa.CompileError, r"^here\.moa:1:1: error: "):
            moa.compile("nonsense", options=moa.Options(name="here.moa"))

    def test_settings(self):
        with self.assertRaisesRegex(moa.CompileError, "'E'"):
            moa.compile(EXAMPLES / "sdpa.moa", E=3)
        with self.assertRaisesRegex(moa.CompileError, r"'D'.*1\.5"):
            moa.compile(EXAMPLES / "sdpa.moa", D=1.5)
        for wrong in (None, True):
            self.assertRefused(TypeError, f"the setting D must be a number, a text or an element type, not {wrong}",
                               moa.compile, EXAMPLES / "sdpa.moa", D=wrong)

    def test_arguments(self):
        self.assertRefused(moa.ArgumentError, "there is no target 'tpu'; there are cpu, cuda", moa.compile, DOUBLE, "tpu")
        self.assertRefused(TypeError, "expects a specification as a text, or the path of its file, but got int",
                           moa.compile, 3)
        self.assertRefused(TypeError, "options must be a moa.Options, not dict", moa.compile, DOUBLE, options={})
        self.assertRefused(moa.CompileError, "input.moa: the specification has a zero byte", moa.compile, "\0")

    def test_kernels(self):
        two = DOUBLE + DOUBLE.replace("twice", "other")
        self.assertRefused(moa.CompileError, "the specification has several kernels; choose one by kernel=: twice, other",
                           moa.compile, two)
        self.assertRefused(moa.CompileError, "there is no kernel 'third'; the specification has twice, other",
                           moa.compile, two, kernel="third")
        self.assertEqual(moa.compile(two, kernel="other").name, "other")

    def test_options(self):
        self.assertRefused(moa.CompileError, "the option optimization is out of range",
                           moa.compile, DOUBLE, options=moa.Options(optimization=9))
        with self.assertRaises(moa.CompileError):
            moa.compile(DOUBLE, options=moa.Options(schedule="nonsense\n"))
        with self.assertRaises(moa.CompileError):
            moa.compile(DOUBLE, options=moa.Options(within={"z": 1}))

    def test_warning(self):
        text = "kernel k[N](x : f64[N]) -> y : f64[N] within 1e-3 { y = softmax(x) }"
        for _ in range(2):  # the second time from the cache
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                moa.compile(text, options=moa.Options(name="warned.moa"))
            self.assertEqual({found.category for found in caught}, {moa.CompileWarning})
            self.assertEqual(caught[0].filename, __file__)
            texts = "".join(str(found.message) + "\n" for found in caught)
            self.assertRegex(texts, r"(?m)^warned\.moa:1:\d+: no bound shows that 'y' is within 1e-3")
            self.assertEqual(caught[0].message.diagnostic.severity, "warning")


class Calls(Case):

    @classmethod
    def setUpClass(cls):
        cls.kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f32")

    def setUp(self):
        self.q = normal(1, 2, 4, 16)
        self.out = np.full_like(self.q, 7)

    def assertCallRefused(self, kind, message, *arguments, **named):
        self.assertRefused(kind, message, self.kernel, *arguments, **named)
        self.assertTrue((self.out == 7).all())

    def test_number(self):
        q = self.q
        for given, named, message in (
                ((), {}, "misses the argument 'Q'"), ((q, q, q), {}, "misses the argument 'scale'"),
                ((q, q, q, 1, q), {}, "takes 4 arguments, but 5 were given"),
                ((q, q, q, 1), dict(scale=1), "got multiple values for argument 'scale'"),
                ((q, q, q), dict(size=1), "got an unexpected keyword argument 'size'"),
                ((q, q, q), dict(O=q), "got an unexpected keyword argument 'O'")):
            with self.subTest(message):
                self.assertCallRefused(TypeError, f"sdpa() {message}; it is {SIGNATURE}", *given, **named)

    def test_kinds(self):
        q = self.q
        for given, name in ((q.tolist(), "list"), (1.0, "float"), (None, "NoneType"), ("Q", "str"),
                            (np.float32(1), "float32")):
            with self.subTest(name):
                self.assertCallRefused(moa.ArgumentTypeError,
                                       f"Q: expects an array, f32[B, H, N, 16], but got {name}", given, q, q, 1, out=self.out)

    def test_element_types(self):
        q = self.q
        given = [(q.astype(kind), kind) for kind in ("float64", "int32", "bool", "complex64", "float16", "uint16")]
        given += [(q.astype(">f4"), None), (Lender(q.astype("f8")), "float64"), (q.astype(object), "object")]
        if ml_dtypes:
            given += [(q.astype(getattr(ml_dtypes, kind)), kind) for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
        for array, kind in given:
            with self.subTest(kind):
                message = f"Q: expects f32[B, H, N, 16], but got an array of {kind}" if kind else \
                    "Q: the bytes of elements are not in the order of this machine"
                self.assertCallRefused(moa.ArgumentTypeError, message, array, q, q, 1, out=self.out)

    def test_shapes(self):
        q = self.q
        self.assertCallRefused(moa.ArgumentError, "Q: expects f32[B, H, N, 16], rank 4, but got rank 3",
                               q[0], q, q, 1, out=self.out)
        with self.assertRaisesRegex(moa.ArgumentError, r"^K: expects f32\[B, H, M, 16\], .* but got 8( |$)") as caught:
            self.kernel(q, q[..., :8], q, 1, out=self.out)
        self.assertEqual(caught.exception.code, 4)
        with self.assertRaisesRegex(moa.ArgumentError, r"^V: .* but got 3( |$)"):
            self.kernel(q, q, q[:, :, :3], 1)
        with self.assertRaisesRegex(moa.ArgumentError, r"^O: .* but got 5( |$)"):
            self.kernel(q, q, q, 1, out=normal(1, 2, 5, 16))
        self.assertTrue((self.out == 7).all())

    def test_masked_arrays(self):
        array = np.ma.masked_array(np.zeros(3, np.int32), [True, False, False])
        self.assertRefused(moa.ArgumentTypeError, "masked arrays of NumPy are not taken, because kernels do not read their "
                           "masks; give array.filled(…), or the mask as an input", moa.compile(DOUBLE), array)

    def test_strides(self):
        q = self.q
        with self.assertRaisesRegex(moa.ArgumentError, "^Q: stride -16 on axis 2 is negative"):
            self.kernel(q[:, :, ::-1], q, q, 1)
        wide = np.zeros(4 * 40, np.uint8)[1:]
        moved = np.ndarray((1, 1, 1, 16), np.float32, wide)
        with self.assertRaisesRegex(moa.ArgumentError, "^Q: .* is not a multiple of the element size 4|^Q: address"):
            self.kernel(moved, q[:, :1, :1], q[:, :1, :1], 1)
        mixed = np.zeros((1, 2, 4, 16), [("a", np.float32), ("b", np.uint8)])["a"]
        self.assertCallRefused(moa.ArgumentError, "Q: the stride of 5 bytes on axis 3 is not a multiple of the "
                               "element size 4", mixed, q, q, 1, out=self.out)

    def test_out(self):
        q = self.q
        frozen = self.out.view()
        frozen.flags.writeable = False
        read_only = "O: the result cannot be written, because its array is read-only"
        self.assertCallRefused(moa.ArgumentError, read_only, q, q, q, 1, out=frozen)
        self.assertCallRefused(moa.ArgumentError, "out: expects 1 arrays, but got 2", q, q, q, 1, out=(self.out, self.out))
        self.assertCallRefused(moa.ArgumentTypeError, "O: expects f32[B, H, N, 16], but got an array of float64",
                               q, q, q, 1, out=self.out.astype(float))
        with self.assertRaisesRegex(moa.ArgumentError, "^output O .* overlaps Q"):
            self.kernel(q, q, q, 1, out=q)
        with self.assertRaisesRegex(moa.ArgumentError, "^O: stride 0 on axis 2 makes elements"):
            self.kernel(q, q, q, 1, out=np.lib.stride_tricks.as_strided(self.out, q.shape, (512, 256, 0, 4)))
        lender = Lender(self.out, versioned=True)
        lender.array = frozen
        with self.assertRaises((moa.ArgumentError, moa.ArgumentTypeError)):
            self.kernel(q, q, q, 1, out=lender)
        several = moa.compile(EXAMPLES / "gqa_causal.moa", T="f32", D=16)
        self.assertRefused(moa.ArgumentTypeError, "out: expects a tuple or a list of 2 arrays", several, q, q, q, 1,
                           out=self.out)

    def test_constraint(self):
        kernel = moa.compile(EXAMPLES / "gqa_causal.moa", T="f32", D=8)
        q, k = normal(1, 4, 2, 8), normal(1, 3, 2, 8)
        with self.assertRaisesRegex(moa.ArgumentError, "^requires H % G == 0, but ") as caught:
            kernel(q, k, k, 1.0)
        self.assertEqual(caught.exception.code, 5)

    def test_workspace(self):
        kernel = moa.compile(SUMS)
        x = normal(8, 64)
        size = kernel.workspace_bytes(x)
        self.assertRefused(moa.ArgumentTypeError, "workspace: expects u8[bytes], but got an array of float32", kernel, x,
                           workspace=np.empty(size, np.float32))
        self.assertRefused(moa.ArgumentError, "workspace: expects adjacent elements that can be written", kernel, x,
                           workspace=np.empty(2 * size + 8, np.uint8)[::2])
        if size:
            with self.assertRaisesRegex(moa.ArgumentError, "workspace"):
                kernel(x, workspace=np.empty(size // 2, np.uint8))

    def test_device(self):
        q = self.q
        with self.assertRaisesRegex(moa.ArgumentTypeError, "^Q: __dlpack__ refuses the array: ") as caught:
            self.kernel(Lender(q.astype(">f4")), q, q, 1)
        self.assertIsNotNone(caught.exception.__cause__)

    def test_bases(self):
        for kind, base in ((moa.CompileError, Exception), (moa.ArgumentError, ValueError),
                           (moa.ArgumentTypeError, TypeError), (moa.DeviceError, RuntimeError)):
            self.assertTrue(issubclass(kind, base) and issubclass(kind, moa.Error))

    def test_tolerance(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f32", options=moa.Options(within={"O": 1e-3}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel(self.q, self.q, self.q, 0.25)
        self.assertEqual(kernel.shown(self.q, self.q, self.q, 0.25), "")
        large = self.q * np.float32(1e4)
        with self.assertWarnsRegex(moa.ToleranceWarning, "^sdpa: O is not shown to be within ") as caught:
            kernel(large, large, large, 0.25)
        self.assertEqual(caught.filename, __file__)
        self.assertRegex(kernel.shown(large, large, large, 0.25), "^O is not shown to be within ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
