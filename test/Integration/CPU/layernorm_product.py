# RUN: %python %s
"""Layer normalisation followed by a product with a matrix, against NumPy."""
import unittest

import numpy as np

import moa_testing as mt
import references


class LayernormProduct(mt.KernelTest):

    def compare(self, kind, rows, width, columns):
        kernel = mt.make_kernel(mt.example("layernorm_product"), T=kind, D=width, E=columns)
        rng = np.random.default_rng([width, columns])
        for n in rows:
            inputs = {"x": 0.5 + rng.standard_normal((n, width)),
                      "gamma": rng.uniform(0.5, 1.5, width),
                      "beta": rng.standard_normal(width),
                      "W": rng.standard_normal((width, columns)), "eps": 1e-5}
            expected = references.layernorm_product(**kernel.seen_by_kernel(inputs))
            results = kernel.results(inputs, {"Y": expected.shape})
            self.assert_close(results, {"Y": expected}, mt.BOUNDS[kind],
                              f"{kind} {n} rows, {width} to {columns}")

    def test_sizes(self):
        for kind in ("f64", "f32", "bf16"):
            with self.subTest(kind=kind):
                self.compare(kind, (0, 1, 3, 16, 113, 799), 256, 128)

    def test_widths(self):
        for width, columns in ((64, 40), (37, 24), (1, 1), (100, 3)):
            with self.subTest(width=width, columns=columns):
                self.compare("f32", (5, 65), width, columns)


if __name__ == "__main__":
    unittest.main(verbosity=2)
