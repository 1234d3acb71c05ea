# RUN: %python %s
"""Tiles whose rows stand at equal distances, on the interpreter of GPU programs, against NumPy in float64."""
import unittest

import numpy as np

import device
import moa_testing as mt

SPECIFICATION = """kernel k[H, N, M; D = 64](Q : bf16[H, N, D], K : bf16[H, M, D], V : bf16[H, M, D], scale : f32) -> O : f32[H, N{rows}, D]
{{ O = softmax((({query}) +.* transpose([h, j < {keys}] K[h, {step} * j])) * scale) +.* ([h, j < {keys}] V[h, {step} * j]) }}
"""


def attention(q, k, v, scale):
    s = scale * q @ k.transpose(0, 2, 1)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


class Steps(unittest.TestCase):

    def check(self, specification, n, m, rows, keys):
        kernel = device.Kernel(specification)
        rng = np.random.default_rng(m)
        values = {"Q": rng.standard_normal((2, n, 64)), "K": rng.standard_normal((2, m, 64)), "V": rng.standard_normal((2, m, 64)),
                  "scale": 0.125}
        for name in "KV":  # what no row sees is no number
            seen = np.zeros(m, bool)
            seen[keys] = True
            values[name][:, ~seen] = np.nan
        inputs = {k: mt.from_bf16(mt.to_bf16(v)) if k != "scale" else v for k, v in values.items()}
        q = inputs["Q"][:, rows].astype(np.float64)
        found = kernel.run(inputs, {"O": q.shape})["O"]
        k, v = (inputs[name][:, keys].astype(np.float64) for name in "KV")
        np.testing.assert_allclose(found, attention(q, k, v, 0.125), atol=4e-3)

    def test_keys(self):
        """There are keys behind the last that is read, whether a tile reaches there or not: they are no numbers."""
        for m in (2, 3, 151, 256, 257, 515):
            for text, step, count in (("M - 1", 1, m - 1), ("M / 2", 2, m // 2), ("(M + 1) / 2", 2, (m + 1) // 2), ("(M + 4) / 5", 5, (m + 4) // 5)):
                with self.subTest(m=m, keys=text):
                    self.check(SPECIFICATION.format(rows="", query="Q", keys=text, step=step), 70, m, slice(None),
                               np.arange(count) * step)

    def test_rows(self):
        for n in (129, 200):
            with self.subTest(n=n):
                self.check(SPECIFICATION.format(rows=" / 3", query="[h, n < N / 3] Q[h, 3 * n]", keys="M", step=1), n, 130,
                           np.arange(n // 3) * 3, slice(None))


if __name__ == "__main__":
    mt.main()
