# RUN: %python %s
"""Few rows and keys first, on the interpreter of GPU programs: which heads take fewer bits, against NumPy in float64 and
the kernel as it is written. Sizes for which a GPU has a pilot are too long here, so that passes are called by name."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import families  # noqa: E402

LIMIT, D, N, M = 6e-2, 64, 256, 2056  # twice as many keys as a pilot has, or more
SPECIFICATION = """kernel k[H, N, M; D = 64](Q : bf16[H, N, D], K : bf16[H, M, D], V : bf16[H, M, D], scale : f32)
    -> O : bf16[H, N, D] within 6e-2 relative sampled
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
FRONT = ["--convert-moa-to-dnf", "--convert-dnf-to-onf", "--onf-order-rows"]
BACK = ["--onf-split-folds", "--onf-fuse-nests", "--onf-fuse-folds", "--onf-read-through-copies", "--onf-find-forms",
        "--onf-lift-gpu", "--convert-onf-to-device", "--canonicalize", "--cse",
        "--device-combine-kernels", "--device-overlap-kernels",
        "--device-skip-unchosen", "--device-align-runs", "--device-verify"]


def attention(q, k, v):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    s = D ** -0.5 * q @ k.transpose(0, 2, 1)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def errors(found, exact):
    return np.linalg.norm((found - exact).reshape(len(exact), -1), axis=-1) / np.linalg.norm(
        exact.reshape(len(exact), -1), axis=-1)


class Pilot(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def run_program(self, name, passes, arrays, seed=0):
        with open(self.path("k.moa"), "w", encoding="utf-8") as file:
            file.write(SPECIFICATION)
        made = mt.tool("moa-opt", self.path("k.moa"), *FRONT, *passes, *BACK, "-o", self.path(name + ".mlir"))
        self.assertEqual(made.returncode, 0, made.stderr)
        for array, values in zip("QKV", arrays):
            np.save(self.path(array + ".npy"), mt.to_bf16(values))
        found = mt.tool("moa-run", self.path(name + ".mlir"), "--target=device", f"--interleaving={seed}", f"scale={D ** -0.5}",
                        "-o", "O=" + self.path("O.npy"), *(f"{a}={self.path(a + '.npy')}" for a in "QKV"))
        self.assertEqual(found.returncode, 0, found.stderr)
        return np.load(self.path("O.npy"))

    def test_heads(self):
        """A head that is near enough is tried whatever the others are, with the bits that it has without them."""
        alone = None
        for names, taken in ((["normal"], [1]), (["normal", "large_scores", "small_signal"], [1, 0, 0]),
                             (["normal", "large_scores"], [1, 0])):
            with self.subTest(names=names):
                made = [families.make(name, N, M, D, seed=0, head=h).arrays() for h, name in enumerate(names)]
                arrays = [np.stack(a).astype(np.float32) for a in zip(*made)]
                arrays = [mt.from_bf16(mt.to_bf16(a)) for a in arrays]
                chosen = self.run_program("chosen", ['--onf-adapt-precision=fewest=256 sums=1 pilot=0'], arrays)
                # Launches that do not wait for each other, in another order of all their blocks.
                if len(names) == 2:
                    again = self.run_program("chosen", ['--onf-adapt-precision=fewest=256 sums=1 pilot=0'], arrays, seed=5)
                    self.assertTrue(np.array_equal(chosen, again))
                plain = self.run_program("plain", [], arrays)
                self.assertEqual([int((a != b).any()) for a, b in zip(chosen, plain)], taken)
                off = errors(mt.from_bf16(chosen.view(np.uint16)), attention(*arrays))
                self.assertTrue((off <= LIMIT).all(), off)
                for h in np.flatnonzero(taken):
                    self.assertGreater(off[h], 5e-3)
                alone = chosen[0] if alone is None else alone
                np.testing.assert_array_equal(chosen[0], alone)

    def test_none(self):
        """Where no head is near enough, blocks of the plan end before they look up whose they are."""
        made = [families.make(name, N, M, D, seed=0, head=h).arrays() for h, name in enumerate(("large_scores", "small_signal"))]
        arrays = [mt.from_bf16(mt.to_bf16(np.stack(a).astype(np.float32))) for a in zip(*made)]
        chosen = self.run_program("chosen", ["--onf-adapt-precision=fewest=256 sums=1 pilot=0"], arrays, seed=3)
        with open(self.path("chosen.mlir"), encoding="utf-8") as file:
            self.assertIn("device.exit_if", file.read())
        np.testing.assert_array_equal(chosen, self.run_program("plain", [], arrays))

    def test_doubtful(self):
        """Where scores are off by more than the tolerance a pilot asks for half of it: what the sample would allow is refused."""
        q, k, v = families.make("normal", N, M, D, seed=0, head=0).arrays()
        arrays = [np.stack(a).astype(np.float32) for a in ([q, 5 * q, 5 * q], [k, k, k], [v, v + 0.5, v + 1])]
        arrays = [mt.from_bf16(mt.to_bf16(a)) for a in arrays]
        plain = self.run_program("plain", [], arrays)
        for pilot, taken in (("pilot=0", [1, 0, 1]), ("", [1, 1, 1])):
            with self.subTest(pilot=pilot):
                chosen = self.run_program("chosen", [f"--onf-adapt-precision=fewest=256 sums=1 {pilot}"], arrays)
                self.assertEqual([int((a != b).any()) for a, b in zip(chosen, plain)], taken)
                off = errors(mt.from_bf16(chosen.view(np.uint16)), attention(*arrays))
                self.assertTrue((off <= LIMIT).all(), off)
                # That of the last one is less than half of the tolerance, that of the second one more.
                self.assertLess(off[2], LIMIT / 2)
                self.assertTrue(not taken[1] or off[1] > LIMIT / 2)

    def test_behind_few_keys(self):
        """Of heads that a pass before has taken the pilot asks nothing; of the others each decides for itself."""
        rng = np.random.default_rng(4)
        few = rng.standard_normal((8, D))[rng.integers(0, 8, M)]
        for names, taken in ((["normal", "large_scores", "small_signal", "few", "few"], [1, 0, 0, 1, 1]),
                             (["normal", "large_scores", "few"], [1, 0, 1])):
            with self.subTest(names=names):
                made = [families.make(name.replace("few", "normal"), N, M, D, seed=0, head=h).arrays()
                        for h, name in enumerate(names)]
                arrays = [np.stack(a).astype(np.float32) for a in zip(*made)]
                arrays[1][np.array(names) == "few"] = few
                arrays = [mt.from_bf16(mt.to_bf16(a)) for a in arrays]
                chosen = self.run_program("chosen", ["--onf-low-rank=fewest=256",
                                                     "--onf-adapt-precision=fewest=256 sums=1 pilot=0"], arrays)
                plain = self.run_program("plain", [], arrays)
                self.assertEqual([int((a != b).any()) for a, b in zip(chosen, plain)], taken)
                found, exact = mt.from_bf16(chosen.view(np.uint16)), attention(*arrays)
                self.assertTrue((errors(found, exact) <= LIMIT).all(), errors(found, exact))


if __name__ == "__main__":
    mt.main()
