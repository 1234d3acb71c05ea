# RUN: %python %s
"""The scaled 2-norm of rows: a cascade of reductions that is no attention."""
import unittest

import numpy as np

import moa_testing as mt
import references


class ScaledNorm(mt.KernelTest):
    def compare(self, kind, x):
        kernel = mt.make_kernel(mt.example("scaled_norm"), T=kind)
        for rows, size in x:
            inputs = {"x": x[rows, size]}
            expected = references.scaled_norm(kernel.seen_by_kernel(inputs)["x"])
            results = kernel.results(inputs, {"norm": (rows,)})
            self.assert_close(results, {"norm": expected}, mt.BOUNDS[kind],
                              f"{kind} {rows} rows of {size}")

    def test_sizes(self):
        rng = np.random.default_rng(1)
        shapes = [(0, 5), (1, 1), (3, 7), (16, 64), (17, 1000), (203, 113), (5, 4099)]
        for kind in ("f64", "f32", "bf16"):
            self.compare(kind, {s: rng.standard_normal(s) for s in shapes})

    def test_nothing_overflows_or_vanishes(self):
        """Elements whose squares leave the range of the type."""
        rng = np.random.default_rng(2)
        for kind, scale in (("f64", 1e300), ("f64", 1e-300), ("f32", 1e37),
                            ("f32", 1e-30)):
            self.compare(kind, {(9, 300): scale * rng.uniform(-1, 1, (9, 300))})

    def test_zeros_among_the_elements(self):
        x = np.zeros((6, 50))
        x[:, 17] = 3.0
        x[:, 31] = -4.0
        self.compare("f64", {(6, 50): x})


if __name__ == "__main__":
    unittest.main(verbosity=2)
