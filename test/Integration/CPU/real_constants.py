# RUN: %python %s
"""Real compile-time constants: defaults, forms of numbers, and values from outside."""
import unittest

import numpy as np

import moa_testing as mt

SPEC = """kernel constants[N; D = 8, eps = 1e-6, low = -1e30, share = 0.25 * D, none = -inf, far](x : f32[N, D])
    -> (y : f32[N, D], z : f32[N, D], top : f32[N], count : i32[N])
{
  y     = x * rsqrt([i < N, _] mean(x[i] * x[i]) + eps)
  z     = [i, d] select(d <= i, x[i, d], low) + share
  top   = max/ [i, d] select(x[i, d] > 0, x[i, d] * far, none)
  count = i32((+/ select(x > share, 1, 0)) + 2.0 * share)
}
"""


class Constants(mt.KernelTest):

    def compare(self, values, **settings):
        eps, low, share, far = values
        kernel = mt.make_kernel(SPEC, far=far, **settings)
        x = np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32)
        got = kernel.results({"x": x}, {"y": x.shape, "z": x.shape, "top": (6,), "count": (6,)})
        seen = x.astype(np.float64)
        here = np.arange(8) <= np.arange(6)[:, None]
        expected = {"y": seen / np.sqrt((seen ** 2).mean(axis=1, keepdims=True) + eps),
                    "top": np.where(seen > 0, seen * float(far), -np.inf).max(axis=1)}
        self.assert_close(got, expected, 2e-6, str(settings))
        np.testing.assert_allclose(got["z"], np.where(here, seen, low) + share, rtol=1e-6)
        np.testing.assert_array_equal(got["count"], np.trunc((seen > share).sum(axis=1) + 2 * share))

    def test_defaults(self):
        self.compare((1e-6, -1e30, 2.0, "1e2"))

    def test_settings(self):
        self.compare((0.5, -2.5e-3, 1.25, "-3"), eps="0.5", low="-2.5e-3", share="1.25")

    def test_integers_are_real(self):
        self.compare((1.0, -7.0, 1.0, "4"), eps="1", low="-7", share="1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
