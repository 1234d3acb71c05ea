# RUN: %python %s
"""otherwise(x, v): x where it is present, v elsewhere, against NumPy.

Masks by indices, by arrays, of masks, through selections and catenations, of reductions,
of both operands, of integers and truths; scores beside the attention that they give.
"""
import unittest

import numpy as np

import moa_testing as mt

SIZES = ((0, 3), (1, 1), (7, 20), (65, 130)) if mt.TARGET == "device" else ((0, 3), (3, 0), (1, 1), (17, 65), (113, 203))

FORMS = """kernel forms[N, M](x : f32[N, M], y : f32[N, M], p : bool[N, M], q : bool[N, M], k : i32[N, M])
    -> (causal : f32[N, M], both : f32[N, M], twice : f32[N, M], picked : f32[N, M], whole : f32[N, M],
        inside : f32[N, M], row : f32[N], count : i32[N], truth : bool[N, M], integer : i32[N, M], joined : f32[2*N, M])
{
  seen    = mask([i, j] j <= i, x)
  causal  = otherwise(seen, -inf)
  both    = otherwise(mask(p, x), mask(q, y))
  twice   = otherwise(otherwise(mask(p, x), mask(q, y)), -1.0)
  picked  = otherwise(select(q, mask(p, x), y), 7.0)
  whole   = otherwise(x, y)
  inside  = mask(q, otherwise(mask(p, x), y) + 1)
  row     = +/ otherwise(mask(p, x), y)
  count   = +/ otherwise(mask(p, k), 1)
  truth   = otherwise(mask(p, k > 3), q)
  integer = otherwise(mask(p, k), -1)
  joined  = otherwise(cat(mask(p, x), y), 0.5)
}
"""
SCORES = """kernel scores[B, H, N, M; T : float = f32, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], length : i32[B], scale : f32)
    -> (O : T[B, H, N, D], L : f32[B, H, N, M], top : f32[B, H, N])
{
  S = mask([b, _, i, j] j <= i + (M - N) and j < length[b], (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
  L = otherwise(S, -inf)
  top = max/ otherwise(S, -1e30)
}
"""


class Otherwise(mt.KernelTest):

    def test_forms(self):
        kernel = mt.make_kernel(FORMS)
        for n, m in SIZES:
            rng = np.random.default_rng([n, m])
            x, y = (rng.standard_normal((n, m)).astype(np.float32) for _ in range(2))
            p, q = (rng.integers(0, 2, size=(n, m)).astype(bool) for _ in range(2))
            k = rng.integers(0, 8, size=(n, m))
            filled = np.where(p, x, y)
            expected = {
                "causal": np.where(np.tril(np.ones((n, m), bool)), x, -np.inf),
                "both": np.where(p, x, np.where(q, y, 0)), "twice": np.where(p, x, np.where(q, y, -1)),
                "picked": np.where(q, np.where(p, x, 7), y), "whole": x,
                "inside": np.where(q, filled + np.float32(1), 0), "row": filled.astype(np.float64).sum(axis=1),
                "count": np.where(p, k, 1).sum(axis=1), "truth": np.where(p, k > 3, q), "integer": np.where(p, k, -1),
                "joined": np.concatenate([np.where(p, x, 0.5), y])}
            got = kernel.results({"x": x, "y": y, "p": p, "q": q, "k": k},
                                 {name: value.shape for name, value in expected.items()})
            self.assert_close(got, {"row": expected.pop("row")}, mt.BOUNDS["f32"], f"N, M = {n}, {m}")
            for name, value in expected.items():
                np.testing.assert_array_equal(got[name], value, f"{name}, N, M = {n}, {m}")

    def test_scores(self):
        for kind in ("f32", "bf16"):
            kernel = mt.make_kernel(SCORES, T=kind)
            for n, m in SIZES:
                rng = np.random.default_rng([n, m])
                inputs = {"Q": rng.standard_normal((2, 2, n, 64)), "K": rng.standard_normal((2, 2, m, 64)),
                          "V": rng.standard_normal((2, 2, m, 64)), "length": np.array([m // 2, m]), "scale": 0.125}
                seen = kernel.seen_by_kernel(inputs)
                score = np.einsum("bhnd,bhmd->bhnm", seen["Q"], seen["K"]) * seen["scale"]
                i, j = np.arange(n)[:, None], np.arange(m)
                here = (j <= i + (m - n)) & (j < seen["length"][:, None, None, None])
                score = np.where(here, score, -np.inf)
                top = np.where(here, score, -1e30).max(axis=-1, initial=-np.inf)
                weight = np.exp(score - np.where(np.isfinite(top) & (top > -1e30), top, 0)[..., None])
                total = weight.sum(axis=-1, keepdims=True)
                expected = {"O": weight / np.where(total, total, 1) @ seen["V"], "L": score, "top": top}
                got = kernel.results(inputs, {name: value.shape for name, value in expected.items()})
                self.assert_close(got, {"O": expected["O"]}, mt.BOUNDS[kind], f"{kind} {n} {m}")
                self.assert_close(got, {"L": expected["L"], "top": expected["top"]}, 2e-6, f"{kind} {n} {m}")


if __name__ == "__main__":
    mt.main()
