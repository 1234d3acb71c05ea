# RUN: %python %s
"""NaN and infinities in keys and values that no query sees change no bit."""
import unittest

import numpy as np

import moa_testing as mt

# Causal from the top left: query i sees the keys 0 to i.
TOP_LEFT = """kernel top_left[B, H, N, M; T : float = f32, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32)
    -> O : T[B, H, N, D]
{
  S = mask([_, _, i, j] j <= i, (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
}
"""

POISON = (np.nan, np.inf, -np.inf, 3e38)
POISONED = (("K",), ("V",), ("K", "V"))
KINDS = ("f32", "bf16", "f64")
if mt.TARGET == "device":
    POISON, POISONED, KINDS = (np.nan, np.inf), (("K", "V"),), ("bf16",)


def arrays(rng, batch, heads, groups, n, m, d):
    return {"Q": rng.standard_normal((batch, heads, n, d)),
            "K": rng.standard_normal((batch, groups, m, d)),
            "V": rng.standard_normal((batch, groups, m, d)), "scale": d ** -0.5}


class UnseenValues(mt.KernelTest):

    def compare(self, spec, kind, inputs, unseen, shapes):
        """`unseen` is a boolean array over [batch, groups, keys]."""
        path = spec if "\n" in spec else mt.example(spec)
        kernel = mt.make_kernel(path, T=kind, D=inputs["Q"].shape[-1])
        clean = kernel.run(inputs, shapes)
        for value in clean.values():
            decoded = mt.decode(value, kind if value.dtype != np.float32 else "f32")
            self.assertFalse(np.isnan(decoded).any())
        for poison in POISON:
            for names in POISONED:
                poisoned = dict(inputs)
                for name in names:
                    poisoned[name] = inputs[name].copy()
                    poisoned[name][unseen] = poison
                self.assert_same_bits(clean, kernel.run(poisoned, shapes),
                                      f"{kind} {poison} in {names}")

    def each_kind(self, spec, inputs, unseen, shapes):
        self.assertTrue(unseen.any())
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.compare(spec, kind, inputs, unseen, shapes)

    def test_keys_behind_the_diagonal(self):
        """With fewer queries than keys, nobody sees the last keys."""
        n, m = 75, 203
        inputs = arrays(np.random.default_rng(1), 2, 2, 2, n, m, 64)
        unseen = np.broadcast_to(np.arange(m) >= n, (2, 2, m))
        self.each_kind(TOP_LEFT, inputs, unseen, {"O": (2, 2, n, 64)})

    def test_keys_outside_the_mask(self):
        """Per batch entry; whole tiles and single keys, and rows that see nothing."""
        n, m = 37, 300
        rng = np.random.default_rng(2)
        inputs = arrays(rng, 2, 2, 2, n, m, 64)
        mask = rng.random((2, n, m)) < 0.5
        mask[0, :, 100:260] = False
        mask[1, :, 3] = False
        mask[1, 5] = False
        inputs["keep"] = mask
        unseen = np.repeat(~mask.any(axis=1)[:, None], 2, axis=1)
        self.each_kind("cross_mask", inputs, unseen, {"O": (2, 2, n, 64)})

    def test_keys_left_of_the_window(self):
        """One query sees only the window that ends at its own position."""
        n, m = 1, 96
        inputs = arrays(np.random.default_rng(3), 1, 2, 2, n, m, 64)
        inputs["window"] = 40
        unseen = np.broadcast_to(np.arange(m) < m - 40, (1, 2, m))
        self.each_kind("sliding_window", inputs, unseen, {"O": (1, 2, n, 64)})

    def test_no_query_sees_anything(self):
        """More queries than keys, bottom right: the first rows are empty."""
        n, m = 70, 6
        inputs = arrays(np.random.default_rng(4), 1, 2, 1, n, m, 64)
        for kind in KINDS:
            kernel = mt.make_kernel(mt.example("gqa_causal"), T=kind, D=64)
            shapes = {"O": (1, 2, n, 64), "lse": (1, 2, n)}
            results = kernel.results(inputs, shapes)
            empty = n - m
            self.assertTrue((results["O"][:, :, :empty] == 0).all())
            self.assertTrue((results["lse"][:, :, :empty] == -np.inf).all())
            self.assertTrue(np.isfinite(results["lse"][:, :, empty:]).all())

    def test_a_seen_nan_is_not_hidden(self):
        inputs = arrays(np.random.default_rng(5), 1, 1, 1, 4, 4, 64)
        inputs["K"][0, 0, 3] = np.nan
        kernel = mt.make_kernel(mt.example("causal"), T="f32", D=64)
        output = kernel.results(inputs, {"O": (1, 1, 4, 64)})["O"]
        self.assertTrue(np.isnan(output[0, 0, 3]).all())
        self.assertTrue(np.isfinite(output[0, 0, :3]).all())

    def test_a_row_of_present_minus_infinity_is_nan(self):
        """Emptiness decides the 0, not a zero sum."""
        inputs = arrays(np.random.default_rng(6), 1, 1, 1, 3, 5, 64)
        inputs["Q"][...] = 1.0
        inputs["K"][...] = -np.inf
        kernel = mt.make_kernel(mt.example("sdpa"), T="f32", D=64)
        output = kernel.results(inputs, {"O": (1, 1, 3, 64)})["O"]
        self.assertTrue(np.isnan(output).all())


if __name__ == "__main__":
    unittest.main(verbosity=2)
