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
        self.write(SPEC)
        rng = np.random.default_rng(3)
        self.x = rng.standard_normal((5, 7))
        self.keep = np.array([1, 0, 1, 1, 0, 0, 1], np.bool_)
        np.save(self.path("keep.npy"), self.keep)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, specification):
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write(specification)

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

    def test_device_target(self):
        """Every type goes in and comes out as on the other targets."""
        for kind, dtype in (("f64", np.float64), ("f32", np.float32), ("f16", np.float16)):
            with self.subTest(kind=kind):
                x = self.x.astype(dtype)
                done = self.run_on(kind, x, "--target=device", "--interleaving=2")
                y = self.assert_result(done, x.astype(np.float64), 1e-6)
                self.assertIn("in the interpreter", done.stdout)
                np.testing.assert_array_equal(y, (x * 0.5).astype(dtype))

    def test_targets(self):
        x = self.x.astype(np.float32)
        done = self.run_on("f32", x, "--target=tpu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no target 'tpu'; there are cpu, reference and device",
                      done.stderr)

    def test_ill_conditioned(self):
        """The sum rounds x to steps of 2^-10, or to nothing: no better in f32."""
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write("kernel far[N](x : f32[N]) -> (y : f32[N], z : f32[N])"
                       " { far = x + 10000 y = exp(far - 10000) z = exp(x) }")
        np.save(self.path("x.npy"), self.x[0].astype(np.float32))
        for rows in ("", "=all"):
            done = mt.tool("moa-run", self.path("scale.moa"),
                           "x=" + self.path("x.npy"), "--check" + rows)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, "check    y: .*UNDECIDED, as these inputs are ill-conditioned")
            self.assertNotRegex(done.stdout, "check    z: .*one rounding")
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write("kernel lost[N](x : f32[N]) -> y : f32[N]"
                       " { far = x + 1000000000 y = exp(far - 1000000000) }")
        done = mt.tool("moa-run", self.path("scale.moa"), "x=" + self.path("x.npy"),
                       "--check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "one rounding per operation.*UNDECIDED, as these inputs are ill-conditioned")

    def test_range_hint(self):
        """Of random inputs the line says whose range would help."""
        with open(self.path("scale.moa"), "w", encoding="utf-8") as file:
            file.write("kernel far[N](x : f32[N]) -> y : f32[N] { far = x + 10000 y = exp(far - 10000) }")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", "1", "N=64", "--check=all")
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNDECIDED, as these inputs are ill-conditioned; declare the ranges that x has "
                      "in use, as in 'x : f32[N] in -1.0..0'", done.stdout)

    def test_reads_outside_name_their_place(self):
        """The interpreters say where the specification reads outside, if an assumption does not hold."""
        self.write("kernel k[N, M](t : i32[N], v : f32[M]) -> y : f32[N]\n"
                   "  assume [i] 0 <= t[i] and t[i] < M\n{\n  y = [i < N] v[t[i]] + 1.0\n}\n")
        np.save(self.path("t.npy"), np.array([0, 1, 9, 2], np.int32))
        np.save(self.path("v.npy"), np.ones(5, np.float32))
        for target, error in (("device", r"loads outside of its array: .* of 'v' of shape \[5\]"),
                              ("cpu", r"index \[9\] is outside 'v' of shape \[5\]")):
            done = mt.tool("moa-run", self.path("scale.moa"), "t=" + self.path("t.npy"), "v=" + self.path("v.npy"),
                           f"--target={target}", *(["--check"] if target == "cpu" else []))
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"scale\.moa:4:\d+: " + error)

    def test_ends_of_float_ranges(self):
        """Ends are rounded as elements are, and random elements lie between them."""
        self.write("kernel k[N](x : f32[N] in 0.1..0.1, h : bf16[N] in 0.1..0.3, w : f64[N] in -1.5e308..1.5e308, p : f32 in 0.0..0.1)"
                   " -> (y : f32[N], z : bf16[N], v : f64[N]) { y = x * p  z = h  v = w }")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=64", "p=0.1",
                       "-o", "y=" + self.path("y.npy"), "-o", "v=" + self.path("v.npy"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((np.load(self.path("y.npy")) == np.float32(0.1) * np.float32(0.1)).all())
        drawn = np.load(self.path("v.npy"))
        self.assertGreater(len(np.unique(drawn)), 60)
        self.assertTrue((np.abs(drawn) <= 1.5e308).all())
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=64", "p=0.11")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("p is 0.11, outside of its declared range 0..0.1", done.stderr)

    def test_tolerance(self):
        """The error of a result in the measure of its tolerance, beside that."""
        self.write("kernel k[B, N, M](x : f32[B, N, M], w : f32[M, 4], v : f32[N])"
                   " -> (y : f32[B, N, 4] within 1e-2 relative, z : f32[N] within 2e-3,"
                   " s : f32 within 1) { y = x +.* w  z = v * 3  s = +/ z }")
        words = ("--random", 1, "B=9", "N=40", "M=5")
        # No call shows a relative error beforehand.
        done = mt.tool("moa-run", self.path("scale.moa"), *words, "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: y is not shown to be within 1e-2 relative: no bound is known of errors relative to a result, because "
                      "its norm is not known before the kernel runs; leave 'relative' out for a bound on each element, or add "
                      "'sampled' to ask for none. It was computed all the same; --no-tolerance-check takes it as it is\n", done.stderr)
        done = mt.tool("moa-run", self.path("scale.moa"), *words, "--check", "--no-tolerance-check")
        self.assertEqual(done.returncode, 0, done.stderr)
        number = r"\d(\.\d+)?e-\d+"
        self.assertRegex(done.stdout, rf"within   y: error {number} of 1e-2 allowed \(relative L2 "
                         r"per index of \[B\], of the rows compared, worst at \[\d\]\)\n")
        self.assertRegex(done.stdout, rf"within   z: error ({number}|0) of 2e-3 allowed "
                         r"\(component-wise, worst at \[\d+\]\)\n")
        self.assertRegex(done.stdout, rf"within   s: error ({number}|0) of 1 allowed \(component-wise\)\n")
        self.assertIn(" allowed (relative L2 per index of [B], of the rows compared, worst at [", done.stdout)
        self.assertIn(" allowed (component-wise, worst at [", done.stdout)
        done = mt.tool("moa-run", self.path("scale.moa"), *words, "--check=all", "--within",
                       "z=2e-3,relative", "--within", "y=6e-8")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"within   z: .*\(relative L2\)\n")
        self.assertRegex(done.stdout, r"within   y: .*\(component-wise, worst at \[.*\]\): FAILED\n")
        self.assertIn("the result is not within the bound", done.stderr)

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

    def test_random_integers_are_in_their_range(self):
        self.write("kernel r[M, N](x : f32[N], t : i32[M] in 0..N, u : i32[M] in -3..N)"
                   " -> y : i32[M] { y = t * 100 + u }\n")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "M=400", "N=7", "-o",
                       "y=" + self.path("y.npy"))
        self.assertEqual(done.returncode, 0, done.stderr)
        y = np.load(self.path("y.npy"))
        t = (y + 3) // 100
        self.assertEqual(list(np.unique(t)), list(range(0, 7)))
        self.assertEqual(list(np.unique(y - 100 * t)), list(range(-3, 7)))

    def test_too_large_an_output(self):
        self.write("kernel outer[N](x : f32[N]) -> O : f32[N, N] { O = outer(*, x, x) }")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=3000000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("O : f32[N, N]: an array of shape [3000000, 3000000] takes "
                      "32.7 TiB", done.stderr)
        self.assertNotIn("Stack dump", done.stderr)

    def test_symbols_of_results(self):
        self.write("kernel rows[N, L](x : f32[L]) -> O : f32[N, L] { O = [_, l] x[l] }")
        np.save(self.path("x.npy"), self.x[0].astype(np.float32))
        for target in ("cpu", "reference"):
            done = mt.tool("moa-run", self.path("scale.moa"), "x=" + self.path("x.npy"),
                           "N=3", f"--target={target}", "--check", "-o", "O=" + self.path("o.npy"))
            self.assertEqual(done.returncode, 0, done.stderr)
            np.testing.assert_array_equal(np.load(self.path("o.npy")),
                                          np.tile(self.x[0].astype(np.float32), (3, 1)))

    def test_narrow_integers_wrap(self):
        for bits in (8, 16, 32):
            self.write(f"kernel k[N](x : i{bits}[N]) -> (y : i{bits}[N], z : i{bits})"
                       " { y = x * 50 z = min/ mask(false, x) }")
            x = np.array([3, -3, 2 ** (bits - 1) - 1, -2 ** (bits - 1)], f"i{bits // 8}")
            np.save(self.path("x.npy"), x)
            for target in ("cpu", "reference"):
                for rows in ("2", "all"):
                    done = mt.tool("moa-run", self.path("scale.moa"), f"--check={rows}",
                                   "x=" + self.path("x.npy"), f"--target={target}",
                                   "-o", "y=" + self.path("y.npy"),
                                   "-o", "z=" + self.path("z.npy"))
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    expected = (x.astype(np.int64) * 50).astype(x.dtype)
                    np.testing.assert_array_equal(np.load(self.path("y.npy")), expected)
                    self.assertEqual(np.load(self.path("z.npy")), -1)

    def test_the_widest_integer(self):
        # 2^63 - 1 is 2^63 in float64, where the interpreter's results come out.
        self.write("kernel k[N](x : i64[N]) -> z : i64 { z = min/ mask(false, x) }")
        for target in ("cpu", "reference"):
            done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=3",
                           f"--target={target}", "-o", "z=" + self.path("z.npy"), "--check")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(np.load(self.path("z.npy")), 2 ** 63 - 1)

    def test_outputs_spare_the_specification(self):
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=4", "M=9",
                       "k=1", "a=1", "-o", "y=" + self.path("scale.moa"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("this file is an input", done.stderr)
        with open(self.path("scale.moa"), encoding="utf-8") as file:
            self.assertEqual(file.read(), SPEC)
        same = self.path("same.npy")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=4", "M=9",
                       "k=1", "a=1", "-o", "y=" + same, "-o", "s=" + same)
        self.assertEqual(done.returncode, 1)
        self.assertIn("two outputs go to this file", done.stderr)
        self.assertFalse(os.path.exists(same))

    def test_outputs_spare_the_inputs(self):
        x = np.ones((4, 9), np.float32)
        np.save(self.path("x.npy"), x)
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "k=1", "a=2",
                       "N=4", "M=9", "x=" + self.path("x.npy"),
                       "-o", "s=" + self.path("s.npy"), "-o", "y=" + self.path("x.npy"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.npy: this file is an input", done.stderr)
        np.testing.assert_array_equal(np.load(self.path("x.npy")), x)
        self.assertFalse(os.path.exists(self.path("s.npy")))

    def test_one_output_that_cannot_be_written_leaves_none(self):
        for place, reason in ((self.path("no/y.npy"), "No such file or directory"),
                              (self.directory, "this is a directory"),
                              ("/dev/full", "No space left on device")):
            done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "k=1",
                           "a=2", "N=4", "M=9", "--target=reference", "-o",
                           "s=" + self.path("s.npy"), "-o", "y=" + place)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"cannot write {place}: {reason}", done.stderr)
            if place != "/dev/full":  # written last, and nothing can be taken back there
                self.assertEqual(sorted(os.listdir(self.directory)),
                                 ["keep.npy", "scale.moa"])

    def test_files_that_are_no_arrays(self):
        good = self.path("good.npy")
        np.save(good, np.ones((4, 7), np.float32))
        with open(good, "rb") as file:
            data = file.read()
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"

        def with_shape(shape):
            return data[:10] + (header % shape).ljust(117).encode() + b"\n" + data[128:]

        for contents, message in (
                (b"", "the file is truncated"),
                (b"hello, I am text", "this is not a .npy file"),
                (data[:20], "the file is truncated or of an unknown version"),
                (data[:-5], "truncated: 112 bytes of elements expected, 107 found"),
                (data + b"abc", "too long: 112 bytes of elements expected, 115 found"),
                (with_shape("(4, -7)"), "the shape in the header is senseless: (4, -7)"),
                (with_shape("(99999999999, 99999999999)"), "is senseless: (99999999999, "),
                (with_shape("(4, 7, 1)"), "expects f32[N, M], but the array has rank 3")):
            with open(self.path("x.npy"), "wb") as file:
                file.write(contents)
            done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "k=1",
                           "a=2", "x=" + self.path("x.npy"), "-o", "y=" + self.path("y.npy"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("moa-run: error: x: " + self.path("x.npy") + ": ", done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse(os.path.exists(self.path("y.npy")))

    def test_extents_that_disagree(self):
        np.save(self.path("x.npy"), np.ones((4, 9), np.float32))
        for words, message in (
                (["keep=" + self.path("keep.npy")],
                 "axis 0 of 'keep' has extent 7, but 'M' is 9"),
                (["N=5"], "axis 0 of 'x' has extent 4, but 'N' is 5"),
                (["N=-5"], "'-5' is no value of the symbol N; a size is an integer from 0"),
                (["--set", "N=5"], "axis 0 of 'x' has extent 4, but '5' is declared"),
                (["--set", "N=-5"], "is to be an integer from 0 to 2^63 - 1, but is '-5'"),
                (["--set", "N"], "expects a setting NAME=VALUE, but got 'N'"),
                (["--set", "N=5", "--set", "N=6"], "'N' is set twice"),
                (["a=x"], "a : f32: 'x' is not a value of this type"),
                (["k=1.5"], "k : i32: '1.5' is not a value of this type"),
                (["y=y.npy"], "has no input or run-time symbol 'y'"),
                (["-o", "w=w.npy"], "has no output 'w'")):
            base = [word for word in ("k=1", "a=2")
                    if not any(w[:2] == word[:2] for w in words)]
            done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, *base,
                           "x=" + self.path("x.npy"), *words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(message, done.stderr)

    def test_warnings_are_shown(self):
        self.write("kernel half[N](x : f32[N]) -> y : f32[N] { y = 1/2 * x }")
        done = mt.tool("moa-run", self.path("scale.moa"), "--random", 1, "N=3")
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: '/' on integers floors: 1 / 2 is 0", done.stderr)

    def test_a_failed_check_writes_the_outputs(self):
        # The compiled kernel adds infinities of both signs, in any order.
        self.write("kernel s[N](x : f32[N]) -> y : f32 { y = +/ x }")
        np.save(self.path("x.npy"), np.array([3e38, 3e38, -3e38, -3e38] * 3, np.float32))
        done = mt.tool("moa-run", self.path("scale.moa"), "x=" + self.path("x.npy"),
                       "--check", "-o", "y=" + self.path("y.npy"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the result is not within the bound", done.stderr)
        self.assertTrue(os.path.exists(self.path("y.npy")))

    def test_other_element_types(self):
        done = self.run_on("f32", self.x)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the elements are of type float64; save x.astype(numpy.float32)",
                      done.stderr)
        for stored, name in ((self.x.astype(np.int64), "int64"), (self.x > 0, "bool"),
                             (self.x.astype(np.uint8), "uint8"),
                             (mt.to_bf16(self.x).view("V2"), "V2, two opaque bytes")):
            done = self.run_on("f32", stored)
            self.assertIn(f"the elements are of type {name}; save", done.stderr)

    def test_missing_values(self):
        for words, message in ((["M=9"], "the symbol N has no value; give N=SIZE"),
                               (["N=1", "M=9", "a=1"], "give k=VALUE"),
                               (["N=x", "M=9"], "'x' is no value of the symbol N"),
                               (["N=1", "N=2"], "'N' is given twice"),
                               (["N"], "expects NAME=VALUE"),
                               (["D=3"], "is set by --set D=3"),
                               (["T=f16"], "is set by --set T=f16"),
                               (["-o", "y.npy"], "-o takes NAME=FILE.npy"),
                               (["--check=some"], "--check takes a number of rows"),
                               (["--check=-1"], "--check takes a number of rows"),
                               (["--check=0"], "--check takes a number of rows")):
            base = [] if "a=1" in words else ["k=1", "a=1"]
            done = mt.tool("moa-run", self.path("scale.moa"), *words, *base,
                           "--random", 1)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(message, done.stderr)
        done = mt.tool("moa-run", self.path("scale.moa"), "k=1", "a=1")
        self.assertIn("x : f32[N, M], keep : bool[M] have no value; give x=FILE.npy keep=FILE.npy, "
                      "or --random SEED for arrays", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
