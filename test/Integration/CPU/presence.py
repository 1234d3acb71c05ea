# RUN: %python %s
"""Which elements every mask makes present, the same on every target.

The masks are those of the families of attention, with their meaning in NumPy. A query of class
i mod 16 has a score of 256 with the keys of its class and 0 with all others, so that the
log-sum-exp of a row tells how many keys of its class it sees: all counts are compared exactly.
Keys and values that no query sees are NaN.
"""
import os
import re
import sys
import unittest

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Families", "Support"))
import family as families
import mask_families  # noqa: F401  (registers them)

CLASSES = 16
MASKS = ["causal_top_left", "causal_bottom_right", "inverse_causal", "offset_scalar", "offset_batch", "window_left",
         "sliding_window", "window_symmetric", "window_left_right", "window_per_query", "dilated", "prefix_lm",
         "document", "document_causal", "lengths", "block_diagonal", "block_causal", "longformer", "natten_1d",
         "tiled_window_2d", "tiled_window_3d", "tree_ancestors", "threshold", "limit_of_group", "flashmask", "combined", "mask_ij",
         "mask_bij", "mask_bhij", "mask_b1ij", "mask_b11j"]


def specification(family):
    """The family's, with the log-sum-exp of its scores as a further output."""
    with open(family.spec, encoding="utf-8") as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("// RUN"))
    changed = re.sub(r"-> O : T\[B, H, N, D\]", "-> (O : T[B, H, N, D], lse : f32[B, H, N])", text)
    changed = re.sub(r"\}\s*$", "  lse = logsumexp(S)\n}\n", changed)
    assert changed.count("lse") == 2, family.name
    return changed


def one_hot(count):
    return np.eye(CLASSES)[np.arange(count) % CLASSES] * 16


class Presence(mt.KernelTest):

    def sizes(self, family):
        """The largest but one or two that the target can do in a moment."""
        most = 400 if mt.TARGET in ("cuda", "ptx", "cpu") else 120
        fitting = [s for s in family.sizes if s["B"] and 0 < s["N"] <= most]
        fitting.sort(key=lambda s: s["N"] * s.get("M", s["N"]))
        return [fitting[0], fitting[-1]]

    def check_mask(self, name):
        family = families.FAMILIES[name]
        settings = {**family.settings, "D": CLASSES, "T": "bf16"}
        kernel = mt.make_kernel(specification(family), **settings)
        for sizes in self.sizes(family):
            z = family.namespace(sizes)
            z.D = CLASSES
            rng = np.random.default_rng(7)
            values = family.inputs(rng, z)
            keys = values["K"].shape[2]
            shape = (z.B, z.H)
            values["Q"] = np.broadcast_to(one_hot(z.N), shape + (z.N, CLASSES)).copy()
            values["K"] = np.broadcast_to(one_hot(keys), shape + (keys, CLASSES)).copy()
            values["scale"] = 1.0
            present = np.broadcast_to(family.present(values, z), shape + (z.N, keys))
            same = np.arange(z.N)[:, None] % CLASSES == np.arange(keys)[None] % CLASSES
            ours, others = (present & same).sum(-1), (present & ~same).sum(-1)
            for array, unseen in family.unseen(values, z).items():
                values[array][np.broadcast_to(unseen, values[array].shape[:3])] = np.nan
            found = kernel.results(values, {"O": values["Q"].shape, "lse": shape + (z.N,)})
            got = found["lse"].astype(np.float64)
            with self.subTest(mask=name, sizes=sizes):
                self.assertTrue((np.isneginf(got) == (ours + others == 0)).all(), "rows that see nothing")
                got = np.where(np.isneginf(got), -1000, got)
                counts = np.exp(np.where(ours > 0, got - 256, got))
                np.testing.assert_array_equal(np.rint(counts), np.where(ours > 0, ours, others))
                self.assertLess(np.abs(counts - np.rint(counts)).max(), 0.2)
                self.assertTrue(np.isfinite(found["O"]).all(), "what nobody sees reaches the output")
                self.assertTrue((found["O"][ours + others == 0] == 0).all(), "rows that see nothing")

    def test_masks(self):
        for name in MASKS:
            with self.subTest(mask=name):
                self.check_mask(name)


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main()
