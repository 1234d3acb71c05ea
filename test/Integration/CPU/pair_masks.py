# RUN: %python %s
"""Masks that read memory at every pair of query and key, combined with others: float arrays against a
threshold, two arrays at once, one by columns, named cells, diagonals, and equality of truths.

A GPU's kernel visits the tiles that a table tells of; NaN stands in the keys and values that no query sees.
"""
import unittest

import numpy as np

import moa_testing as mt

D = 16
TEXT = """
kernel pairs[B, H, N, M{symbols}; T : float = bf16, D = 16](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32, {parameters})
    -> O : T[B, H, N, D]{requires}
{{
  S = mask({mask}, (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
}}
"""


def truths(rng, shape, share=0.5):
    return rng.random(shape) < share


# Symbols, parameters and mask of a specification; its arrays; what it means.
CASES = {
    "floats above a threshold": (
        "", "X : f32[N, M], t : f32", "[_, _, i, j] X[i, j] > t",
        lambda rng, s: {"X": rng.standard_normal((s["N"], s["M"])), "t": 0.5},
        lambda a, b, h, i, j: a["X"][i, j] > a["t"]),
    "two arrays, one by columns": (
        "", "X : bool[N, M], Y : bool[B, M, N]", "[b, _, i, j] X[i, j] and not Y[b, j, i]",
        lambda rng, s: {"X": truths(rng, (s["N"], s["M"])), "Y": truths(rng, (s["B"], s["M"], s["N"]))},
        lambda a, b, h, i, j: a["X"][i, j] & ~a["Y"][b, j, i]),
    "named cells, and the first keys": (
        ", U, W", "X : bool[U, W], p : i32[N] in 0..U, q : i32[M] in 0..W", "[_, _, i, j] X[p[i], q[j]] or j < 3",
        lambda rng, s: {"X": truths(rng, (7, 9), 0.1), "p": np.sort(rng.integers(0, 7, s["N"])),
                        "q": np.sort(rng.integers(0, 9, s["M"]))},
        lambda a, b, h, i, j: a["X"][a["p"][i], a["q"][j]] | (j < 3)),
    "diagonals in front of an offset": (
        "", "X : bool[H, N + M], d : i32[N]", "[_, h, i, j] j <= i + d[i] and X[h, i + j]",
        lambda rng, s: {"X": truths(rng, (s["H"], s["N"] + s["M"]), 0.3), "d": rng.integers(-50, 50, s["N"])},
        lambda a, b, h, i, j: (j <= i + a["d"][i]) & a["X"][h, i + j]),
    "remainders of integers": (
        "", "X : i32[N, M], w : i32[B]", "[b, _, i, j] select(X[i, j] % 3 == 0, j <= i + w[b], X[i, j] > 5)",
        lambda rng, s: {"X": rng.integers(0, 10, (s["N"], s["M"])), "w": rng.integers(-50, 50, s["B"])},
        lambda a, b, h, i, j: np.where(a["X"][i, j] % 3 == 0, j <= i + a["w"][b], a["X"][i, j] > 5)),
    "starts of documents, whose numbers may be negative": (
        ", R, C", "doc : i32[R], start : i32[C]",
        "[_, _, i < N, j] j >= start[min(max(select(doc[i] < 0, doc[i] + C, doc[i]), 0), C - 1)] and i >= j",
        lambda rng, s: {"doc": rng.integers(-5, 5, s["N"] + 3), "start": rng.integers(0, max(s["N"] // 2, 1), 5)},
        lambda a, b, h, i, j: (j >= a["start"][a["doc"][i] % 5]) & (i >= j)),
    "equal truths off the diagonal": (
        "", "X : bool[N, M], Y : bool[N, M]", "[_, _, i, j] X[i, j] == Y[i, j] and i != j",
        lambda rng, s: {"X": truths(rng, (s["N"], s["M"])), "Y": truths(rng, (s["N"], s["M"]))},
        lambda a, b, h, i, j: (a["X"][i, j] == a["Y"][i, j]) & (i != j)),
}
SIZES = [(2, 2, 70, 130), (1, 2, 1, 200), (1, 1, 200, 5), (2, 1, 90, 331), (1, 1, 3, 0)]


class PairMasks(mt.KernelTest):

    def check(self, name, kernel, make, mean, sizes):
        rng = np.random.default_rng(3)
        B, H, N, M = sizes
        shape = dict(zip("BHNM", sizes))
        arrays = make(rng, shape)
        values = {name: mt.decode(mt.encode(rng.standard_normal((B, H, rows, D)), "bf16"), "bf16").astype(np.float64)
                  for name, rows in (("Q", N), ("K", M), ("V", M))}
        present = np.broadcast_to(mean(arrays, *np.ogrid[:B, :H, :N, :M]), sizes)
        scores = np.where(present, values["Q"] @ values["K"].swapaxes(-1, -2) / 4, -np.inf)
        most = scores.max(-1, keepdims=True, initial=-1e30)
        weights = np.exp(scores - most)
        total = weights.sum(-1, keepdims=True)
        expected = weights / np.where(total > 0, total, 1) @ values["V"]
        for operand in "KV":
            values[operand][~present.any(2)] = np.nan
        found = kernel.results({**values, "scale": 0.25, **arrays}, {"O": (B, H, N, D)})["O"]
        self.assertTrue(np.isfinite(found).all(), "what nobody sees reaches the output")
        self.assertTrue((found[~present.any(3)] == 0).all(), "rows that see nothing")
        if M:
            self.assert_close({"O": found}, {"O": expected}, 3e-3, name)

    def test_masks(self):
        for name, (symbols, parameters, mask, make, mean) in CASES.items():
            requires = " require N <= R and C >= 1" if "R, C" in symbols else ""
            text = TEXT.format(symbols=symbols, parameters=parameters, mask=mask, requires=requires)
            kernel = mt.make_kernel(text, T="bf16", D=D)
            for sizes in SIZES:
                with self.subTest(mask=name, sizes=sizes):
                    self.check(name, kernel, make, mean, sizes)


if __name__ == "__main__":
    unittest.main()
