# RUN: %python %s
"""Softmax whose largest score is at least a number of the row, and whose sum has an element for it, as attention with learned sinks,
against NumPy: one pass, in which the number is met once for a row and not at every key."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

SIZES = [(1, 1), (64, 64), (70, 130), (130, 257), (5, 0)] if mt.TARGET == "device" else \
    [(0, 5), (5, 0), (1, 1), (64, 128), (239, 517), (700, 1023)]

SPEC = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], sink : f32[H, N], e : i32[M])
    -> O : f32[H, N, D]
{{
  S = {}
  m = {}
  E = exp(S - ([h, i, _] m[h, i]))
  Z = (+/ E) + exp(sink - m)
  O = (E +.* V) / ([h, i, _] Z[h, i])
}}
"""
# The number is met by each score, or by the largest one, of which it is a function then that reads memory.
LARGEST = {"scores": "max/ (max(S, [h, i, _] sink[h, i]))", "largest": "max(max/ S, sink)"}
CLIPPED = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], sink : f32[H, N], e : i32[M])
    -> O : f32[H, N, D]
{{
  S = {}
  O = softmax(max(S, [h, i, _] sink[h, i])) +.* V
}}
"""
SCORES = "(Q +.* transpose(K)) * 0.125"
HIDDEN = {"none": SCORES, "places": f"mask([_, i, j] j + 3 <= i, {SCORES})", "array": f"mask([_, _, j] e[j] > 0, {SCORES})"}


class Sinks(mt.KernelTest):

    def test_one_pass(self):
        if mt.TARGET == "cuda":
            self.skipTest("what the compiler says is the same for all targets")
        for name, scores in HIDDEN.items():
            for largest in LARGEST.values():
                with tempfile.TemporaryDirectory() as directory:
                    source = os.path.join(directory, "k.moa")
                    with open(source, "w") as file:
                        file.write(SPEC.format(scores, largest))
                    text = mt.tool("moa-codegen", source, "--explain", "-o", os.path.join(directory, "k.o")).stdout
                self.assertIn("pass 1 over", text, name)
                self.assertNotIn("pass 2 over", text, name)

    def check(self, spec, name, kind, meaning):
        """`meaning` has of scores, −∞ where they are hidden, sinks and values the result, but for rows that see no key."""
        kernel = mt.make_kernel(spec, T=kind)
        for n, m in SIZES:
            rng = np.random.default_rng(n + m)
            sink = rng.standard_normal((2, n)) * 3 + np.repeat([[8], [-8]], n, axis=1)
            sink[:, 1::5] = -np.inf
            for e in (rng.integers(0, 2, m), np.zeros(m, int), np.arange(m) == m - 1)[:3 if name == "array" else 1]:
                inputs = {"Q": rng.standard_normal((2, n, 64)), "K": rng.standard_normal((2, m, 64)),
                          "V": rng.standard_normal((2, m, 64)), "sink": sink, "e": e.astype(np.int32)}
                q, k, v, c = (kernel.seen_by_kernel(inputs)[x].astype(np.float64) for x in ("Q", "K", "V", "sink"))
                found = kernel.results(inputs, {"O": (2, n, 64)})["O"]
                seen = {"none": np.ones((n, m), bool), "places": np.arange(m) + 3 <= np.arange(n)[:, None],
                        "array": np.broadcast_to(e > 0, (n, m))}[name]
                with np.errstate(invalid="ignore"):
                    wanted, empty = meaning(np.where(seen, q @ k.transpose(0, 2, 1) * 0.125, -np.inf), seen, c, v)
                none = np.broadcast_to(~seen.any(-1), c.shape)
                wanted[none] = empty[none][:, None]
                np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 if kind == "f32" else 2e-2,
                                           err_msg=f"{name} {kind} {n}x{m}")

    def test_sizes(self):
        def meaning(s, seen, c, v):
            most = np.maximum(s.max(-1, initial=-np.inf), c)
            p = np.exp(s - most[..., None])
            # Of no key: 0 beside the sink, or an infinite element where the maximum is that of nothing.
            return p @ v / (p.sum(-1) + np.exp(c - most))[..., None], np.where(np.isinf(c), np.nan, 0)

        for name, scores in HIDDEN.items():
            for kind in ("bf16", "f32") if mt.TARGET == "cpu" else ("bf16",):
                for largest in LARGEST.values():
                    self.check(SPEC.format(scores, largest), name, kind, meaning)

    def test_clipped_scores(self):
        """Terms with a bound that the fold needs for other states too."""
        def meaning(s, seen, c, v):
            s = np.where(seen, np.maximum(s, c[..., None]), -np.inf)
            p = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf))
            return p @ v / p.sum(-1, keepdims=True), np.zeros(c.shape)

        for name, scores in HIDDEN.items():
            self.check(CLIPPED.format(scores), name, "bf16", meaning)


if __name__ == "__main__":
    unittest.main()
