# RUN: env MOA_TEST_TARGET=device %python %s
"""Products of fragments, fragments read from tiles, changes of layout and gathered tiles, against NumPy.

The programs stand in Inputs; test/Integration/GPU runs the same file on a GPU.
"""
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs")


def path(name):
    return os.path.join(FOLDER, name + ".mlir")


def rounded(values):
    return mt.from_bf16(mt.to_bf16(np.asarray(values, np.float32))).astype(np.float64)


class Fragments(unittest.TestCase):

    def setUp(self):
        self.random = np.random.default_rng(3)

    def draw(self, *shape):
        return self.random.normal(size=shape)

    def run_program(self, name, inputs, **shapes):
        outputs = mt.make_kernel(path(name)).run(inputs, shapes)
        return [outputs[key] for key in shapes]

    def near(self, values, expected, bound):
        self.assertLess(mt.relative_error(values, expected), bound)

    def test_tile_product(self):
        q, k, v = (rounded(self.draw(*s)) for s in ((64, 64), (128, 64), (64, 64)))
        s, t = self.run_program("tile_product", {"q": q, "k": k, "v": v}, s=(64, 64), t=(64, 128))
        scores = q @ k.T
        self.near(t, scores, 1e-6)
        self.near(s, rounded(scores[:, 64:]) @ v + scores[:, 64:], 1e-3)
        # Where every number is exact, every bit: rows, columns and k at their places.
        q, k, v = (self.random.integers(-2, 3, s).astype(float) for s in ((64, 64), (128, 64), (64, 64)))
        k[:, 8:] = 0
        s, t = self.run_program("tile_product", {"q": q, "k": k, "v": v}, s=(64, 64), t=(64, 128))
        scores = q @ k.T
        np.testing.assert_array_equal(t, scores)
        np.testing.assert_array_equal(s, scores[:, 64:] @ v + scores[:, 64:])

    def test_gathered_tiles(self):
        for n, pages in ((1, 1), (64, 8), (100, 21)):
            x, y = rounded(self.draw(50, 40)), rounded(self.draw(30, 16, 64))
            row = self.random.integers(-1, 50, n).astype(np.int32)
            page = self.random.integers(0, 30, pages).astype(np.int32)
            row[-1:], page[-1:] = 49, 29
            (s,) = self.run_program("gathered_tiles", {"x": x, "y": y, "row": row, "page": page}, s=(n, 16 * pages))
            rows = np.where(row[:, None] >= 0, x[row], 0)
            self.near(s, rows @ y[page].reshape(-1, 64)[:, :40].T, 1e-6)

    def test_cluster_product(self):
        for tiles in (1, 3):
            q, k = rounded(self.draw(64 * tiles, 256)), rounded(self.draw(128, 256))
            s, t = self.run_program("cluster_product", {"q": q, "k": k}, s=(64 * tiles, 128), t=(64 * tiles,))
            self.near(s, q @ k.T, 1e-6)
            self.near(t, (q @ k.T).sum(1), 1e-5)

    def test_half_product(self):
        x, w = (self.draw(*s).astype(np.float16).astype(float) for s in ((32, 24), (24, 48)))
        (y,) = self.run_program("half_product", {"x": x, "w": w}, y=(32, 48))
        self.near(y, x @ w, 1e-6)

    def test_double_product(self):
        x, w = self.draw(32, 8), self.draw(8, 16)
        (y,) = self.run_program("double_product", {"x": x, "w": w}, y=(32, 16))
        self.near(y, 2 * x @ w, 1e-15)

    def test_conversions(self):
        x = self.draw(64, 16).astype(np.float32)
        y, z = self.run_program("conversions", {"x": x}, y=(64, 16), z=(16, 16))
        np.testing.assert_array_equal(y, x)
        self.near(z, rounded(x[:16]) @ rounded(x[:16]), 1e-6)


@unittest.skipIf(mt.TARGET != "device", "errors of the interpreter")
class Refusals(unittest.TestCase):
    """A right program changed in one place."""

    def refuse(self, edits, *messages, program="tile_product"):
        with open(path(program), encoding="utf-8") as file:
            text = file.read()
        for pattern, replacement in edits:
            text, count = re.subn(pattern, replacement, text)
            self.assertGreater(count, 0, pattern)
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            changed = os.path.join(directory, "program.mlir")
            with open(changed, "w", encoding="utf-8") as file:
                file.write(text)
            sizes = {name: 9 for name in re.findall(r'"(\w+)"', re.search(r"symbols = (\[.*?\])", text).group(1))}
            ran = mt.tool("moa-run", changed, "--target=device", "--random", "1",
                          *(f"{name}={size}" for name, size in sizes.items()))
        self.assertNotEqual(ran.returncode, 0)
        for message in messages:
            self.assertIn(message, ran.stderr)

    def test_order(self):
        self.refuse([(r" +device.wait .*\n", "")],
                    "reads rows 0 to 15 of stage 0 of the ring of ",
                    "before the copy at ", "is known to have completed")

    def test_overwritten(self):
        """A copy that nothing orders behind the read, by the producer of a block."""
        self.refuse([(r"threads 128 \{", "threads 256 {"),
                     (r" +%thread = .*\n", ""), (r" +%first = .*\n", ""),
                     (r" +scf.if %first \{\n(( +device.copy .*\n)+) +\}\n(?s:(.*))\n  \}\n\}",
                      r"device.specialize consumers 1 registers 240 {\n\3\n} producer registers 24 {\n\1"
                      r"device.wait %full[%c0] parity %c0 : !once\n"
                      r"device.copy %q[%c0] rows 0 to %queries[%c0] signals %full[%c0] : !tile, !ring, !once\n}\n}\n}")],
                    "the producer overwrites rows 0 to 63 of stage 0 of the ring of ",
                    "although warpgroup 0 may still read them at ")

    def test_gathered(self):
        """Rows outside of their array or of its alignment, a stage filled in part, parts at wrong places."""
        edit = lambda *edits: self.refuse(edits[0], *edits[1:], program="gathered_tiles")
        edit([(r"%offset = arith.muli %number, %stride", "%offset = arith.addi %number, %stride")],
             "a row begins at element", "which is no multiple of 16 bytes")
        edit([(r"%offset = arith.muli %number, %stride", "%offset = arith.muli %n, %stride"),
              (r"%present = .*", "%present = arith.cmpi eq, %r, %r : index")],
             "a row reaches outside of its array: ")
        edit([(r"to %c8 step %c1 \{\n +%which", "to %c2 step %c1 {\n %which"), ("barriers<2, 8>", "barriers<2, 2>")],
             "reads element [32, 0] of stage 0 of the ring of ", "which nothing has written")
        edit([(r"%first = arith.muli %part, %c16", "%first = arith.addi %part, %c16")],
             "the first one is a multiple of 8")
        edit([(r" +device.wait %rows_full.*\n", "")], "before the copy at ", "is known to have completed")

    def test_clusters(self):
        edit = lambda *edits: self.refuse(edits[0], *edits[1:], program="cluster_product")
        edit([(r" +device.sync_warpgroup .*\n", "")], "overwrites rows 0 to 127 of stage 0 of the ring of ")
        edit([(r" +device.sync_cluster // published\n", "")],
             "reads a fragment of rank 1 that no barrier of the cluster orders before it")
        edit([(r" +device.sync_cluster // read\n", "")],
             "reads a fragment of rank 1, which may have ended: it passes no later barrier")
        edit([(r"%is_first = arith.cmpi eq, %rank, %c0", "%is_first = arith.cmpi eq, %rank, %c1")],
             "only the block of rank 0 reads fragments of its cluster, but rank 1 does")
        edit([(r"for %k_rank = %c1 to %c4", "for %k_rank = %c1 to %c64")], "asks for rank 4 of a cluster of 4 blocks")
        edit([(r'blocks "4\*T"', 'blocks "4*T + 2"')], "a grid of 38 blocks in clusters of 4")

    def test_places(self):
        self.refuse([("at %c64, %c0", "at %thread, %c0")], "needs one index for all threads")
        self.refuse([("%c64 = arith.constant 64", "%c64 = arith.constant 60")],
                    "reads from row 60 and column 0, which are not multiples of 8")
        self.refuse([("%c64 = arith.constant 64", "%c64 = arith.constant 72")],
                    "reads rows 72 to 135 and columns 0 to 63 of the ring of ", "which has 128 and 64")

    def test_unwritten(self):
        self.refuse([(" +device.copy %v.*\n", ""), ("barriers<1, 3>", "barriers<1, 2>")],
                    "warpgroup 0 reads element [0, 0] of stage 0 of the ring of ",
                    "which nothing has written")

    def test_threads(self):
        self.refuse([("threads 128", "threads 256")],
                    "'device.load_fragment' needs the 128 threads of a warpgroup, but 256 run it")


if __name__ == "__main__":
    unittest.main(verbosity=2)
