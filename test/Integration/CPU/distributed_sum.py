# RUN: %python %s
"""A contraction with a difference of weights, in one pass by R0.

The operand of the contraction is the difference. Its parts nearly cancel, so to
round each of them to bf16 would cost more than to round the difference once.
"""
import unittest

import numpy as np

import moa_testing as mt

SPEC = """kernel k[H, N, M; T : float = bf16, D = 16](
    Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], lam : f32) -> O : T[H, N, D]
{
  S = Q +.* transpose(K)
  O = (softmax(S) - lam * softmax(2 * S)) +.* V
}
"""


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class DistributedSum(mt.KernelTest):

    def compare(self, kind, lam, n, m):
        kernel = mt.make_kernel(SPEC, T=kind)
        for seed in range(4):
            rng = np.random.default_rng([seed, n, m])
            inputs = {"Q": rng.standard_normal((2, n, 16)), "K": rng.standard_normal((2, m, 16)),
                      "V": rng.standard_normal((2, m, 16)), "lam": lam}
            seen = kernel.seen_by_kernel(inputs)
            s = seen["Q"] @ seen["K"].swapaxes(1, 2)
            expected = (softmax(s) - seen["lam"] * softmax(2 * s)) @ seen["V"]
            results = kernel.results(inputs, {"O": expected.shape})
            self.assert_close(results, {"O": expected}, mt.BOUNDS[kind],
                              f"{kind} lam={lam} N={n} M={m} seed={seed}")

    def test_every_type(self):
        for kind in ("f64", "f32", "bf16"):
            for lam in (0.5, 0.9):
                for n, m in ((37, 53), (5, 200)):
                    with self.subTest(kind=kind, lam=lam, n=n, m=m):
                        self.compare(kind, lam, n, m)


if __name__ == "__main__":
    unittest.main(verbosity=2)
