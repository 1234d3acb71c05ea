# RUN: %python %s
"""Sums of products whose factors are large: what fusion moves must stay in range.

A quotient by a maximum is written to keep a product in the range of its type.
R1 may take such a quotient out of a sum only where nothing else gives one pass
(Numerics in lib/Conversion/DNFToONF/DNFToONF.h).
"""
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt

PAIRS = "x : f32[N, M], y : f32[N, M]"


# Every row over its largest magnitude.
UNIT = "def unit(x : [n]) { return x / (max/ abs(x)) }\n"


def kernel(body, inputs=PAIRS, output="O : f32[N]", symbols="N, M"):
    return f"{UNIT}kernel k[{symbols}]({inputs}) -> {output}\n{{\n  {body}\n}}\n"


def passes(spec):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "spec.moa")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        text = mt.tool("moa-codegen", path, "--emit=onf").stdout
    return len(re.findall(r"^      %\S+ = onf\.fold ", text, re.M))


class Range(mt.KernelTest):

    def check(self, spec, inputs, expected, count=1):
        self.assertEqual(passes(spec), count)
        results = mt.Kernel(spec).results(inputs, {"O": expected.shape})
        self.assert_close(results, {"O": expected}, mt.BOUNDS["f32"], self.id())

    def magnitudes(self, *shape):
        """Elements of widely different size and both signs, growing on the way."""
        rng = np.random.default_rng(11)
        size = np.sort(rng.uniform(20, 26, shape), axis=-1)
        return (rng.choice([-1, 1], shape) * 10 ** size).astype(np.float32).astype(float)

    def test_two_quotients_by_maxima(self):
        spec = kernel("O = +/ (unit(x) * unit(y))")
        equal = np.full((3, 4), 1e25)
        self.check(spec, {"x": equal, "y": equal}, np.full(3, 4.0))
        x, y = self.magnitudes(5, 67), self.magnitudes(5, 67)
        m, k = (np.abs(v).max(axis=1, keepdims=True) for v in (x, y))
        self.check(spec, {"x": x, "y": y}, (x / m * (y / k)).sum(axis=1))
        zero = np.zeros((2, 5))
        self.check(spec, {"x": zero, "y": zero}, np.full(2, np.nan))
        self.check(spec, {"x": np.zeros((2, 0)), "y": np.zeros((2, 0))}, np.zeros(2))

    def test_small_magnitudes(self):
        spec = kernel("O = +/ (unit(x) * unit(y))")
        x = np.full((3, 4), 1e-30)
        self.check(spec, {"x": x, "y": x}, np.full(3, 4.0))

    def test_a_scalar_beside_the_quotients_leaves_alone(self):
        spec = kernel("O = +/ (unit(x) * (a * unit(y)))", PAIRS + ", a : f32")
        x = np.full((3, 4), 1e25)
        self.check(spec, {"x": x, "y": x, "a": 0.5}, np.full(3, 2.0))

    def test_carried_axis(self):
        spec = kernel("O = unit(x) +.* y", "x : f32[N, M], y : f32[M, 8]",
                      "O : f32[N, 8]")
        x, y = self.magnitudes(9, 41), self.magnitudes(8, 41).T
        m = np.abs(x).max(axis=1, keepdims=True)
        self.check(spec, {"x": x, "y": y}, (x / m) @ y)

    def test_maximum_of_another_range(self):
        spec = kernel("m = max/ z  O = +/ ([i, j] x[i, j] / m[i] * y[i, j])",
                      PAIRS + ", z : f32[N, P]", symbols="N, M, P")
        x = np.full((3, 4), 1e25)
        self.check(spec, {"x": x, "y": x, "z": x[:, :2]}, np.full(3, 4e25), count=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
