# RUN: %python %s
"""Sums of products of bf16 on a CPU against NumPy in float64, by whatever means the processor has: tiles (AMX-BF16), dot
products of two (AVX512-BF16), or f32. Sums of integers of few bits are exact in f32 and equal in all bits."""
import os
import unittest

import numpy as np

import moa_testing as mt

# Processors by LLVM's names: this one, what each x86 runs, and those with either of the instructions, which may not be
# there.
PROCESSORS = ("sapphirerapids",) if mt.EMULATE_AMX else (None, "x86-64", "znver4", "sapphirerapids")

SCORES = """kernel scores[H, G, N, M; D = 64](Q : bf16[H, N, D], K : bf16[G, M, D]) -> (top : f32[H, N], sum : f32[H, N])
  require H % G == 0
{
  Kh    = [h < H] K[h / (H/G)]
  A     = mask([_, i, j] j <= i + (M - N), Q +.* transpose(Kh))
  top   = max/ A
  sum   = +/ select(A > 0, 1.0, 0.0)
}
"""
# Weights of 0 and 1, rounded, so that each sum is one of integers; three axes in a state.
PICKED = """kernel picked[H, N, M; D = 32, E = 48](Q : bf16[H, N, D], K : bf16[H, M, D], V : bf16[H, M, E], U : bf16[H, M, 3, 5])
    -> (O : f32[H, N, E], P : f32[H, N, 3, 5])
{
  A = Q +.* transpose(K)
  W = [h, i, j] select(A[h, i, j] > 0, 1.0, 0.0)
  O = W +.* V
  P = [h, i, x < 3, y < 5] +/ [j] W[h, i, j] * U[h, j, x, y]
}
"""
# Keys in any order, strides of any axis.
GATHERED = """kernel gathered[N, M, P; D = 48](Q : bf16[D, N], K : bf16[P, D, 2], at : i32[M] in 0..P) -> top : f32[N]
{
  A   = [i < N, j < M] +/ [d < D] Q[d, i] * K[at[j], d, 1]
  top = max/ A
}
"""
# A sum that is computed again has the same bits.
REPEATED = """kernel repeated[N, M; D = 64](Q : bf16[N, D], K : bf16[M, D]) -> hits : f32[N, M]
{
  S    = Q +.* transpose(K)
  top  = max/ S
  hits = select(S == ([i, _] top[i]), 1.0, 0.0)
}
"""
# A mask reads the sums that it hides.
MASKED = """kernel masked[N, M; D = 64](Q : bf16[N, D], K : bf16[M, D]) -> (low : f32[N], logs : f32[N])
{
  S    = Q +.* transpose(K)
  A    = mask(S > 0, S)
  low  = min/ A
  logs = +/ log(A)
}
"""
# With a tolerance that holds for every input.
BOUNDED = """kernel bounded[N, M; T : float = f32, D = 64](Q : T[N, D], K : T[M, D], V : T[M, D]) -> O : f32[N, D] within 0.5
{ O = exp(Q +.* transpose(K)) +.* V }
"""
ATTENTION = """kernel attention[H, N, M; D = 64](Q : bf16[H, N, D], K : bf16[H, M, D], V : bf16[H, M, D], scale : f32)
    -> O : f32[H, N, D]
{
  S = mask([_, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
}
"""


def integers(rng, *shape):
    return rng.integers(-15, 16, shape).astype(np.float64)


def products(q, k):
    return q @ np.swapaxes(k, -1, -2)


@unittest.skipIf(mt.TARGET != "cpu", "about code for CPUs")
class Bf16Dots(unittest.TestCase):

    ran = set()  # the processors that were there

    def make(self, spec, processor, **settings):
        """A kernel for a processor, which may be missing if it is another than this one and more than each x86 is."""
        kernel = mt.Kernel(spec, processor=processor, **settings)
        if processor != "x86-64" and (processor or "MOA_CPU_KERNELS" in os.environ):
            kernel.accepted += (mt.PROCESSOR,)
        return kernel

    def compare(self, spec, inputs, expected, what, bound=0, **settings):
        """Numbers that are equal, or near one another, whatever the processor."""
        for processor in PROCESSORS:
            kernel = self.make(spec, processor, **settings)
            with self.subTest(processor=processor, what=what):
                results = kernel.run(inputs, {name: value.shape for name, value in expected.items()})
                if kernel.code == mt.PROCESSOR:
                    continue
                self.ran.add(processor)
                for name, value in expected.items():
                    if bound:
                        self.assertLessEqual(mt.relative_error(results[name], value), bound, f"{what} {name}")
                    else:
                        np.testing.assert_array_equal(results[name], value.astype(np.float32), f"{what} {name}")

    @classmethod
    def tearDownClass(cls):
        print("ran on", *sorted(map(str, cls.ran)))

    def check_scores(self, d, n, m):
        rng = np.random.default_rng([d, n, m])
        q, k = integers(rng, 4, n, d), integers(rng, 2, m, d)
        sums = products(q, np.repeat(k, 2, axis=0))
        visible = np.arange(m) <= np.arange(n)[:, None] + (m - n)
        self.compare(SCORES, {"Q": q, "K": k}, {"top": np.where(visible, sums, -np.inf).max(-1), "sum": (visible & (sums > 0)).sum(-1)},
                     f"{d} {n} {m}", D=d)

    def test_depths(self):
        """Words and tiles that are not full, and sums in blocks."""
        for d in (1, 2, 31, 32, 50, 128, 256, 257, 700):
            self.check_scores(d, 37, 101)

    def test_sizes(self):
        """Tails of rows and keys, and keys in parts."""
        for n, m in ((1, 1), (5, 300), (113, 203), (290, 385), (3, 4500)):
            self.check_scores(64, n, m)

    def check_picked(self, n, m, d, e):
        rng = np.random.default_rng([n, m, e])
        q, k, v, u = (integers(rng, 2, *shape) for shape in ((n, d), (m, d), (m, e), (m, 3, 5)))
        weights = (products(q, k) > 0).astype(float)
        self.compare(PICKED, {"Q": q, "K": k, "V": v, "U": u},
                     {"O": weights @ v, "P": np.einsum("hij,hjxy->hixy", weights, u)}, f"{n} {m} {d} {e}", D=d, E=e)

    def test_weighted(self):
        """Sums over keys: few and many, odd numbers of them, and axes that tiles do not fit."""
        for n, m, d, e in ((1, 1, 32, 48), (37, 101, 32, 48), (113, 203, 20, 64), (96, 512, 64, 128), (50, 333, 33, 7)):
            self.check_picked(n, m, d, e)

    def test_gathered(self):
        rng = np.random.default_rng(1)
        q, k, at = integers(rng, 48, 75), integers(rng, 90, 48, 2), rng.integers(0, 90, 131)
        self.compare(GATHERED, {"Q": q, "K": k, "at": at.astype(np.int32)},
                     {"top": products(q.T, k[at, :, 1]).max(-1)}, "gathered")

    def test_strides(self):
        """Rows apart by more than they hold, and elements of a row apart from one another."""
        rng = np.random.default_rng(2)
        q, k, v, u = (integers(rng, 2, *shape) for shape in ((60, 32), (140, 32), (140, 48), (140, 3, 5)))
        weights = (products(q, k) > 0).astype(float)

        def spread(array):
            wide = np.zeros(array.shape[:-1] + (array.shape[-1] + 3,), array.dtype)
            wide[..., 1:-2] = array
            return wide[..., 1:-2]

        for processor in PROCESSORS:
            kernel = self.make(PICKED, processor)
            for arrange in (spread, np.asfortranarray):
                found = kernel.run({"Q": q, "K": k, "V": v, "U": u}, {"O": (2, 60, 48), "P": (2, 60, 3, 5)}, arrange)
                if kernel.code == mt.PROCESSOR:
                    continue
                self.ran.add(processor)
                with self.subTest(processor=processor, arrange=arrange.__name__):
                    np.testing.assert_array_equal(found["O"], weights @ v)
                    np.testing.assert_array_equal(found["P"], np.einsum("hij,hjxy->hixy", weights, u))

    def test_repeated(self):
        """The largest of a row's sums is found among the sums, once."""
        rng = np.random.default_rng(5)
        for n, m in ((20, 70), (100, 203), (1, 500)):
            q, k = (mt.from_bf16(mt.to_bf16(rng.standard_normal((rows, 64)))).astype(np.float64) for rows in (n, m))
            sums = products(q, k)
            self.compare(REPEATED, {"Q": q, "K": k}, {"hits": sums == sums.max(-1, keepdims=True)}, f"repeated {n} {m}")

    def test_masked(self):
        """Sums near 0, which other orders of their terms give other signs: those that a mask has as positive are."""
        rng = np.random.default_rng(6)
        low, high = (mt.from_bf16(mt.to_bf16(rng.standard_normal((rows, 32)))) for rows in (300, 300))
        for processor in PROCESSORS:
            kernel = self.make(MASKED, processor)
            found = kernel.run({"Q": np.hstack([low, low]), "K": np.hstack([high, -high])}, {"low": (300,), "logs": (300,)})
            if kernel.code == mt.OK:
                with self.subTest(processor=processor):
                    self.assertGreater(found["low"].min(), 0)
                    self.assertFalse(np.isnan(found["logs"]).any())

    def test_attention(self):
        """Against exact weights: what is off is their rounding to bf16."""
        rng = np.random.default_rng(3)
        for n, m in ((1, 1), (40, 70), (113, 203), (200, 777)):
            arrays = [mt.from_bf16(mt.to_bf16(rng.standard_normal((3, rows, 64)))).astype(np.float64)
                      for rows in (n, m, m)]
            scale = 0.125
            scores = np.where(np.arange(m) <= np.arange(n)[:, None] + (m - n), products(*arrays[:2]) * scale, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            expected = weights @ arrays[2] / weights.sum(-1, keepdims=True)
            self.compare(ATTENTION, dict(zip("QKV", arrays), scale=scale), {"O": expected}, f"{n} {m}",
                         bound=mt.BOUNDS["bf16"])

    def test_flushed(self):
        """Bounds know that subnormal operands may be 0: what large weights make of them is not shown, and no plan takes them."""
        inputs = {"Q": np.ones((300, 64)), "K": np.full((300, 64), 40 / 64), "V": np.full((300, 64), 2.0 ** -127)}
        exact = np.exp(40.0) * 300 * 2.0 ** -127
        for processor in PROCESSORS:
            for form in ("f32", "bf16"):
                with self.subTest(processor=processor, form=form):
                    kernel = self.make(BOUNDED, processor, flags=("--spend=256", "--decisions"), T=form)
                    kernel.accepted += (mt.NOT_SHOWN,)
                    plans = int(kernel.by_name["O_bound"].extents[0])
                    found = kernel.run(inputs, {"O": (300, 64), "O_plan": (), "O_bound": (plans,)})
                    if kernel.code == mt.PROCESSOR:
                        continue
                    self.assertEqual(np.isinf(found["O_bound"]).tolist(), [form == "bf16"] + [True] * (plans - 1))
                    self.assertEqual(found["O_plan"], -1 if form == "bf16" else 0)
                    if form == "f32":
                        np.testing.assert_allclose(found["O"], exact, rtol=1e-4)

    def test_special(self):
        """Infinite and NaN keys reach what they should, and nothing else, in depths that are padded."""
        rng = np.random.default_rng(4)
        q, k = np.abs(integers(rng, 2, 20, 19)) + 1, integers(rng, 2, 70, 19)
        k[0, 3, 18], k[1, 60, 0] = np.inf, np.nan
        sums = products(q, k)
        visible = np.arange(70) <= np.arange(20)[:, None] + 50
        top = np.where(visible, sums, -np.inf).max(-1)  # NaN where a row sees it
        self.compare(SCORES, {"Q": q, "K": k}, {"top": top, "sum": (visible & (sums > 0)).sum(-1)}, "special", D=19)


if __name__ == "__main__":
    mt.main()
