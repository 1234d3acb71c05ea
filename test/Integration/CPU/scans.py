# RUN: %python %s
"""Running reductions, against NumPy: products, extremes and sums of what stands before or after an index, as results and inside of
sums, and the weights of stick-breaking attention (Tan et al., "Scaling Stick-Breaking Attention", 2024)."""
import unittest

import numpy as np

import moa_testing as mt

SHAPES = [(1, 1), (2, 5), (3, 70), (5, 130)] if mt.TARGET == "device" else \
    [(0, 3), (3, 0), (1, 1), (2, 5), (3, 70), (130, 65), (33, 257)]

RUNNING = """kernel k[N, M](x : f32[N, M]) -> (before : f32[N, M], upto : f32[N, M], after : f32[N, M], least : f32[N, M])
{
  before = [i < N, j < M] */ [k < M] mask(k < j, x[i, k])
  upto = [i < N, j < M] max/ [k < M] mask(k <= j, x[i, k])
  after = [i < N, j < M] */ [k < M] mask(k > j, x[i, k])
  least = [i < N, j < M] min/ [k < M] mask(k >= j and k % 3 == 0, x[i, k])
}
"""

# One axis, and ends that are no index: blocks of 16, and lengths in an array.
ENDS = """kernel k[N, M](x : f32[M], L : i32[N]) -> (all : f32[M], block : f32[M], part : f32[N])
{
  all = [j < M] */ [k < M] mask(k <= j, x[k])
  block = [j < M] max/ [k < M] mask(k < j / 16 * 16, x[k])
  part = [i < N] */ [k < M] mask(k < L[i], x[k])
}
"""

STICK = """kernel k[H, N; T : float = f32, D = 16, E = 8](Q : T[H, N, D], K : T[H, N, D], V : T[H, N, E]) -> O : f32[H, N, E]
{
  S = (Q +.* transpose(K)) * 0.25
  B = 1.0 / (1.0 + exp(-S))
  W = [h < H, i < N, j < N] B[h, i, j] * (*/ [k < N] mask(j < k and k < i, 1.0 - B[h, i, k]))
  O = mask([_, i, j] j < i, W) +.* V
}
"""

# A running sum inside of a sum.
SUMS = """kernel k[N, M](x : f32[N, M], y : f32[M]) -> z : f32[N]
{ z = [i < N] +/ [j < M] exp(-(+/ [k < M] mask(k <= j, x[i, k]))) * y[j] }
"""

# Ends that a condition protects, ends that have no integer next to them, and quotients that only some terms need.
GUARDED = """kernel k[N, M, P](x : f32[M], L : i32[P]) -> y : f32[N, M]
{ y = [i < N, j < M] */ [k < M] mask(i < P and k < L[i] + j, x[k]) }
"""

LARGEST = """kernel k[N, M](x : f32[M], L : i64[N]) -> (upto : f32[N], after : f32[N])
{
  upto = [i < N] max/ [k < M] mask(k <= L[i], x[k])
  after = [i < N] max/ [k < M] mask(k > L[i], x[k])
}
"""

QUOTIENTS = """kernel k[M](a : i32[M], b : i32[M]) -> y : f32[M]
{ y = [j < M] */ [k < M] mask(k < j, f32(a[k] / b[k])) }
"""


class Scans(mt.KernelTest):

    def test_guarded_ends(self):
        kernel = mt.make_kernel(GUARDED)
        for n, m, p in ((1, 1, 0), (3, 5, 2), (70, 70, 3), (2, 130, 2)):
            with self.subTest(n=n, m=m, p=p):
                rng = np.random.default_rng(7)
                inputs = {"x": rng.uniform(0.8, 1.2, m), "L": rng.integers(-3, 4, p)}
                x = kernel.seen_by_kernel(inputs)["x"]
                expected = np.array([[x[:max(inputs["L"][i] + j, 0)].prod() if i < p else 1.0 for j in range(m)]
                                     for i in range(n)]).reshape(n, m)
                self.assert_close(kernel.results(inputs, {"y": (n, m)}), {"y": expected}, mt.BOUNDS["f32"], f"guarded {n} {m} {p}")

    @unittest.skipIf(mt.TARGET == "device", "the numbers of interpreters are float64")
    def test_largest_ends(self):
        kernel = mt.make_kernel(LARGEST)
        x = np.random.default_rng(8).standard_normal(70)
        limits = [2**63 - 1, -2**63, 0, 3, 69, 70, -1] * 10
        inputs = {"x": x, "L": np.array(limits, dtype=np.int64)}
        seen = kernel.seen_by_kernel(inputs)["x"]
        least = -np.inf
        expected = {"upto": np.array([max(seen[:min(max(end + 1, 0), 70)], default=least) for end in limits]),
                    "after": np.array([max(seen[min(max(end + 1, 0), 70):], default=least) for end in limits])}
        self.assert_close(kernel.results(inputs, {"upto": (70,), "after": (70,)}), expected, mt.BOUNDS["f32"], "largest ends")

    def test_quotients(self):
        kernel = mt.make_kernel(QUOTIENTS)
        for m in (1, 5, 70):
            rng = np.random.default_rng(9)
            a, b = rng.integers(2, 5, m), rng.integers(1, 3, m)
            b[-1] = 0
            expected = np.array([np.prod([float(a[k] // b[k]) for k in range(j)]) for j in range(m)])
            self.assert_close(kernel.results({"a": a, "b": b}, {"y": (m,)}), {"y": expected}, mt.BOUNDS["f32"], f"quotients {m}")

    def test_running(self):
        kernel = mt.make_kernel(RUNNING)
        for shape in SHAPES:
            with self.subTest(shape=shape):
                x = np.random.default_rng(3).uniform(0.8, 1.2, shape)
                x64 = kernel.seen_by_kernel({"x": x})["x"]
                n, m = shape
                ones = np.ones((n, 1))
                before = np.concatenate([ones, np.cumprod(x64, 1)], 1)[:, :m]
                after = np.concatenate([np.cumprod(x64[:, ::-1], 1)[:, ::-1], ones], 1)[:, 1:]
                third = np.where(np.arange(m) % 3 == 0, x64, np.inf)
                # Elements without any are 0, as absent ones of results are.
                expected = {"before": before, "upto": np.maximum.accumulate(x64, 1), "after": after,
                            "least": np.minimum.accumulate(third[:, ::-1], 1)[:, ::-1]}
                results = kernel.results({"x": x}, {k: v.shape for k, v in expected.items()})
                self.assert_close(results, expected, mt.BOUNDS["f32"], f"running {shape}")

    def test_ends(self):
        kernel = mt.make_kernel(ENDS)
        for n, m in SHAPES:
            with self.subTest(n=n, m=m):
                rng = np.random.default_rng(4)
                inputs = {"x": rng.uniform(0.8, 1.2, m), "L": rng.integers(-3, m + 4, n)}
                x = kernel.seen_by_kernel(inputs)["x"]
                block = np.array([x[:j // 16 * 16].max(initial=-np.inf) for j in range(m)])
                expected = {"all": np.cumprod(x), "block": block.reshape(m),
                            "part": np.array([x[:max(length, 0)].prod() for length in inputs["L"]]).reshape(n)}
                results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
                self.assert_close(results, expected, mt.BOUNDS["f32"], f"ends {n} {m}")

    def test_stick_breaking(self):
        for kind in ("f32", "bf16"):
            kernel = mt.make_kernel(STICK, T=kind)
            for h, n in ((1, 1), (2, 5), (1, 70), (2, 130)):
                with self.subTest(kind=kind, h=h, n=n):
                    rng = np.random.default_rng(5)
                    inputs = {"Q": rng.standard_normal((h, n, 16)), "K": rng.standard_normal((h, n, 16)),
                              "V": rng.standard_normal((h, n, 8))}
                    seen = kernel.seen_by_kernel(inputs)
                    b = 1 / (1 + np.exp(-(seen["Q"] @ seen["K"].transpose(0, 2, 1)) * 0.25))
                    w = np.zeros_like(b)
                    for i in range(n):
                        left = np.ones(h)
                        for j in range(i - 1, -1, -1):
                            w[:, i, j] = b[:, i, j] * left
                            left = left * (1 - b[:, i, j])
                    expected = {"O": w @ seen["V"]}
                    results = kernel.results(inputs, {"O": expected["O"].shape})
                    self.assert_close(results, expected, mt.BOUNDS[kind], f"stick {kind} {h} {n}")

    def test_sums(self):
        kernel = mt.make_kernel(SUMS)
        for shape in SHAPES:
            with self.subTest(shape=shape):
                rng = np.random.default_rng(6)
                inputs = {"x": rng.uniform(-0.1, 0.1, shape), "y": rng.standard_normal(shape[1])}
                seen = kernel.seen_by_kernel(inputs)
                expected = {"z": np.exp(-np.cumsum(seen["x"], 1)) @ seen["y"]}
                results = kernel.results(inputs, {"z": expected["z"].shape})
                self.assert_close(results, expected, mt.BOUNDS["f32"], f"sums {shape}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
