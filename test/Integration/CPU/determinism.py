# RUN: %python %s
"""The same input gives the same bits: in every run, batch and number of threads."""
import os
import subprocess
import sys
import unittest

import numpy as np

import moa_testing as mt

N, M, D = 203, 517, 64


def inputs(batch):
    rng = np.random.default_rng(11)
    return {"Q": rng.standard_normal((batch, 4, N, D)),
            "K": rng.standard_normal((batch, 2, M, D)),
            "V": rng.standard_normal((batch, 2, M, D)), "scale": D ** -0.5}


def shapes(batch, heads=4):
    return {"O": (batch, heads, N, D), "lse": (batch, heads, N)}


class Determinism(mt.KernelTest):

    def test_repeated_runs(self):
        for kind in ("f32", "bf16", "f64"):
            kernel = mt.Kernel(mt.example("gqa_causal"), T=kind, D=D)
            first = kernel.run(inputs(2), shapes(2))
            for _ in range(5):
                self.assert_same_bits(first, kernel.run(inputs(2), shapes(2)), kind)

    def test_batch_entries_are_independent(self):
        """Each entry alone gives the bits it has in the batch."""
        for kind in ("f32", "bf16"):
            kernel = mt.Kernel(mt.example("gqa_causal"), T=kind, D=D)
            together = inputs(3)
            whole = kernel.run(together, shapes(3))
            for entry in range(3):
                alone = {k: v[entry:entry + 1] if np.ndim(v) else v
                         for k, v in together.items()}
                part = kernel.run(alone, shapes(1))
                self.assert_same_bits(part, {k: v[entry:entry + 1]
                                             for k, v in whole.items()}, kind)

    def test_other_entries_do_not_matter(self):
        kernel = mt.Kernel(mt.example("gqa_causal"), T="f32", D=D)
        values = inputs(3)
        first = kernel.run(values, shapes(3))
        for name in ("Q", "K", "V"):
            values[name][1] = np.nan
        second = kernel.run(values, shapes(3))
        for entry in (0, 2):
            self.assert_same_bits({k: v[entry] for k, v in first.items()},
                                  {k: v[entry] for k, v in second.items()}, "others")

    def test_number_of_threads(self):
        """The digest of the output under one, two and five threads."""
        digests = set()
        for threads in ("1", "2", "5"):
            environment = {**os.environ, "OMP_NUM_THREADS": threads}
            done = subprocess.run([sys.executable, __file__, "digest"],
                                  env=environment, stdout=subprocess.PIPE, text=True,
                                  check=True)
            digests.add(done.stdout.strip())
        self.assertEqual(len(digests), 1, digests)


def print_digest():
    import hashlib
    kernel = mt.Kernel(mt.example("gqa_causal"), T="f32", D=D)
    outputs = kernel.run(inputs(2), shapes(2))
    digest = hashlib.sha256()
    for name in sorted(outputs):
        digest.update(outputs[name].tobytes())
    print(digest.hexdigest())


if __name__ == "__main__":
    if sys.argv[1:] == ["digest"]:
        print_digest()
    else:
        unittest.main(verbosity=2)
