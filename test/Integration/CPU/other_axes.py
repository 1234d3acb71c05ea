# RUN: %python %s
"""Reductions along other axes than the last, against NumPy."""
import unittest

import numpy as np

import moa_testing as mt

COLUMNS = """kernel k[N, M; T : float](x : T[N, M]) -> (y : T[N, M], best : T[M])
{
  t = transpose(x)
  y = transpose(softmax(t))
  best = max/ t
}
"""
MIDDLE = """kernel k[N, L, M; T : float](x : T[N, L, M]) -> (y : T[N, L, M], s : T[N, M])
{
  s = reduce(+, abs(x), 1)
  y = [i, j, k] x[i, j, k] / s[i, k]
}
"""
MASKED = """kernel k[N, M; T : float](x : T[N, M]) -> (y : T[N, M])
{
  y = transpose(softmax(mask([j, i] i <= j, transpose(x))))
}
"""
# For every row a reduction of its own, and one that carries the other axis.
BOTH = """kernel k[N; T : float](x : T[N, 3]) -> (y : T[N, 3])
{
  low = reduce(min, x, 0)
  y = [i, k] max(reduce(max, x, 1)[i] * 0.5, low[k])
}
"""


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=axis, keepdims=True)


class OtherAxes(mt.KernelTest):

    def check(self, spec, meaning, shapes):
        for kind in ("f64", "f32", "bf16"):
            kernel = mt.make_kernel(spec, T=kind)
            for shape in shapes:
                with self.subTest(kind=kind, shape=shape):
                    inputs = {"x": np.random.default_rng(3).standard_normal(shape)}
                    expected = meaning(**kernel.seen_by_kernel(inputs))
                    results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
                    self.assert_close(results, expected, mt.BOUNDS[kind], f"{kind} {shape}")

    def test_columns(self):
        self.check(COLUMNS, lambda x: {"y": softmax(x, 0),
                                       "best": x.max(axis=0, initial=-np.inf)},
                   [(1, 1), (3, 100), (100, 3), (130, 77), (0, 5), (5, 0)])

    def test_middle(self):
        self.check(MIDDLE, lambda x: {"y": x / np.abs(x).sum(axis=1, keepdims=True),
                                      "s": np.abs(x).sum(axis=1)},
                   [(2, 5, 7), (3, 40, 33), (1, 1, 1)])

    def test_both(self):
        self.check(BOTH, lambda x: {"y": np.maximum(0.5 * x.max(axis=1, keepdims=True),
                                                    x.min(axis=0, initial=np.inf))},
                   [(1, 3), (40, 3), (0, 3)])

    def test_masked_columns(self):
        def meaning(x):
            present = np.arange(x.shape[0])[:, None] <= np.arange(x.shape[1])
            return {"y": np.where(present, softmax(np.where(present, x, -np.inf), 0), 0)}
        self.check(MASKED, meaning, [(1, 1), (40, 33), (33, 40), (129, 200)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
