# RUN: %python %s
"""Arrays with the heads behind the rows, against NumPy: causal, with grouped heads."""
import unittest

import numpy as np

import moa_testing as mt

SPEC = """kernel k[B, N, H, M, G; T : float = bf16, D = 64](
    Q : T[B, N, H, D], K : T[B, M, G, D], V : T[B, M, G, D], scale : f32)
    -> (O : T[B, N, H, D], lse : f32[B, N, H])
  require H % G == 0
{
  Qh = [b < B, h < H, n < N] Q[b, n, h]
  Kh = [b < B, h < H, m < M] K[b, m, h / (H/G)]
  Vh = [b < B, h < H, m < M] V[b, m, h / (H/G)]
  S = mask([_, _, i, j] j <= i + (M - N), (Qh +.* transpose(Kh)) * scale)
  P = softmax(S) +.* Vh
  L = logsumexp(S)
  O = [b < B, n < N, h < H] P[b, h, n]
  lse = [b < B, n < N, h < H] L[b, h, n]
}
"""
BOUNDS = {"f64": 1e-14, "f32": 2e-6, "bf16": 3e-3, "f16": 4e-4}


def expected(Q, K, V, scale):
    q, k, v = (np.moveaxis(x, 2, 1) for x in (Q, K, V))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) * scale
    n, m = s.shape[-2:]
    seen = np.arange(m) <= np.arange(n)[:, None] + m - n
    s = np.where(seen, s, -np.inf)
    top = np.maximum(s.max(-1, keepdims=True), np.finfo(s.dtype).min)
    e = np.where(seen, np.exp(s - top), 0)
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, top + np.log(total), -np.inf)[..., 0]
    out = np.where(total > 0, e / np.where(total > 0, total, 1), 0) @ v
    return {"O": np.moveaxis(out, 1, 2), "lse": np.moveaxis(lse, 1, 2)}


class Layouts(mt.KernelTest):

    def test_heads_behind_rows(self):
        for kind in ("f64", "f32", "bf16", "f16"):
            kernel = mt.make_kernel(SPEC, T=kind)
            for b, n, h, m, g in ((1, 1, 2, 1, 1), (2, 70, 4, 70, 2), (1, 200, 3, 333, 3), (1, 90, 2, 40, 1)):
                with self.subTest(type=kind, sizes=(b, n, h, m, g)):
                    rng = np.random.default_rng(n + 1000 * m)
                    inputs = {"Q": rng.standard_normal((b, n, h, 64)), "K": rng.standard_normal((b, m, g, 64)),
                              "V": rng.standard_normal((b, m, g, 64)), "scale": 0.125}
                    found = kernel.results(inputs, {"O": (b, n, h, 64), "lse": (b, n, h)})
                    wanted = expected(**kernel.seen_by_kernel(inputs))
                    what = f"{kind} {(b, n, h, m, g)}"
                    self.assert_close(found, {"O": wanted["O"]}, BOUNDS[kind], what)
                    # An output of f32 whatever the operands are.
                    self.assert_close(found, {"lse": wanted["lse"]}, max(BOUNDS[kind], 6e-8), what)


if __name__ == "__main__":
    unittest.main(verbosity=2)
