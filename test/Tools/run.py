# RUN: %python %s
"""moa-run on files: types, rounding, outputs, and what it says."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

SPEC = """
kernel scale[N, M; T : float = f32](x : T[N, M], keep : bool[M], k : i32, a : f32)
    -> (y : T[N, M], s : f32[N])
{
  y = a * x
  s = k * (+/ mask([_, j] keep[j], x))
}
"""


class Run(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write(SPEC)
        rng = np.random.default_rng(3)
        self.x = rng.standard_normal((5, 7))
        self.keep = np.array([1, 0, 1, 1, 0, 0, 1], np.bool_)
        np.save(self.path("keep.npy"), self.keep)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_on(self, kind, x, *extra, keep="keep.npy"):
        np.save(self.path("x.npy"), x)
        return mt.tool("moa-run", self.path("scale.moa"), "--set", f"T={kind}",
                       "x=" + self.path("x.npy"), "keep=" + self.path(keep), "k=3",
                       "a=0.5", "-o", "y=" + self.path("y.npy"), "-o",
                       "s=" + self.path("s.npy"), "--check=all", *extra)

    def assert_result(self, done, x, bound):
        self.assertEqual(done.returncode, 0, done.stderr)
        s = np.load(self.path("s.npy"))
        expected = 3 * x[:, self.keep].sum(1)
        self.assertEqual(s.dtype, np.float32)
        self.assertLess(np.linalg.norm(s - expected), bound * np.linalg.norm(expected))
        return np.load(self.path("y.npy"))

    def test_types(self):
        for kind, dtype in (("f64", np.float64), ("f32", np.float32),
                            ("f16", np.float16)):
            with self.subTest(kind=kind):
                x = self.x.astype(dtype)
                y = self.assert_result(self.run_on(kind, x), x.astype(np.float64), 1e-6)
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_array_equal(y, (x * 0.5).astype(dtype))

    def test_bfloat16(self):
        bits = mt.to_bf16(self.x)
        values = mt.from_bf16(bits).astype(np.float64)
        for stored in (bits, bits.view("V2"), self.x.astype(np.float32), self.x):
            with self.subTest(dtype=stored.dtype):
                y = self.assert_result(self.run_on("bf16", stored), values, 1e-6)
                self.assertEqual(y.dtype, np.dtype("V2"))
                np.testing.assert_array_equal(mt.from_bf16(y.view(np.uint16)),
                                              values * 0.5)

    def test_masks_of_bytes(self):
        np.save(self.path("bytes.npy"), self.keep.astype(np.uint8) * 255)
        x = self.x.astype(np.float32)
        self.assert_result(self.run_on("f32", x, keep="bytes.npy"), x, 1e-6)

    def test_reference_target(self):
        x = self.x.astype(np.float32)
        y = self.assert_result(self.run_on("f32", x, "--target=reference"), x, 1e-6)
        np.testing.assert_array_equal(y, x * np.float32(0.5))

    def test_ill_conditioned(self):
        """The sum rounds x to steps of 2^-10, or to nothing: no better in f32."""
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write("kernel far[N](x : f32[N]) -> (y : f32[N], z : f32[N])"
                       " { far = x + 10000 y = exp(far - 10000) z = exp(x) }")
        np.save(self.path("x.npy"), self.x[0].astype(np.float32))
        for rows in ("", "=all"):
            done = mt.tool("moa-run", self.path("scale.moa"),
                           "x=" + self.path("x.npy"), "--check" + rows)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "check    y: .*ill-conditioned, accepted")
            self.assertNotRegex(done.stdout, "check    z: .*one rounding")
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write("kernel lost[N](x : f32[N]) -> y : f32[N]"
                       " { far = x + 1000000000 y = exp(far - 1000000000) }")
        done = mt.tool("moa-run", self.path("scale.moa"), "x=" + self.path("x.npy"),
                       "--check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "one rounding per operation.*FAILED")

    def test_fortran_order_is_refused(self):
        done = self.run_on("f32", np.asfortranarray(self.x.astype(np.float32)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Fortran order", done.stderr)
        self.assertFalse(os.path.exists(self.path("y.npy")))

    def test_random(self):
        arguments = (self.path("scale.moa"), "N=4", "M=9", "k=1", "a=2", "--check=2",
                     "--repeat=3")
        outputs = []
        for seed in (1, 1, 2):
            done = mt.tool("moa-run", *arguments, "--random", seed, "-o",
                           "y=" + self.path("y.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in ("compile", "GFLOP/s", "median of 3", "bytes",
                         "check    y: 2 of 4 rows"):
                self.assertIn(word, done.stdout)
            outputs.append(np.load(self.path("y.npy")))
        np.testing.assert_array_equal(outputs[0], outputs[1])
        self.assertFalse(np.array_equal(outputs[0], outputs[2]))

    def test_missing_values(self):
        for words, message in ((["M=9"], "the symbol N has no value; give N=SIZE"),
                               (["N=1", "M=9", "a=1"], "give k=VALUE"),
                               (["N=x", "M=9"], "'x' is no value of the symbol N"),
                               (["N=1", "N=2"], "'N' is given twice"),
                               (["N"], "expects NAME=VALUE")):
            base = [] if "a=1" in words else ["k=1", "a=1"]
            done = mt.tool("moa-run", self.path("scale.moa"), *words, *base,
                           "--random", 1)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(message, done.stderr)
        done = mt.tool("moa-run", self.path("scale.moa"), "k=1", "a=1")
        self.assertIn("give x=FILE.npy, or --random SEED", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
