# RUN: %python %s
"""moa-run: arrays from files, random arrays, the check, and the reference."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import references

B, H, G, N, M, D = 2, 4, 2, 37, 53, 64
SCALE = 0.125


class MoaRun(mt.KernelTest):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        rng = np.random.default_rng(3)
        self.inputs = {"Q": rng.standard_normal((B, H, N, D)),
                       "K": rng.standard_normal((B, G, M, D)),
                       "V": rng.standard_normal((B, G, M, D))}

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_files(self, kind, dtype, *extra):
        """Outputs of gqa_causal on the inputs saved with a dtype."""
        words = [f"scale={SCALE}"]
        for name, value in self.inputs.items():
            np.save(self.path(name + ".npy"), np.asarray(value, dtype))
            words.append(f"{name}={self.path(name + '.npy')}")
        done = mt.tool("moa-run", mt.example("gqa_causal"), "--set", f"T={kind}",
                       "--set", f"D={D}", *words, "-o", f"O={self.path('o.npy')}",
                       "-o", f"lse={self.path('lse.npy')}", *extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: np.load(self.path(name.lower() + ".npy"))
                for name in ("O", "lse")}, done

    def compare(self, results, dtype, bound, what):
        """With NumPy; log-sum-exp is declared f32 whatever T is."""
        values = {k: v.astype(dtype).astype(np.float64)
                  for k, v in self.inputs.items()}
        output, lse = references.causal(**values, scale=SCALE)
        self.assertEqual(results["lse"].dtype, np.float32)
        self.assert_close(results, {"O": output}, bound, what)
        self.assert_close(results, {"lse": lse}, max(bound, mt.BOUNDS["f32"]), what)

    def test_files(self):
        for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
            with self.subTest(kind=kind):
                results, _ = self.run_files(kind, dtype)
                self.assertEqual(results["O"].dtype, dtype)
                self.compare(results, dtype, mt.BOUNDS[kind], kind)

    def test_16_bit_floats(self):
        results, _ = self.run_files("f16", np.float16, "--check=all")
        self.assertEqual(results["O"].dtype, np.float16)
        self.compare(results, np.float16, 4e-4, "f16")

    def test_reference_target(self):
        results, _ = self.run_files("f64", np.float64, "--target=reference")
        self.compare(results, np.float64, 1e-14, "reference")

    def test_check(self):
        _, done = self.run_files("f32", np.float32, "--check")
        self.assertRegex(done.stdout + done.stderr, r"(?i)error")

    def random(self, name, *words):
        return mt.tool("moa-run", mt.example(name), "--random", "1", *words, "--check")

    def test_random_arrays_of_every_example(self):
        sizes = ("B=2", "H=2", "N=75", "M=101", "scale=0.1")
        more = {"gqa_causal": (*sizes, "G=1"), "cross_mask": sizes,
                "sliding_window": (*sizes, "window=20"), "alibi": sizes,
                "softcap": (*sizes, "cap=2"), "sdpa": sizes, "causal": sizes,
                "sigmoid_attention": (*sizes, "bias=-1"),
                "paper": ("N=3", "M=5", "scale=0.5"), "scaled_norm": ("B=9", "N=100"),
                "layernorm_product": ("N=50", "eps=0.00001"), "backward": (*sizes, "G=1")}
        listed = {f[:-4] for f in os.listdir(os.path.join(mt.SOURCE_ROOT, "examples"))
                  if f.endswith(".moa")}
        self.assertEqual(set(more), listed)
        for name, words in more.items():
            with self.subTest(example=name):
                done = self.random(name, *words)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_heads(self):
        words = ("N=5", "M=7", "scale=1", "--random", 1, "--set", "T=f32")
        for sizes in (("B=1", "H=0", "G=0"), ("B=0", "H=4", "G=0")):
            for more in (["--check"], ["--check=all"], ["--target=reference"]):
                done = mt.tool("moa-run", mt.example("gqa_causal"), *sizes, *words, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
        done = mt.tool("moa-run", mt.example("gqa_causal"), "B=1", "H=4", "G=0", *words)
        self.assertEqual(done.returncode, 1)
        self.assertIn("divides by zero", done.stderr)

    def test_random_arrays_depend_on_the_seed_only(self):
        texts = []
        for seed in ("7", "7", "8"):
            done = mt.tool("moa-run", mt.example("sdpa"), "--random", seed, "B=1", "H=1",
                           "N=9", "M=9", "scale=1", "-o", f"O={self.path('o.npy')}",
                           "--set", "T=f32")
            self.assertEqual(done.returncode, 0, done.stderr)
            texts.append(np.load(self.path("o.npy")).tobytes())
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
