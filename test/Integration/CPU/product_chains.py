# RUN: %python %s
"""Chains of products, against NumPy: each product is computed once, whoever reads it, so that the work grows with the length of the
chain and not as a power of the sizes."""
import unittest

import numpy as np

import moa_testing as mt

SIZES = (1, 5, 33) if mt.TARGET == "device" else (0, 1, 5, 33, 64, 130)

# The inverse of I − A for A below the diagonal, by repeated squares: (I + A)(I + A²)(I + A⁴) ….
STEPS = "\n".join(f"  U{k} = U{k - 1} + A{k - 1} +.* U{k - 1}\n  A{k} = A{k - 1} +.* A{k - 1}" for k in range(1, 8))
GIVEN = "kernel k[N; D = 8](A0 : f32[N, N], U0 : f32[N, D]) -> U7 : f32[N, D]\n{\n" + STEPS + "\n}\n"

# A chunk of the delta rule: A = −tril(K·Kᵀ, −1), whose elements no array has.
CHUNK = ("kernel k[B; N = 64, D = 8](K : f32[B, N, D], U0 : f32[B, N, D]) -> U7 : f32[B, N, D]\n{\n"
         "  A0 = [b < B, i < N, j < N] select(j < i, -0.2 * (+/ (K[b, i] * K[b, j])), 0.0)\n" + STEPS + "\n}\n")


class ProductChains(mt.KernelTest):

    def test_given(self):
        kernel = mt.make_kernel(GIVEN)
        for n in SIZES:
            with self.subTest(n=n):
                rng = np.random.default_rng(2)
                inputs = {"A0": np.tril(rng.standard_normal((n, n)) * 0.2, -1), "U0": rng.standard_normal((n, 8))}
                seen = kernel.seen_by_kernel(inputs)
                expected = {"U7": np.linalg.solve(np.eye(n) - seen["A0"], seen["U0"])}
                results = kernel.results(inputs, {"U7": (n, 8)})
                self.assert_close(results, expected, mt.BOUNDS["f32"], f"given {n}")

    def test_chunk(self):
        for n in (64,) if mt.TARGET != "device" else (16,):
            kernel = mt.make_kernel(CHUNK, N=n)
            for b in (1, 3):
                with self.subTest(n=n, b=b):
                    rng = np.random.default_rng(2)
                    k = rng.standard_normal((b, n, 8))
                    inputs = {"K": k / np.linalg.norm(k, axis=-1, keepdims=True), "U0": rng.standard_normal((b, n, 8))}
                    seen = kernel.seen_by_kernel(inputs)
                    a = np.tril(-0.2 * seen["K"] @ seen["K"].transpose(0, 2, 1), -1)
                    expected = {"U7": np.linalg.solve(np.eye(n) - a, seen["U0"])}
                    results = kernel.results(inputs, {"U7": (b, n, 8)})
                    self.assert_close(results, expected, mt.BOUNDS["f32"], f"chunk {n} {b}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
