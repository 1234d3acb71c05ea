"""Which tiles a program for a GPU visits, counted by the interpreter of device programs.

Exact numbers come from the meaning of each mask, written in NumPy: a tile of rows has to
visit a tile of keys if some row of it sees some key of it, and to evaluate the mask there
unless all its rows see all its keys.
"""
import json
import re
import sys
import unittest

import numpy as np

import moa_testing as mt
import device
import runner
from family import positions

D = 16
SETTINGS = {"T": "bf16", "D": D}


def rng():
    return np.random.default_rng(20261122)


def documents(z, mean=70):
    starts = rng().random((z["B"], z["N"])) < 1 / mean
    return {"doc": np.cumsum(starts, axis=1)}


def segments(z):
    """Packed sequences: rows and keys of every batch entry with numbers of their own."""
    made = rng()
    return {"docq": np.cumsum(made.random((z["B"], z["N"])) < 0.02, axis=1),
            "dock": np.cumsum(made.random((z["B"], z["M"])) < 0.02, axis=1)}


def tree(z):
    """Half of the drafted tokens follow one another, the others start anew."""
    ancestors = np.tril(np.ones((z["N"], z["N"]), bool))
    ancestors[:, : z["N"] // 2] &= np.arange(z["N"])[:, None] < z["N"] // 2
    return {"A": ancestors}


def blocks(z):
    """Tiles of 64 keys of which all, some or none are seen, by turns of 192 rows."""
    row, key = np.arange(z["N"])[:, None] // 192, np.arange(z["M"])[None] // 64
    kind = (row + key) % 3
    return {"keep": (kind == 0) | ((kind == 1) & (rng().random((z["N"], z["M"])) < 0.5))}


def stripes(z):
    """More tiles than a table has columns: neighbours share one."""
    return {"keep": np.broadcast_to(np.arange(z["M"]) // 128 % 4 == 1, (z["N"], z["M"]))}


def named_blocks(z):
    shape = (z["B"], z["H"], -(-z["N"] // 64), -(-z["M"] // 64))
    return {"block": rng().random(shape) < 0.2}


def tokens(z):
    made = rng()
    return {"g": made.random((z["B"], z["N"])) < 0.004, "w": 20}


LONE = {"B": 2, "H": 2, "N": 700}
PAIR = {"B": 2, "H": 2, "N": 330, "M": 610}
LONG = {"B": 1, "H": 1, "N": 20, "M": 520 * 64 + 200}
# Name, sizes, arrays, and by how much more than the exact numbers is visited and masked.
CASES = [
    # Affine masks: intervals.
    ("causal_top_left", PAIR, {}, 0, 0),
    ("causal_bottom_right", PAIR, {}, 0, 0),
    ("inverse_causal", PAIR, {}, 0, 0),
    ("offset_scalar", PAIR, {"c": -100}, 0, 0),
    ("offset_batch", PAIR, {"c": np.array([-60, 300])}, 0, 0),
    ("sliding_window", PAIR, {"w": 90}, 0, 0),
    ("window_symmetric", PAIR, {"w": 100}, 0, 0),
    ("window_left_right", PAIR, {"left": 80, "right": 10}, 0, 0),
    ("prefix_lm", PAIR, {"P": np.array([70, 400])}, 0, 0),
    ("lengths", PAIR, {"len": np.array([333, 0])}, 0, 0),
    # A run-time width of blocks: quotients of ranges.
    ("block_diagonal", PAIR, {"k": 100}, 0, 0),
    ("block_causal", PAIR, {"k": 100}, 0, 0),
    # Arrays: ranges of terms per tile.
    ("window_per_query", PAIR, {"w": rng().integers(0, 90, 330)}, 0, 0),
    ("document", LONE, documents(LONE), 0, 0),
    ("document_causal", PAIR, segments(PAIR), 0, 0),
    ("longformer", LONE, tokens(LONE), 0, 0),
    ("threshold", PAIR, {"t": np.where(np.arange(610) // 128 % 2, 0, 9999)}, 0, 0),
    # What reads memory at every pair of row and key: a table of tiles.
    ("tree_ancestors", {"B": 1, "H": 2, "N": 330, "M": 610}, tree({"N": 330}), 0, 0),
    ("mask_ij", PAIR, blocks(PAIR), 0, 0),
    ("mask_ij", LONG, stripes(LONG), 0, 0),
    ("block_sparse", PAIR, named_blocks(PAIR), 0, 0),
]


def shape_of(spec):
    """Rows and keys of a tile, as the schedule has them."""
    made = mt.tool("moa-codegen", spec, "--target=cuda", "--schedule=print",
                   *[w for k, v in SETTINGS.items() for w in ("--set", f"{k}={v}")])
    assert made.returncode == 0, made.stderr
    nest = json.loads(made.stdout)["nests"][0]
    return 64 * nest["axes"][-1]["warpgroup"], nest["folds"][0]["shared"]


def exact(present, rows, keys):
    """How many tiles hold something, and where the guard is evaluated: in those of them that
    are not whole, which a tile beyond the last key never is, and in the first of every block.
    """
    b, h, n, m = present.shape
    visits = masks = 0
    for first in range(0, n, rows):
        some = np.zeros((b, h), int)
        partial = np.zeros((b, h), int)
        for key in range(0, m, keys):
            part = present[:, :, first:first + rows, key:key + keys]
            some += part.any((2, 3))
            partial += part.any((2, 3)) & ~(part.all((2, 3)) & (key + keys <= m))
        visits += some.sum()
        masks += np.where(some > 0, np.maximum(partial, 1), 0).sum()
    return int(visits), int(masks)


class Tiles(unittest.TestCase):

    def test_counts(self):
        for name, sizes, arrays, more_visits, more_masks in CASES:
            with self.subTest(mask=name):
                family = runner.FAMILIES[name]
                saved, family.settings = family.settings, {"D": D}
                try:
                    z = family.namespace(sizes)
                    made = rng()
                    keys = sizes.get("M", sizes["N"])
                    values = {"Q": made.standard_normal((z.B, z.H, z.N, D)),
                              "K": made.standard_normal((z.B, z.H, keys, D)),
                              "V": made.standard_normal((z.B, z.H, keys, D)), "scale": D ** -0.5, **arrays}
                    present = np.broadcast_to(family.present(values, z), (z.B, z.H, z.N, keys))
                    expected = family.expected(values, z)["O"]
                finally:
                    family.settings = saved
                kernel = device.Kernel(family.spec, **SETTINGS)
                got = kernel.run(values, {"O": (z.B, z.H, z.N, D)})["O"]
                error = np.abs(mt.decode(got, "bf16") - expected).max()
                self.assertLess(error, 3e-2)
                rows, columns = shape_of(family.spec)
                visits, masks = exact(present, rows, columns)
                found = re.search(r"K (\d+).*guard evaluated in (\d+)", kernel.said)
                print(f"{name:20} {rows} x {columns}: {found[1]} of {-(-z.N // rows) * -(-keys // columns) * z.B * z.H} "
                      f"tiles visited, {visits} hold something; guard in {found[2]} of {masks}")
                self.assertEqual(int(found[1]), visits + more_visits, "visited")
                self.assertEqual(int(found[2]), masks + more_masks, "masked")


if __name__ == "__main__":
    unittest.main()
