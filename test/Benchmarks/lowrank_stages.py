# RUN: %python %s
"""The stages of docs/Accuracy/LowRank.md as compiled kernels (benchmarks/lowrank/stages.moa), one after the
other: they find the classes that the prototype finds, and the last ones give its results."""
import os
import re
import sys
import unittest

import numpy as np

import moa_testing as mt

STUDY = os.path.join(mt.SOURCE_ROOT, "benchmarks", "lowrank")
sys.path.insert(0, STUDY)

from families import inputs  # noqa: E402
from methods import (KeySummaries, draw_seeds, exact_rows, hashed, nearest, reference,  # noqa: E402
                     relative_error, scale_of, second_moment, spread_rows)

N, D, C, ROUNDS, ROWS = 1024, 32, 64, 2, 32


def stages():
    """The texts of the kernels by name."""
    with open(os.path.join(STUDY, "stages.moa"), encoding="utf-8") as file:
        parts = re.split(r"^(?=kernel )", file.read(), flags=re.M)[1:]
    return {re.match(r"kernel (\w+)", part).group(1): part + "\n" for part in parts}


class Stages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.text, cls.built = stages(), {}

    def call(self, stage, shapes, **values):
        """Runs a stage on one head; arrays get the axes B = H = 1 in front if they have them."""
        if stage not in self.built:
            text = self.text[stage]
            settings = {"T": "f32", "D": D} if "D = " in text else {}
            self.built[stage] = mt.Kernel(text, **settings)
        kernel = self.built[stage]
        full = {p.name: values[p.name] if p.is_scalar or p.name in ("at", "e") else values[p.name][None, None]
                for p in kernel.parameters if not p.is_output}
        found = kernel.results(full, {name: (1, 1, *shape) for name, shape in shapes.items()})
        return [found[name][0, 0] for name in shapes]

    def test_classes_of_keys(self):
        Q, K, V = inputs("clusters", N, D)
        scale = float(scale_of(Q))
        G, = self.call("moment", {"G": (D, D)}, X=Q)
        np.testing.assert_allclose(G, second_moment(Q), atol=1e-5)

        at = spread_rows(N, ROWS, 21)
        O, lse = self.call("some_rows", {"O": (ROWS, D), "lse": (ROWS,)}, Q=Q, K=K, V=V, at=at, scale=scale)
        wanted = exact_rows(Q[at], K, V)
        self.assertLess(relative_error(O, wanted[0]), 3e-3)
        np.testing.assert_allclose(lse, wanted[1], atol=1e-4)

        w, = self.call("key_weights", {"w": (N,)}, Q=Q, K=K, at=at, lse=lse, scale=scale)
        weights = np.sqrt((np.exp(Q[at] @ K.T * scale - wanted[1][:, None]) ** 2).mean(0))
        np.testing.assert_allclose(w, weights, rtol=1e-3)

        seeds = self.draw(K, G, w)
        self.assertEqual(list(seeds), list(draw_seeds(K, second_moment(Q), C, ROUNDS, weights)))
        GZ, half = self.centres(K, G, seeds)
        label, = self.call("classes", {"a": (N,)}, K=K, GZ=GZ, half=half)
        self.assertGreater(np.mean(label == nearest(K, second_moment(Q), K[seeds])[0]), 0.98)

        n, Z, W = self.call("sums", {"n": (C,), "Z": (C, D), "W": (C, D)}, K=K, V=V, a=label)
        self.assertEqual(n.sum(), N)
        O, = self.call("summaries", {"O": (N, D)}, Q=Q, n=n, Z=Z, W=W, scale=scale)
        self.assertLess(relative_error(O, reference(Q, K, V)), 1e-2)

    @staticmethod
    def centres(K, G, seeds):
        GZ = (K[seeds] @ G).astype(np.float32)
        return GZ, 0.5 * (GZ * K[seeds]).sum(1)

    def draw(self, K, G, w):
        """The rounds of seeds, by the kernels `draw` and `distances`."""
        blocks = C // ROUNDS
        length = N // blocks
        kGk = ((K @ G) * K).sum(1)
        u, infinite, seeds = np.ones(N), np.full(N, 1e30), []
        for t in range(ROUNDS):
            e = -np.log(hashed(np.arange(N), t))
            new, = self.call("draw", {"seed": (blocks,)}, w=w.reshape(blocks, length), u=u.reshape(blocks, length),
                             e=e.reshape(blocks, length))
            seeds.append(new.astype(int))
            GZ, half = self.centres(K, G, seeds[-1])
            u, = self.call("distances", {"v": (N,)}, K=K, kGk=kGk, GZ=GZ, half=half, u=infinite if t == 0 else u)
        return np.concatenate(seeds)

    def test_empty_classes_are_absent(self):
        Q, K, V = inputs("uniform", 64, D)
        n, Z, W = self.call("sums", {"n": (4,), "Z": (4, D), "W": (4, D)}, K=K, V=V, a=np.full(64, 2))
        self.assertEqual(list(n), [0, 0, 64, 0])
        Z[[0, 1, 3]] = np.nan  # what stands in an empty class does not matter
        O, = self.call("summaries", {"O": (64, D)}, Q=Q, n=n, Z=Z, W=W, scale=0.2)
        np.testing.assert_allclose(O, np.repeat(V.mean(0, keepdims=True), 64, 0), atol=1e-5)

    def test_expansion_about_the_mean_key(self):
        Q, K, V = inputs("diffuse", N, D)
        O, = self.call("expansion", {"O": (N, D)}, Q=Q, K=K, V=V, scale=float(scale_of(Q)))
        self.assertLess(relative_error(O, KeySummaries(1, 1, 1)(Q, K, V)), 3e-3)
        self.assertLess(relative_error(O, reference(Q, K, V)), 1e-2)


if __name__ == "__main__":
    unittest.main()
