# RUN: %python %s
"""Softmax of finite scores of any size, against NumPy in float64: windows by a finite score, additive masks with the least float,
scores times factors up to 2^120. Exponents keep their IEEE meaning: a weight depends on x - max x, which is rounded once.

Queries and keys are small integers, so that their products are exact and many scores are equal."""
import unittest

import numpy as np

import moa_testing as mt

mt.compile_soonest()

SIZES = [(1, 1), (70, 130), (300, 300)] if mt.TARGET == "device" else [(1, 1), (64, 64), (70, 130), (300, 300), (513, 700)]
LEAST = float(np.finfo(np.float32).min)
HEAD = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], {}) -> (O : f32[H, N, D], lse : f32[H, N])
{{
  {}
}}
"""
SOFTMAX = "O = softmax(S) +.* V\n  lse = logsumexp(S)"
WINDOW = HEAD.format("w : i64, low : f32", "S = select([_, i, j] j <= i and i - j < w, (Q +.* transpose(K)) * 0.125, low)\n  " + SOFTMAX)
ADDITIVE = HEAD.format("a : f32[N, M]", "S = (Q +.* transpose(K)) * 0.125 + ([_, i, j] a[i, j])\n  " + SOFTMAX)
CAUSAL_ADDITIVE = HEAD.format("a : f32[N, M]", "S = mask([_, i, j] j <= i, (Q +.* transpose(K)) * 0.125 + ([_, i, j] a[i, j]))\n  " + SOFTMAX)
PLAIN = HEAD.format("c : f32", "S = (Q +.* transpose(K)) * c\n  " + SOFTMAX)
CAUSAL = HEAD.format("c : f32", "S = mask([_, i, j] j <= i, (Q +.* transpose(K)) * c)\n  " + SOFTMAX)
BANDED = HEAD.format("c : f32", "S = mask([_, i, j] j <= i and i - j < 40, (Q +.* transpose(K)) * c)\n  " + SOFTMAX)
# A sum with an element for a number of the row, and with 1.
SINK = HEAD.format("c : f32, sink : f32[N]", """S = (Q +.* transpose(K)) * c
  m = max(max/ S, [_, i] sink[i])
  E = exp(S - ([h, i, _] m[h, i]))
  Z = (+/ E) + exp(([_, i] sink[i]) - m)
  O = (E +.* V) / ([h, i, _] Z[h, i])
  lse = m + log(Z)""")
# Exponents from a number of the row that is read, as backward passes have it; least scores; two maxima, of which one is masked.
FROM_ROW = HEAD.format("c : f32, L : f32[H, N]", """S = (Q +.* transpose(K)) * c
  P = exp(S - ([h, i, _] L[h, i]))
  O = P +.* V
  lse = +/ P""")
FROM_KEY = HEAD.format("c : f32, L : f32[H, M]", """S = (Q +.* transpose(K)) * c
  P = exp(S - ([h, _, j] L[h, j]))
  O = P +.* V
  lse = +/ P""")
LEAST_SCORES = HEAD.format("c : f32", """S = (Q +.* transpose(K)) * c
  m = min/ S
  E = exp(([h, i, _] m[h, i]) - S)
  Z = +/ E
  O = (E +.* V) / ([h, i, _] Z[h, i])
  lse = log(Z) - m""")
ENTROPY = HEAD.format("c : f32", """S = (Q +.* transpose(K)) * c
  m = max/ S
  E = exp(S - ([h, i, _] m[h, i]))
  Z = +/ E
  O = (E +.* V) / ([h, i, _] Z[h, i])
  lse = (+/ (E * tanh(S))) / Z""")
SIGMOID = HEAD.format("c : f32", """S = (Q +.* transpose(K)) * c
  P = 1.0 / (1.0 + exp(-S))
  O = P +.* V
  lse = +/ P""")
CAPPED = HEAD.format("c : f32", "S = 30.0 * tanh((Q +.* transpose(K)) * c / 30.0)\n  " + SOFTMAX)
# Scores that are integers on tensor cores, also with a number of the row.
BYTES = PLAIN.replace("Q : T", "Q : i8").replace("K : T", "K : i8").replace("(Q +.* transpose(K))", "f32(Q +.* transpose(K))")
BYTES_SINK = SINK.replace("Q : T", "Q : i8").replace("K : T", "K : i8").replace("(Q +.* transpose(K))", "f32(Q +.* transpose(K))")
# Factors of scores: exact ones and others, both signs, as large as scores of some tens allow.
FACTORS = [0.125, 2.0**13, -2.0**13, 1e5, 3e9, -3e9, 1e20, 1e30, -1e30, 2.0**120]


def softmax(s, v, seen=None):
    """The result and the log-sum-exp of scores in float64; 0 and -inf where nothing is seen."""
    seen = np.ones(s.shape, bool) if seen is None else seen
    most = np.where(seen, s, -np.inf).max(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        p = np.where(seen, np.exp(s - np.where(np.isinf(most), 0, most)), 0)
        z = p.sum(-1, keepdims=True)
        return np.where(z > 0, p @ v / np.where(z > 0, z, 1), 0), (most + np.log(z))[..., 0]


class LargeScores(mt.KernelTest):

    def inputs(self, n, m, d=64):
        rng = np.random.default_rng(n * 1000 + m)
        return {"Q": rng.integers(-2, 3, (2, n, d)), "K": rng.integers(-2, 3, (2, m, d)), "V": rng.standard_normal((2, m, d))}

    def check(self, spec, kind, n, m, more, meaning, d=64, atol=2e-2):
        """`meaning` has of exact products and the values both results."""
        kernel = self.kernel(spec, kind, d)
        inputs = {**self.inputs(n, m, d), **more}
        exact = kernel.seen_by_kernel(inputs)
        q, k, v = (exact[x].astype(np.float64) for x in ("Q", "K", "V"))
        found = kernel.results(inputs, {"O": (2, n, d), "lse": (2, n)})
        wanted = meaning(q @ k.transpose(0, 2, 1), v, np.arange(n)[:, None], np.arange(m))
        what = f"{kind} {n}x{m} {more if all(np.isscalar(x) for x in more.values()) else ''}"
        np.testing.assert_allclose(found["O"], wanted[0], rtol=0, atol=atol, err_msg=what)
        np.testing.assert_allclose(found["lse"], wanted[1], rtol=2e-5, atol=2e-3, err_msg="lse " + what)

    kernels = {}

    def kernel(self, spec, kind, d):
        key = spec, kind, d
        if key not in self.kernels:
            self.kernels[key] = mt.make_kernel(spec, T=kind, D=d)
        return self.kernels[key]

    def kinds(self):
        return ("bf16", "f16", "f32") if mt.TARGET == "cpu" else ("bf16", "f16")

    def test_windows_by_a_finite_score(self):
        for kind in self.kinds():
            for n, m in SIZES:
                for w in (0, 16):
                    for low in (-1e30, LEAST, -1e4, -5e9):
                        def meaning(s, v, i, j):
                            return softmax(np.where((j <= i) & (i - j < w), s * 0.125, np.float32(low)), v)
                        self.check(WINDOW, kind, n, m, {"w": w, "low": low}, meaning)

    def test_additive_masks(self):
        """Padding on either side, rows without a key, and a mask of which a part is twice as low as a float can be."""
        for kind in self.kinds():
            for n, m in SIZES:
                masks = {side: np.zeros((n, m)) for side in ("left", "right", "rows", "twice")}
                masks["left"][:, :m * 2 // 3] = LEAST
                masks["right"][:, m // 3:] = LEAST
                masks["rows"][::2] = LEAST
                masks["rows"][1::4, m // 2:] = LEAST
                masks["twice"][:, ::2] = -np.inf
                masks["twice"][:, 1::4] = LEAST
                for name, a in masks.items():
                    for spec, isCausal in ((ADDITIVE, False), (CAUSAL_ADDITIVE, True)):
                        if name == "twice" and (m == 1 or isCausal):
                            continue # a row of -inf alone is NaN
                        def meaning(s, v, i, j):
                            x = (s * 0.125 + a.astype(np.float32)).astype(np.float32).astype(np.float64)
                            return softmax(x, v, np.broadcast_to(j <= i, s.shape) if isCausal else None)
                        self.check(spec, kind, n, m, {"a": a}, meaning)

    def test_factors(self):
        for kind in self.kinds():
            for spec, sees in ((PLAIN, None), (CAUSAL, lambda i, j: j <= i), (BANDED, lambda i, j: (j <= i) & (i - j < 40))):
                for n, m in SIZES[:2]:
                    for c in FACTORS:
                        def meaning(s, v, i, j):
                            x = (s.astype(np.float32) * np.float32(c)).astype(np.float64)
                            return softmax(x, v, sees and np.broadcast_to(sees(i, j), s.shape))
                        self.check(spec, kind, n, m, {"c": c}, meaning)

    def test_integers(self):
        for n, m in SIZES[:2] + [(64, 400)]: # with a tile that all rows see
            for c in FACTORS:
                x = lambda s: (s.astype(np.float32) * np.float32(c)).astype(np.float64)
                self.check(BYTES, "bf16", n, m, {"c": c}, lambda s, v, i, j: softmax(x(s), v))
                for sink in (np.full(n, LEAST), np.where(np.arange(n) % 2, 1e30, -1e30), np.arange(n) * 3e3 + 0.3 * abs(c)):
                    def meaning(s, v, i, j):
                        rows = np.broadcast_to(sink.astype(np.float32)[:, None], (2, n, 1))
                        return softmax(np.concatenate([x(s), rows], -1), np.concatenate([v, np.zeros((2, 1, v.shape[-1]))], 1))
                    self.check(BYTES_SINK, "bf16", n, m, {"c": c, "sink": sink}, meaning)

    def test_wide_heads(self):
        for d in (128, 256) if mt.TARGET != "device" else (128,):
            for c in (0.0883883461, 1e5, 1e30):
                def meaning(s, v, i, j):
                    return softmax((s.astype(np.float32) * np.float32(c)).astype(np.float64), v, np.broadcast_to(j <= i, s.shape))
                self.check(CAUSAL, "bf16", 70, 130, {"c": c}, meaning, d=d)

    def test_sinks(self):
        for kind in self.kinds():
            for n, m in SIZES[:2]:
                for c in FACTORS:
                    for sink in (np.zeros(n), np.full(n, LEAST), np.where(np.arange(n) % 2, 1e30, -1e30), np.arange(n) * 3e3):
                        def meaning(s, v, i, j):
                            x = (s.astype(np.float32) * np.float32(c)).astype(np.float64)
                            rows = np.broadcast_to(sink.astype(np.float32)[:, None], (2, n, 1))
                            return softmax(np.concatenate([x, rows], -1), np.concatenate([v, np.zeros((2, 1, v.shape[-1]))], 1))
                        self.check(SINK, kind, n, m, {"c": c, "sink": sink}, meaning)

    def test_numbers_that_are_read(self):
        for kind in self.kinds():
            for n, m in SIZES[:2]:
                for c in FACTORS:
                    s = (lambda x: (x["Q"] @ x["K"].transpose(0, 2, 1)).astype(np.float32) * np.float32(c))(self.inputs(n, m))
                    for spec, axis in ((FROM_ROW, -1), (FROM_KEY, -2)):
                        most = s.max(axis)
                        def meaning(exact, v, i, j):
                            p = np.exp(s.astype(np.float64) - np.expand_dims(most.astype(np.float64), axis))
                            return p @ v, p.sum(-1)
                        # Few weights are small integers' sums: the error grows with them.
                        self.check(spec, kind, n, m, {"c": c, "L": most}, meaning, atol=6e-2)

    def test_least_scores(self):
        for kind in self.kinds():
            for n, m in SIZES[:2]:
                for c in FACTORS:
                    def meaning(s, v, i, j):
                        return softmax(-(s.astype(np.float32) * np.float32(c)).astype(np.float64), v)
                    self.check(LEAST_SCORES, kind, n, m, {"c": c}, meaning)

    def test_scores_with_other_uses(self):
        for kind in self.kinds():
            for n, m in SIZES[:2]:
                for c in FACTORS:
                    def meaning(s, v, i, j):
                        x = (s.astype(np.float32) * np.float32(c)).astype(np.float64)
                        e = np.exp(x - x.max(-1, keepdims=True))
                        z = e.sum(-1)
                        return e @ v / z[..., None], (e * np.tanh(x)).sum(-1) / z
                    self.check(ENTROPY, kind, n, m, {"c": c}, meaning)

    def test_bounded_functions(self):
        for kind in self.kinds():
            for n, m in SIZES[:2]:
                for c in FACTORS:
                    def logistic(s, v, i, j):
                        x = (s.astype(np.float32) * np.float32(c)).astype(np.float64)
                        with np.errstate(over="ignore"):
                            p = 1 / (1 + np.exp(-x))
                        return p @ v, p.sum(-1)
                    self.check(SIGMOID, kind, n, m, {"c": c}, logistic, atol=0.2)

                    def capped(s, v, i, j):
                        return softmax(30 * np.tanh((s.astype(np.float32) * np.float32(c)).astype(np.float64) / 30), v)
                    self.check(CAPPED, kind, n, m, {"c": c}, capped)


if __name__ == "__main__":
    unittest.main()
