# REQUIRES: moa-python
# RUN: %moa_python %s
"""Kernels called from Python on the CPU, against references written in NumPy in float64."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import DOUBLE, EXAMPLES, MIXED, Case, Lender, attention, normal, np, softmax  # noqa: E402

import moa  # noqa: E402

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class Sdpa(Case):

    @classmethod
    def setUpClass(cls):
        cls.kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f32")

    def arguments(self, b=2, h=3, n=20, m=30):
        return [normal(b, h, rows, 16, seed=s) for s, rows in enumerate((n, m, m))]

    def test_positions(self):
        q, k, v = self.arguments()
        result = self.kernel(q, k, v, 0.25)
        self.assertIs(type(result), np.ndarray)
        self.assertEqual(result.dtype, np.float32)
        self.assertClose(result, attention(q, k, v, 0.25))

    def test_names(self):
        q, k, v = self.arguments()
        self.assertClose(self.kernel(scale=0.25, V=v, K=k, Q=q), attention(q, k, v, 0.25))
        self.assertClose(self.kernel(q, k, scale=0.25, V=v), attention(q, k, v, 0.25))

    def test_sizes(self):
        for sizes in ((1, 1, 1, 1), (1, 2, 7, 3), (3, 1, 130, 65)):
            with self.subTest(sizes=sizes):
                q, k, v = self.arguments(*sizes)
                self.assertClose(self.kernel(q, k, v, 0.25), attention(q, k, v, 0.25))

    def test_scalars(self):
        q, k, v = self.arguments()
        for scale in (1, True, np.float32(1), np.float64(1), np.int64(1), np.array(1.0), np.array(1, np.int8)):
            with self.subTest(kind=type(scale)):
                self.assertClose(self.kernel(q, k, v, scale), attention(q, k, v, 1))

    def test_views(self):
        base = normal(2, 20, 3, 32)
        q = base.transpose(0, 2, 1, 3)[..., ::2]
        k = normal(2, 3, 60, 16, seed=1)[:, :, ::2]
        v = np.broadcast_to(normal(1, 1, 30, 16, seed=2), (2, 3, 30, 16))
        want = attention(q, k, v, 0.25)
        self.assertClose(self.kernel(q, k, v, 0.25), want)
        whole = np.zeros((2, 20, 3, 32), np.float32)
        out = whole.transpose(0, 2, 1, 3)[..., 1::2]
        self.assertIs(self.kernel(q, k, v, 0.25, out=out), out)
        self.assertClose(out, want)
        self.assertTrue((whole[..., ::2] == 0).all())

    def test_strides_without_meaning(self):
        q, k, v = self.arguments(1, 1, 1, 4)
        odd = np.lib.stride_tricks.as_strided(q, q.shape, (-8, 12345, -4, 4))
        self.assertClose(self.kernel(odd, k, v, 0.25), attention(q, k, v, 0.25))

    def test_read_only(self):
        given = self.arguments()
        for array in given:
            array.flags.writeable = False
        self.assertClose(self.kernel(*given, 0.25), attention(*given, 0.25))
        frozen = np.frombuffer(given[0].tobytes(), np.float32).reshape(given[0].shape)
        self.assertClose(self.kernel(frozen, *given[1:], 0.25), attention(*given, 0.25))

    def test_empty(self):
        q, k, v = self.arguments(n=0)
        self.assertEqual(self.kernel(q, k, v, 0.25).shape, (2, 3, 0, 16))
        q, k, v = self.arguments(b=0)
        self.assertEqual(self.kernel(q, k, v, 0.25).shape, (0, 3, 20, 16))
        q, k, v = self.arguments(m=0)
        self.assertEqual(self.kernel(q, k, v, 0.25).shape, q.shape)

    def test_out(self):
        q, k, v = self.arguments()
        want = attention(q, k, v, 0.25)
        for kind in (lambda out: out, lambda out: (out,), lambda out: [out]):
            out = np.full_like(q, np.nan)
            self.assertIs(self.kernel(q, k, v, 0.25, out=kind(out)), out)
            self.assertClose(out, want)
        self.assertClose(self.kernel(q, k, v, 0.25, out=None), want)

    def test_workspace(self):
        q, k, v = self.arguments()
        size = self.kernel.workspace_bytes(q, k, v, 0.25)
        self.assertIsInstance(size, int)
        result = self.kernel(q, k, v, 0.25, workspace=np.empty(size, np.uint8))
        self.assertClose(result, attention(q, k, v, 0.25))

    def test_dlpack(self):
        q, k, v = self.arguments()
        for versioned in (False, True):
            given = [Lender(array, versioned) for array in (q, k, v)]
            result = self.kernel(*given, 0.25)
            self.assertIs(type(result), np.ndarray)
            self.assertClose(result, attention(q, k, v, 0.25))
        out = np.empty_like(q)
        self.kernel(q, k, v, 0.25, out=Lender(out))
        self.assertClose(out, attention(q, k, v, 0.25))

    def test_subclass(self):
        class Own(np.ndarray):
            pass

        q, k, v = (array.view(Own) for array in self.arguments())
        self.assertClose(self.kernel(q, k, v, 0.25), attention(*self.arguments(), 0.25))

    def test_check(self):
        q, k, v = self.arguments()
        self.assertIsNone(self.kernel.check(q, k, v, 0.25))
        self.assertEqual(self.kernel.result_shapes(q, k, v, 0.25), (q.shape,))


class ElementTypes(Case):

    def test_f64(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T=np.float64)
        given = [normal(1, 2, 9, 16, seed=s, dtype=np.float64) for s in range(3)]
        result = kernel(*given, 0.25)
        self.assertEqual(result.dtype, np.float64)
        self.assertClose(result, attention(*given, 0.25), 1e-6)

    def test_f16(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f16")
        given = [normal(1, 2, 9, 16, seed=s, dtype=np.float16) for s in range(3)]
        result = kernel(*given, 0.25)
        self.assertEqual(result.dtype, np.float16)
        self.assertClose(result, attention(*given, 0.25), 2e-3)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_bf16(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T=ml_dtypes.bfloat16)
        given = [normal(1, 2, 9, 16, seed=s).astype(ml_dtypes.bfloat16) for s in range(3)]
        result = kernel(*given, 0.25)
        self.assertEqual(result.dtype, ml_dtypes.bfloat16)
        self.assertClose(result, attention(*given, 0.25), 2e-2)

    def test_integers(self):
        for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"):
            with self.subTest(type=name):
                kind = np.dtype(name[0] + str(int(name[1:]) // 8))
                x = np.array([0, 1, 2, 63], kind)
                result = moa.compile(DOUBLE, T=name)(x)
                self.assertEqual(result.dtype, kind)
                self.assertTrue((result == 2 * x).all())


class Gqa(Case):

    def test_values(self):
        kernel = moa.compile(EXAMPLES / "gqa_causal.moa", T="f32", D=8)
        q, k, v = (normal(2, heads, rows, 8, seed=s) for s, (heads, rows) in enumerate(((4, 9), (2, 12), (2, 12))))
        result = kernel(q, k, v, 0.3)
        self.assertEqual(result._fields, ("O", "lse"))
        wide = [np.repeat(array, 2, axis=1).astype(float) for array in (k, v)]
        scores = np.einsum("bhnd,bhmd->bhnm", q, wide[0]) * 0.3
        seen = np.arange(12) <= np.arange(9)[:, None] + 3
        scores = np.where(seen, scores, -np.inf)
        self.assertClose(result.O, softmax(scores) @ wide[1])
        self.assertClose(result.lse, np.log(np.exp(scores).sum(axis=-1)))
        out, lse = np.empty_like(q), np.empty((2, 4, 9), np.float32)
        given = kernel(q, k, v, 0.3, out=(out, lse))
        self.assertTrue(given.O is out and given.lse is lse)
        self.assertTrue((out == result[0]).all() and (lse == result[1]).all())
        partly = kernel(q, k, v, 0.3, out=[None, lse])
        self.assertTrue(partly[1] is lse and (partly[0] == out).all())


class Mixed(Case):

    @classmethod
    def setUpClass(cls):
        cls.kernel = moa.compile(MIXED)

    def run_mixed(self, flag=True, k=-128, w=65535, big=2**63 - 100000, a=1 + 2**-9, h=0.1, d=0.1):
        x, keep = normal(6), np.array([True, False] * 3)
        return x, keep, self.kernel(x, keep, flag, k, w, big, a, h, d)

    def test_values(self):
        x, keep, (y, z, r, s) = self.run_mixed()
        self.assertTrue((y == np.where(keep, x, np.float32(1))).all())  # a is rounded to bf16
        self.assertTrue((z == 2**63 - 100000 - 128 + 65535).all())
        self.assertTrue((r == 0.1).all())
        self.assertTrue((s == np.float32(np.float16(0.1))).all())
        x, keep, (y, z, r, s) = self.run_mixed(flag=0, k=True, w=0, big=-2**63, a=2, h=1, d=3)
        self.assertTrue((y == np.where(keep, 2 * x, np.float32(2))).all())
        self.assertTrue((z == -2**63 + 1).all() and (r == 3).all() and (s == 1).all())

    def test_scalars_of_numpy(self):
        x, keep, (y, z, r, s) = self.run_mixed(flag=np.False_, k=np.int8(-3), w=np.array(7), big=np.uint32(9), d=np.float16(1))
        self.assertTrue((y == np.where(keep, 2 * x, np.float32(1))).all() and (z == 13).all() and (r == 1).all())
        x, keep, (y, *_) = self.run_mixed(flag=np.array(True))
        self.assertTrue((y == np.where(keep, x, np.float32(1))).all())

    def test_scalars_out_of_range(self):
        for changes, kind, message in (
                (dict(k=128), moa.ArgumentError, "k: expects i8, an integer from -128 to 127, but got 128"),
                (dict(w=-1), moa.ArgumentError, "w: expects u16, an integer from 0 to 65535, but got -1"),
                (dict(flag=2), moa.ArgumentError, "flag: expects bool, an integer from 0 to 1, but got 2"),
                (dict(big=2**63), moa.ArgumentError, "big: expects i64, an integer from -9223372036854775808 to "
                 "9223372036854775807, but got 9223372036854775808"),
                (dict(k=1.0), moa.ArgumentTypeError, "k: expects an integer (i8), but got float"),
                (dict(flag=1.0), moa.ArgumentTypeError, "flag: expects a bool (bool), but got float"),
                (dict(d="1"), moa.ArgumentTypeError, "d: expects a number (f64), but got str"),
                (dict(d=1j), moa.ArgumentTypeError, "d: expects a number (f64), but got complex"),
                (dict(d=None), moa.ArgumentTypeError, "d: expects a number (f64), but got NoneType"),
                (dict(d=np.ones(1)), moa.ArgumentTypeError,
                 "d: expects a number (f64), but got an array with 1 axes")):
            with self.subTest(**changes):
                self.assertRefused(kind, message, self.run_mixed, **changes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
