# RUN: %python %s
"""One contraction under states without an axis, as a log-sum-exp of scores or the largest, against NumPy: what runs on the tensor
cores of a GPU without a second contraction."""
import unittest

import numpy as np

import moa_testing as mt

SIZES = [(1, 1), (64, 64), (70, 130), (200, 257), (5, 0)] if mt.TARGET == "device" else \
    [(0, 5), (5, 0), (1, 1), (64, 128), (239, 517), (1024, 1023)]

STATISTICS = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], b : f32[H, M])
    -> (lse : f32[H, N], most : f32[H, N], squares : f32[H, N])
{
  S = (Q +.* transpose(K)) * 0.125 - [h, _, j] b[h, j]
  lse = logsumexp(S)
  most = max/ S
  squares = +/ (S * S)
}
"""
CAUSAL = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], b : f32[H, M])
    -> (lse : f32[H, N], most : f32[H, N], squares : f32[H, N])
{
  S = mask([_, i, j] j <= i + (M - N), (Q +.* transpose(K)) * 0.125 - [h, _, j] b[h, j])
  lse = logsumexp(S)
  most = max/ S
  squares = +/ (S * S)
}
"""

# Terms that have a number of the row as their bound, which counts where the row sees any key: {} hides keys by their places, by what an
# array says, or none.
BOUNDED = """kernel k[H, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[H, M, D], c : f32[H, N], e : i32[M])
    -> (most : f32[H, N], least : f32[H, N])
{{
  S = (Q +.* transpose(K)) * 0.125
  C = [h, i, _] c[h, i] * 0.5
  most = max/ {}
  least = min/ {}
}}
"""
HIDDEN = {"none": "{}", "places": "mask([_, i, j] j + 3 <= i, {})", "array": "mask([_, _, j] e[j] > 0, {})"}


def meaning(q, k, b, causal):
    s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.125 - b[:, None]
    n, m = s.shape[1:]
    seen = np.arange(m) <= np.arange(n)[:, None] + (m - n) if causal else np.ones((n, m), bool)
    hidden = np.where(seen, s, -np.inf)
    most = hidden.max(-1, initial=-np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.exp(hidden - np.maximum(most, -1e300)[..., None]).sum(-1)
        return {"lse": np.log(total) + most, "most": most, "squares": np.where(seen, s * s, 0).sum(-1)}


class ScoreStatistics(mt.KernelTest):

    def test_sizes(self):
        for spec, causal in ((STATISTICS, False), (CAUSAL, True)):
            for kind in ("bf16", "f16"):
                kernel = mt.make_kernel(spec, T=kind)
                for n, m in SIZES:
                    rng = np.random.default_rng(n + m)
                    inputs = {"Q": rng.standard_normal((2, n, 64)), "K": rng.standard_normal((2, m, 64)),
                              "b": rng.standard_normal((2, m))}
                    seen = kernel.seen_by_kernel(inputs)
                    found = kernel.results(inputs, {name: (2, n) for name in ("lse", "most", "squares")})
                    wanted = meaning(seen["Q"], seen["K"], seen["b"], causal)
                    for name in wanted:
                        infinite = np.isinf(wanted[name])
                        np.testing.assert_array_equal(found[name][infinite], wanted[name][infinite])
                        some = ~infinite
                        np.testing.assert_allclose(found[name][some], wanted[name][some], rtol=2e-5, atol=2e-5,
                                                   err_msg=f"{kind} {causal} {n}x{m} {name}")

    def test_bounded_terms(self):
        for name, hidden in HIDDEN.items():
            kernel = mt.make_kernel(BOUNDED.format(hidden.format("max(S, C)"), hidden.format("min(C, S)")))
            for n, m in SIZES:
                rng = np.random.default_rng(n + m)
                # Bounds that decide for some rows, for none and for all.
                c = rng.standard_normal((2, n)) * 6 + np.repeat([[6], [-6]], n, axis=1)
                c[:, 1::7] = -np.inf
                c[:, 2::7] = np.inf
                for e in (rng.integers(0, 2, m), np.zeros(m, int), np.arange(m) == m - 1):
                    inputs = {"Q": rng.standard_normal((2, n, 64)), "K": rng.standard_normal((2, m, 64)), "c": c,
                              "e": e.astype(np.int32)}
                    values = kernel.seen_by_kernel(inputs)
                    found = kernel.results(inputs, {"most": (2, n), "least": (2, n)})
                    s = values["Q"].astype(np.float64) @ values["K"].astype(np.float64).transpose(0, 2, 1) * 0.125
                    floor = values["c"].astype(np.float64)[..., None] * 0.5
                    seen = {"none": np.ones((n, m), bool), "places": np.arange(m) + 3 <= np.arange(n)[:, None],
                            "array": np.broadcast_to(e > 0, (n, m))}[name]
                    wanted = {"most": np.where(seen, np.maximum(s, floor), -np.inf).max(-1, initial=-np.inf),
                              "least": np.where(seen, np.minimum(s, floor), np.inf).min(-1, initial=np.inf)}
                    for result, values in wanted.items():
                        np.testing.assert_allclose(found[result], values, rtol=2e-5, atol=2e-5,
                                                   err_msg=f"{name} {n}x{m} {result}")


if __name__ == "__main__":
    unittest.main()
