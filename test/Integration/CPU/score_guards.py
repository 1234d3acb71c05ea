# RUN: %python %s
"""Masks that read the scores they hide, against NumPy in float64: a threshold of scaled scores, what is left of scores that a selection
made infinite, two scores, functions of scores, next to masks of places and of arrays."""
import unittest

import numpy as np

import moa_testing as mt

mt.compile_soonest()

SIZES = [(1, 1), (70, 130), (150, 200)] if mt.TARGET == "device" else [(1, 1), (64, 64), (70, 130), (300, 513)]
SPEC = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], W : T[H, N, D], m : bool[N, M])
    -> (O : f32[H, N, D], lse : f32[H, N])
{{
  {}
  O = softmax(P) +.* V
  lse = logsumexp(P)
}}
"""
SCORE = "S = (Q +.* transpose(K)) * 0.125"
OTHER = "R = (W +.* transpose(K)) * 0.25"
# How scores are made, and of scores s, others r, rows i, keys j and an array m which are seen, and as what.
FORMS = {
    "threshold": (f"{SCORE}\n  P = mask(S > 0.0, S)", lambda s, r, i, j, m: (s > 0, s)),
    "unscaled": ("S = Q +.* transpose(K)\n  P = mask(S > 1.0, S)", lambda s, r, i, j, m: (8 * s > 1, 8 * s)),
    "infinite": (f"{SCORE}\n  A = select([_, i, j] i >= j, S, -inf)\n  P = mask(A != -inf, A)",
                 lambda s, r, i, j, m: (np.broadcast_to(i >= j, s.shape), s)),
    "two scores": (f"{SCORE}\n  {OTHER}\n  P = mask(S > R, S)", lambda s, r, i, j, m: (s > r, s)),
    "another score": (f"{SCORE}\n  {OTHER}\n  P = mask(R > 0.5, S)", lambda s, r, i, j, m: (r > 0.5, s)),
    "function": (f"{SCORE}\n  P = mask(abs(S) < 0.5 or S * S > 2.0, 3.0 * tanh(S))",
                 lambda s, r, i, j, m: ((abs(s) < 0.5) | (s * s > 2), 3 * np.tanh(s))),
    "places": (f"{SCORE}\n  P = mask([h, i, j] j <= i and S[h, i, j] > 0.0, S)",
               lambda s, r, i, j, m: ((j <= i) & (s > 0), s)),
    "places first": (f"{SCORE}\n  A = mask([_, i, j] j <= i and i - j < 50, S)\n  P = mask(S > 0.0, A)",
                     lambda s, r, i, j, m: ((j <= i) & (i - j < 50) & (s > 0), s)),
    "array": (f"{SCORE}\n  P = mask(S < 1.0 and ([_, i, j] m[i, j]), S)", lambda s, r, i, j, m: ((s < 1) & m, s)),
}


class ScoreGuards(mt.KernelTest):

    def check(self, name, kind, d=64):
        text, meaning = FORMS[name]
        kernel = mt.make_kernel(SPEC.format(text), T=kind, D=d)
        for n, m in SIZES:
            rng = np.random.default_rng(n * 1000 + m)
            # Products of quarters are exact, so that every comparison has one answer.
            inputs = {x: rng.integers(-3, 4, (2, size, d)) / 4 for x, size in (("Q", n), ("K", m), ("W", n))}
            inputs["V"], inputs["m"] = rng.standard_normal((2, m, d)), rng.integers(0, 2, (n, m)) > 0
            exact = kernel.seen_by_kernel(inputs)
            q, k, w, v = (exact[x].astype(np.float64) for x in "QKWV")
            s, r = q @ k.transpose(0, 2, 1) * 0.125, w @ k.transpose(0, 2, 1) * 0.25
            seen, x = meaning(s, r, np.arange(n)[:, None], np.arange(m), inputs["m"])
            p = np.where(seen, np.exp(x), 0)
            z = p.sum(-1)
            with np.errstate(divide="ignore"):
                wanted = {"O": p @ v / np.where(z > 0, z, 1)[..., None], "lse": np.log(z)}
            found = kernel.results(inputs, {"O": (2, n, d), "lse": (2, n)})
            for output, atol in (("O", 2e-2), ("lse", 1e-4)):
                np.testing.assert_allclose(found[output], wanted[output], rtol=0, atol=atol,
                                           err_msg=f"{output}, {name} {kind} {n}x{m}")

    def test_forms(self):
        for kind in ("bf16", "f32") if mt.TARGET == "cpu" else ("bf16", "f16"):
            for name in FORMS:
                self.check(name, kind)

    def test_wide_heads(self):
        for name in ("threshold", "infinite", "places"):
            self.check(name, "bf16", d=128)


if __name__ == "__main__":
    unittest.main()
