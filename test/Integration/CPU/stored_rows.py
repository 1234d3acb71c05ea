# RUN: %python %s
"""Values of rows that a nest over other axes needs, against NumPy: sums over the rows of weights, weights read along the other axis,
averages over heads, extremes over all rows of a head, and reductions that all rows share."""
import itertools
import unittest

import numpy as np

import moa_testing as mt

SIZES = [(1, 1, 1), (2, 5, 3), (1, 70, 65), (2, 64, 130)] if mt.TARGET == "device" else \
    [(1, 0, 3), (1, 3, 0), (1, 1, 1), (2, 5, 3), (2, 70, 65), (1, 130, 257), (3, 64, 64)]

MASKS = {
    "none": ("S", lambda i, j, n, m: np.ones((n, m), bool)),
    "causal": ("mask([_, i, j] j <= i + (M - N), S)", lambda i, j, n, m: j <= i + (m - n)),
    # Rows from 7 on see nothing where there are few keys.
    "window": ("mask([_, i, j] j <= i and i - j < 7, S)", lambda i, j, n, m: (j <= i) & (i - j < 7)),
}

WEIGHTS = """kernel k[H, N, M; T : float = f32, D = 16, E = 8](Q : T[H, N, D], K : T[H, M, D], U : T[H, N, E])
    -> (got : f32[H, M], back : f32[H, M, E], mean : f32[N, M])
{{
  S = (Q +.* transpose(K)) * 0.25
  P = softmax({})
  got = reduce(+, P, -2)
  back = transpose(P) +.* U
  mean = reduce(+, P, 0) / f32(H)
}}
"""

# Sums over the rows of all heads that share a key head, and of two heads.
GROUPS = """kernel k[H, G, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D]) -> (got : f32[G, M], pairs : f32[H/2, M])
  require H % G == 0
{{
  S = (Q +.* transpose(K)) * 0.25
  P = softmax({})
  sums = reduce(+, P, -2)
  got = [g < G, j < M] +/ ([r < H/G] sums[g*(H/G) + r, j])
  pairs = [g < H/2, j < M] +/ ([r < 2] sums[g*2 + r, j])
}}
"""

TOPS = """kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D])
    -> (row : f32[H, N], lse : f32[H, N], top : f32[H], low : f32[H], total : f32[H])
{{
  S = (Q +.* transpose(K)) * 0.25
  X = {}
  row = max/ X
  lse = logsumexp(X)
  top = max/ row
  low = min/ (max/ X)
  total = +/ (+/ (X * X))
}}
"""

# What all rows share: c, and the extreme of a head.
SHARED = """kernel k[N, M](x : f32[N, M]) -> (y : f32[N, M], z : f32[N, M])
{
  c = max/ transpose(x)
  y = [i, j] x[i, j] - (+/ x)[i] - c[j]
  z = x - max/ (max/ x)
}
"""

# Rows and columns are normalised in turn: each sum reads those before it along the other axis.
TURNS = """kernel k[N, M](x : f32[N, M]) -> y : f32[N, M]
{
  a = exp(x)
  b = [i, j] a[i, j] / (+/ a)[i]
  c = [i, j] b[i, j] / (+/ transpose(b))[j]
  d = [i, j] c[i, j] / (+/ c)[i]
  y = [i, j] d[i, j] / (+/ transpose(d))[j]
}
"""


def scores(q, k):
    return q @ k.transpose(0, 2, 1) * 0.25


def weights(s, seen):
    s = np.where(seen, s, -np.inf)
    most = s.max(-1, keepdims=True, initial=-1e300)
    e = np.where(seen, np.exp(s - most), 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(seen, e / e.sum(-1, keepdims=True), 0)


class StoredRows(mt.KernelTest):

    def inputs(self, size, seed, more=()):
        rng = np.random.default_rng(seed)
        h, n, m = size
        made = {"Q": rng.standard_normal((h, n, 16)), "K": rng.standard_normal((h, m, 16))}
        if more:
            made["U"] = rng.standard_normal((h, n, 8))
        return made

    def test_weights(self):
        for name, (mask, sees) in MASKS.items():
            for kind in ("f32", "bf16"):
                kernel = mt.make_kernel(WEIGHTS.format(mask), T=kind)
                for size in SIZES:
                    with self.subTest(mask=name, kind=kind, size=size):
                        h, n, m = size
                        inputs = self.inputs(size, 5, ("U",))
                        seen = kernel.seen_by_kernel(inputs)
                        p = weights(scores(seen["Q"], seen["K"]), sees(np.arange(n)[:, None], np.arange(m), n, m))
                        expected = {"got": p.sum(1), "back": p.transpose(0, 2, 1) @ seen["U"], "mean": p.mean(0)}
                        results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
                        self.assert_close(results, expected, mt.BOUNDS[kind], f"{name} {kind} {size}")

    def test_groups(self):
        for name, (mask, sees) in MASKS.items():
            kernel = mt.make_kernel(GROUPS.format(mask))
            for (h, g), (_, n, m) in itertools.product(((4, 2), (6, 2), (5, 1)), SIZES[-4:]):
                with self.subTest(mask=name, heads=(h, g), size=(n, m)):
                    inputs = self.inputs((h, n, m), 9)
                    seen = kernel.seen_by_kernel(inputs)
                    sums = weights(scores(seen["Q"], seen["K"]), sees(np.arange(n)[:, None], np.arange(m), n, m)).sum(1)
                    expected = {"got": sums.reshape(g, h // g, m).sum(1), "pairs": sums[:h // 2 * 2].reshape(h // 2, 2, m).sum(1)}
                    results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
                    self.assert_close(results, expected, mt.BOUNDS["f32"], f"groups {name} {(h, g, n, m)}")

    def test_tops(self):
        for name, (mask, sees) in MASKS.items():
            kernel = mt.make_kernel(TOPS.format(mask))
            for size in SIZES:
                with self.subTest(mask=name, size=size):
                    h, n, m = size
                    inputs = self.inputs(size, 6)
                    seen = kernel.seen_by_kernel(inputs)
                    sees_all = sees(np.arange(n)[:, None], np.arange(m), n, m)
                    s = np.where(sees_all, scores(seen["Q"], seen["K"]), -np.inf)
                    row = s.max(-1, initial=-np.inf)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        lse = np.log(np.exp(s - np.maximum(row, -1e300)[..., None]).sum(-1)) + row
                    # A row that sees nothing is the identity of its maximum.
                    squares = np.where(sees_all, scores(seen["Q"], seen["K"]), 0) ** 2
                    expected = {"row": row, "lse": lse, "top": row.max(-1, initial=-np.inf), "low": row.min(-1, initial=np.inf),
                                "total": squares.sum((1, 2))}
                    results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
                    self.assert_close(results, expected, mt.BOUNDS["f32"], f"{name} {size}")

    def test_shared(self):
        kernel = mt.make_kernel(SHARED)
        for shape in ((1, 1), (5, 3), (70, 65), (33, 129)):
            with self.subTest(shape=shape):
                x = np.random.default_rng(7).standard_normal(shape)
                x64 = kernel.seen_by_kernel({"x": x})["x"]
                expected = {"y": x64 - x64.sum(1, keepdims=True) - x64.max(0), "z": x64 - x64.max()}
                results = kernel.results({"x": x}, {k: v.shape for k, v in expected.items()})
                self.assert_close(results, expected, mt.BOUNDS["f32"], f"shared {shape}")

    def test_turns(self):
        kernel = mt.make_kernel(TURNS)
        for shape in ((1, 1), (5, 3), (40, 65)):
            with self.subTest(shape=shape):
                x = np.random.default_rng(8).standard_normal(shape)
                y = np.exp(kernel.seen_by_kernel({"x": x})["x"])
                for axis in (1, 0, 1, 0):
                    y = y / y.sum(axis, keepdims=True)
                results = kernel.results({"x": x}, {"y": y.shape})
                self.assert_close(results, {"y": y}, mt.BOUNDS["f32"], f"turns {shape}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
