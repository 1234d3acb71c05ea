# RUN: %python %s
"""Sums of products of 8-bit integers on a CPU against NumPy's integers, equal in all bits, by whatever means the
processor has: dot products of four bytes where this one has them, f32, or integers one by one."""
import unittest

import numpy as np

import moa_testing as mt

# Processors by LLVM's names: this one, and what each x86 runs. The baseline's vectors have 128 bits.
PROCESSORS = (None, "x86-64")

EXACT = """kernel exact[H, G, N, M; D = 64](Q : i8[H, N, D], K : i8[G, M, D])
    -> (top : f32[H, N], least : i64[H, N], sum : i64[H, N], seen : i32[H, N])
  require H % G == 0
{
  Kh    = [h < H] K[h / (H/G)]
  A     = Q +.* transpose(Kh)
  S     = mask([_, i, j] j <= i + (M - N), A)
  top   = max/ f32(S)
  least = min/ A
  sum   = +/ A
  seen  = max/ S
}
"""
# Two kinds of states, and a carried one, with weights that are exact in f32.
CARRIED = """kernel carried[H, N, M; D = 64](Q : i8[H, N, D], K : i8[H, M, D], V : f32[H, M, 5])
    -> (top : f32[H, N], O : f32[H, N, 5])
{
  A   = f32(Q +.* transpose(K))
  top = max/ A
  O   = A +.* V
}
"""
# Keys in any order, strides of any axis.
GATHERED = """kernel gathered[N, M, P; D = 48](Q : i8[D, N], K : i8[P, D, 2], at : i32[M] in 0..P) -> top : f32[N]
{
  A   = [i < N, j < M] +/ [d < D] Q[d, i] * K[at[j], d, 1]
  top = max/ f32(A)
}
"""
# In f64 lanes are half as many.
WIDE = """kernel wide[N, M; D = 20](Q : i8[N, D], K : i8[M, D], bias : f64[M]) -> top : f64[N]
{
  A   = f64(Q +.* transpose(K))
  top = max/ ([i, j] A[i, j] + bias[j])
}
"""
# A narrower type on the way wraps.
NARROW = """kernel narrow[N, M; D = 32](Q : i8[N, D], K : i8[M, D]) -> (top : f32[N], least : i16[N])
{
  A     = Q +.* transpose(K)
  top   = max/ f32(i8(A))
  least = min/ i16(A)
}
"""


def integers(rng, *shape):
    """All values, and rows and keys of the extremes."""
    array = rng.integers(-128, 128, shape).astype(np.int8)
    array.reshape(-1, shape[-1])[::7] = -128
    array.reshape(-1, shape[-1])[3::11] = 127
    return array


def products(q, k):
    return q.astype(np.int64) @ np.swapaxes(k.astype(np.int64), -1, -2)


@unittest.skipIf(mt.TARGET != "cpu", "about code for CPUs")
class ByteDots(unittest.TestCase):

    def compare(self, spec, inputs, expected, what, **settings):
        """Equal numbers, whatever the processor."""
        for processor in PROCESSORS:
            kernel = mt.Kernel(spec, processor=processor, **settings)
            with self.subTest(processor=processor, what=what):
                results = kernel.run(inputs, {name: value.shape for name, value in expected.items()})
                for name, value in expected.items():
                    np.testing.assert_array_equal(results[name], value.astype(results[name].dtype), f"{what} {name}")

    def check_exact(self, d, n, m):
        rng = np.random.default_rng([d, n, m])
        q, k = integers(rng, 4, n, d), integers(rng, 2, m, d)
        sums = products(q, np.repeat(k, 2, axis=0))
        visible = np.arange(m) <= np.arange(n)[:, None] + (m - n)
        self.assertTrue(visible.any(-1).all())
        seen = np.where(visible, sums, np.iinfo(np.int64).min).max(-1)
        self.compare(EXACT, {"Q": q, "K": k}, {"top": seen, "least": sums.min(-1), "sum": sums.sum(-1), "seen": seen},
                     f"{d} {n} {m}", D=d)

    def test_depths(self):
        """Words that are not full, one byte, and beyond what f32 holds."""
        for d in (1, 3, 4, 50, 128, 1024, 1025):
            self.check_exact(d, 37, 101)

    def test_sizes(self):
        """Tails of rows and keys, and keys in parts."""
        for n, m in ((1, 1), (5, 300), (113, 203), (290, 385), (3, 4500)):
            self.check_exact(64, n, m)

    def test_largest(self):
        """The largest sums of either sign at the depth up to which words are added, which 32 bits hold."""
        d = 131071
        q, k = np.full((1, 2, d), -128, np.int8), np.full((1, 3, d), -128, np.int8)
        k[0, 1], k[0, 2] = 127, 0
        sums = products(q, k)
        self.assertEqual(sums.max(), d << 14)
        kernel = mt.Kernel(EXACT, D=d)
        found = kernel.run({"Q": q, "K": k}, {"top": (1, 2), "least": (1, 2), "sum": (1, 2), "seen": (1, 2)})
        np.testing.assert_array_equal(found["least"], sums.min(-1))
        np.testing.assert_array_equal(found["sum"], sums.sum(-1))

    def test_carried(self):
        rng = np.random.default_rng(0)
        q, k = integers(rng, 2, 70, 64), integers(rng, 2, 150, 64)
        v = rng.integers(-1, 2, (2, 150, 5))
        v[:, ::3] = 0
        sums = products(q // 16, k // 16)
        self.compare(CARRIED, {"Q": q // 16, "K": k // 16, "V": v.astype(np.float32)},
                     {"top": sums.max(-1), "O": sums @ v}, "carried")

    def test_gathered(self):
        rng = np.random.default_rng(1)
        q, k, at = integers(rng, 48, 75), integers(rng, 90, 48, 2), rng.integers(0, 90, 131)
        sums = products(q.T, k[at, :, 1])
        self.compare(GATHERED, {"Q": q, "K": k, "at": at.astype(np.int32)}, {"top": sums.max(-1)}, "gathered")

    def test_strides(self):
        """Rows apart by more than they hold, and elements of a row apart from one another."""
        rng = np.random.default_rng(2)
        q, k = integers(rng, 4, 60, 64), integers(rng, 4, 140, 64)
        sums = products(q, k)

        def spread(array):
            wide = np.zeros(array.shape[:-1] + (array.shape[-1] + 3,), array.dtype)
            wide[..., 1:-2] = array
            return wide[..., 1:-2]

        kernel = mt.Kernel(CARRIED)
        v = np.zeros((4, 140, 5), np.float32)
        for arrange in (spread, np.asfortranarray):
            found = kernel.run({"Q": q, "K": k, "V": v}, {"top": (4, 60), "O": (4, 60, 5)}, arrange)
            np.testing.assert_array_equal(found["top"], sums.max(-1))

    def test_wide(self):
        rng = np.random.default_rng(3)
        q, k, bias = integers(rng, 45, 20), integers(rng, 77, 20), rng.standard_normal(77)
        self.compare(WIDE, {"Q": q, "K": k, "bias": bias}, {"top": (products(q, k) + bias).max(-1)}, "wide")

    def test_narrow(self):
        rng = np.random.default_rng(4)
        q, k = integers(rng, 45, 32), integers(rng, 77, 32)
        sums = products(q, k)
        self.compare(NARROW, {"Q": q, "K": k},
                     {"top": sums.astype(np.int8).max(-1), "least": sums.astype(np.int16).min(-1)}, "narrow")


if __name__ == "__main__":
    mt.main()
