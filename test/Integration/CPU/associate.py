# RUN: %python %s
"""Products of matrices that associate, and sums that rows share, against NumPy.

Full and causal, with and without weights that are divided by their sum, of every type, over sizes around
the parts and blocks that are stored, with keys that nobody sees.
"""
import unittest

import numpy as np

import moa_testing as mt

HEAD = "(Q : T[B, N, D], K : T[B, M, D], V : T[B, M, E], g : f32[B, M]) -> O : T[B, N, E]"
MASKS = {
    "full": (None, lambda i, j, n, m: j >= 0),
    "causal": ("j <= i", lambda i, j, n, m: j <= i),
    "bottom right": ("j <= i + (M - N)", lambda i, j, n, m: j <= i + m - n),
    "strict": ("i > j", lambda i, j, n, m: j < i),
}
# Queries and keys: beside parts of 256, blocks of 64 keys, and of 64 rows.
SIZES = [(1, 1), (3, 255), (65, 256), (64, 257), (130, 1023), (70, 1025), (2100, 2050), (1030, 70), (5, 0), (0, 5)]
SMALL = [(1, 1), (66, 257), (129, 129), (200, 70), (70, 1030), (3, 0)]


def specification(body, constants="D = 16, E = 24"):
    return f"kernel k[B, N, M; T : float = bf16, {constants}]{HEAD}\n{{\n  {body}\n}}\n"


def weights(mask, scores):
    return f"S = {scores}" if mask is None else f"S = mask([_, i, j] {mask}, {scores})"


class Associate(mt.KernelTest):

    def check(self, spec, meaning, kinds=("f32", "bf16", "f64"), sizes=SIZES, constants=(16, 24), positive=False):
        if mt.TARGET == "device":
            sizes, kinds = SMALL, ("bf16", "f32")
        d, e = constants
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            for n, m in sizes:
                random = np.random.default_rng(n + m)
                inputs = {"Q": random.standard_normal((2, n, d)), "K": random.standard_normal((2, m, d)),
                          "V": random.standard_normal((2, m, e)), "g": random.uniform(0.5, 1.5, (2, m))}
                if positive:
                    inputs.update({name: np.abs(inputs[name]) + 0.1 for name in "QK"})
                wanted = {"O": meaning(**kernel.seen_by_kernel(inputs))}
                found = kernel.results(inputs, {"O": (2, n, e)})
                bound = {"f64": 1e-13, "f32": 4e-6, "bf16": 6e-3, "f16": 2e-3}[kind]
                self.assert_close(found, wanted, bound, f"{kind} {n} {m}")

    def check_masks(self, body, meaning, **options):
        for name, (mask, seen) in MASKS.items():
            def of(Q, K, V, g, seen=seen):
                n, m = Q.shape[1], K.shape[1]
                i, j = np.arange(n)[:, None], np.arange(m)[None]
                return meaning(Q, K, V, g, np.where(seen(i, j, n, m), 1.0, 0.0))
            with self.subTest(name):
                self.check(specification(body(mask)), of, **options)

    def test_linear(self):
        self.check_masks(lambda mask: weights(mask, "Q +.* transpose(K)") + "\n  O = S +.* V",
                         lambda Q, K, V, g, seen: (seen * (Q @ K.swapaxes(1, 2))) @ V)

    def test_weights_of_keys(self):
        self.check_masks(
            lambda mask: weights(mask, "(Q +.* transpose(K)) * [b, _, j] g[b, j]") + "\n  O = S +.* V",
            lambda Q, K, V, g, seen: (seen * (Q @ K.swapaxes(1, 2)) * g[:, None]) @ V,
            sizes=[(70, 1025), (65, 256)], kinds=("f32",))

    def test_divided_by_their_sum(self):
        def meaning(Q, K, V, g, seen):
            s = seen * (Q @ K.swapaxes(1, 2))
            total = s.sum(axis=-1, keepdims=True)
            return np.divide(s, total, out=np.zeros_like(s), where=total != 0) @ V
        self.check_masks(lambda mask: weights(mask, "Q +.* transpose(K)") + "\n  O = (S /@(1,0) (+/ S)) +.* V",
                         meaning, positive=True)

    def test_features(self):
        def meaning(Q, K, V, g):
            q, k = np.exp(Q), np.exp(K)
            s = q @ k.swapaxes(1, 2)
            with np.errstate(invalid="ignore"):  # over no keys 0 / 0
                return (s @ V) / s.sum(axis=-1, keepdims=True)
        self.check(specification("S = exp(Q) +.* transpose(exp(K))\n  O = (S +.* V) /@(1,0) (+/ S)"), meaning,
                   sizes=[(70, 300), (5, 257)])

    def test_range_of_f16(self):
        """Sums over keys leave the range of f16 where scores and results do not."""
        def meaning(Q, K, V, g):
            return (Q @ K.swapaxes(1, 2)) @ V / 2**20
        spec = specification("O = ((Q +.* transpose(K)) * 9.5367431640625e-07) +.* (V + 0.0)")
        kernel = mt.make_kernel(spec, T="f16")
        random = np.random.default_rng(1)
        inputs = {"Q": random.uniform(1, 2, (2, 5, 16)), "K": random.uniform(30, 40, (2, 600, 16)),
                  "V": random.uniform(30, 40, (2, 600, 24)), "g": np.ones((2, 600))}
        found = kernel.results(inputs, {"O": (2, 5, 24)})
        self.assert_close(found, {"O": meaning(**kernel.seen_by_kernel(inputs))}, 2e-3, "f16")

    def test_keys_that_nobody_sees(self):
        """NaN in keys behind the last row does not reach a result."""
        for scores in ("Q +.* transpose(K)", "exp(Q) +.* transpose(K)"):
            spec = specification(weights("j <= i", scores) + "\n  O = S +.* V")
            kernel = mt.make_kernel(spec, T="bf16")
            random = np.random.default_rng(2)
            q, k, v = (random.standard_normal((2, 1100, width)) for width in (16, 16, 24))
            left = np.exp(q[:, :40]) if scores.startswith("exp") else q[:, :40]
            k[:, 40:], v[:, 40:] = np.nan, np.nan
            found = kernel.results({"Q": q[:, :40], "K": k, "V": v, "g": np.ones((2, 1100))}, {"O": (2, 40, 24)})
            self.assertTrue(np.isfinite(found["O"]).all(), scores)

    def test_norms_of_keys(self):
        def meaning(Q, K, V, g):
            s = Q @ K.swapaxes(1, 2) / np.sqrt((K * K).sum(axis=-1))[:, None]
            e = np.exp(s - s.max(axis=-1, keepdims=True, initial=-1e30))
            return (e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)) @ V
        spec = specification("n = sqrt(+/ (K * K))\n  S = (Q +.* transpose(K)) / [b, _, j] n[b, j]\n"
                             "  O = softmax(S) +.* V")
        self.check(spec, meaning, sizes=[(70, 300), (5, 1)], kinds=("f32", "bf16"))


if __name__ == "__main__":
    unittest.main()
