# RUN: %python %s
"""moa-run --check of results with a tolerance, against its measures by hand in NumPy."""
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt

B, H, N, M, D = 2, 3, 41, 67, 32
SCALE = 0.2

ATTENTION = """
kernel attention[B, H, N, M; T : float = bf16, D = 32](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32)
    -> (O : T[B, H, N, D] %s, lse : f32[B, H, N])
{
  S   = (Q +.* transpose(K)) * scale
  O   = softmax(S) +.* V
  lse = logsumexp(S)
}
"""

# Everything that may stand around sums, and a term that is a sum.
FORMS = """
kernel forms[N, M](x : f32[N, M], w : f32[M], g : f32[N])
    -> (a : f16[N] within 1e-1, b : f16[N] within 1e-1, c : f16[N] within 1e-1)
{
  a = g * (x +.* w) / 3 - g                         // a context: a factor, a quotient, a summand
  b = select(g > 0, +/ (x - [_, j] w[j]), g * g)    // a selection; a term that is a difference
  c = log(+/ (x * x))                               // linear in no sum
}
"""

# Name, error, tolerance, measure, and the rest.
LINE = re.compile(r"within   (\w+): error (\S+) of (\S+) allowed "
                  r"\((component-wise|relative L2(?: per index of \[.*?\])?)(.*?)\)")


def bf16(x):
    return mt.from_bf16(mt.to_bf16(x)).astype(np.float64)


class Within(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        rng = np.random.default_rng(11)
        self.q, self.k, self.v = (bf16(rng.standard_normal((B, H, n, D))) for n in (N, M, M))
        # Values of one sign in some heads: their relative error is small there.
        self.v[0] = abs(self.v[0])

    def path(self, name):
        return os.path.join(self.directory, name)

    def attention(self, within, *flags):
        """A run of moa-run, its lines on tolerances, and the output."""
        with open(self.path("a.moa"), "w", encoding="utf-8") as file:
            file.write(ATTENTION % within)
        words = [f"scale={SCALE}"]
        for name, x in (("Q", self.q), ("K", self.k), ("V", self.v)):
            np.save(self.path(name + ".npy"), x)
            words.append(f"{name}={self.path(name + '.npy')}")
        done = mt.tool("moa-run", self.path("a.moa"), *words, "-o", "O=" + self.path("o.npy"),
                       *flags)
        output = mt.from_bf16(np.load(self.path("o.npy")).view(np.uint16)).astype(np.float64)
        return done, LINE.findall(done.stdout), output

    def weights(self):
        s = self.q @ self.k.swapaxes(-1, -2) * np.float64(np.float32(SCALE))
        p = np.exp(s - s.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True)

    def assert_line(self, line, name, error, allowed, measure, worst):
        self.assertEqual((line[0], line[2], line[3]), (name, allowed, measure))
        self.assertAlmostEqual(float(line[1]) / error, 1, delta=6e-3)
        self.assertEqual(line[4], f", worst at [{', '.join(map(str, worst))}]")

    def test_relative(self):
        done, lines, output = self.attention("within 3e-2 relative", "--check=all", "--no-tolerance-check")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = self.weights() @ self.v
        errors = (np.linalg.norm(output - expected, axis=(2, 3))
                  / np.linalg.norm(expected, axis=(2, 3)))
        worst = np.unravel_index(errors.argmax(), errors.shape)
        self.assertEqual(len(lines), 1)
        self.assert_line(lines[0], "O", errors[worst], "3e-2", "relative L2 per index of [B, H]",
                         worst)

    def test_componentwise(self):
        done, lines, output = self.attention("within 3e-2", "--check=all")
        self.assertEqual(done.returncode, 0, done.stderr)
        p = self.weights()
        errors = abs(output - p @ self.v) / (abs(p) @ abs(self.v))
        worst = np.unravel_index(errors.argmax(), errors.shape)
        self.assert_line(lines[0], "O", errors[worst], "3e-2", "component-wise", worst)

    def test_too_small(self):
        """Rounding the result to bf16 alone makes more than this."""
        for rows in ("--check", "--check=all"):
            with self.subTest(rows=rows):
                done, lines, _ = self.attention("within 1e-5 relative sampled", rows)
                self.assertEqual(done.returncode, 1)
                self.assertGreater(float(lines[0][1]), 1e-5)
                self.assertRegex(done.stdout, r"within   O: .* of 1e-5 allowed \(.*\): FAILED")
                self.assertIn("the result is not within the bound", done.stderr)
                # What the types allow is another line, which holds.
                self.assertNotRegex(done.stdout, "check    O: .*FAILED")
        done, lines, _ = self.attention("within 4e-3", "--check=all")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"within   O: .* of 4e-3 allowed \(.*\): FAILED")

    def test_below_rounding(self):
        """What no result keeps for every input is refused."""
        for within in ("within 1e-5", "within 1e-5 relative", "within 3.8e-3"):
            with open(self.path("a.moa"), "w", encoding="utf-8") as file:
                file.write(ATTENTION % within)
            done = mt.tool("moa-codegen", self.path("a.moa"), "-o", self.path("a.o"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("a.moa:4:27: error: no result of bf16 is within", done.stderr)
            self.assertFalse(os.path.exists(self.path("a.o")))

    def test_from_outside(self):
        done, lines, _ = self.attention("within 1e-5 relative sampled", "--check", "--within", "O=2e-2,relative,sampled")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines[0][2], "2e-2")
        done, lines, _ = self.attention("", "--check", "--within", "lse=1e-9,relative,sampled", "--within=O=1e-2")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line[0] for line in lines], ["O", "lse"])
        self.assertRegex(done.stdout, "within   lse: .*: FAILED")

    def test_without(self):
        done, lines, _ = self.attention("", "--check")
        self.assertEqual((done.returncode, lines), (0, []))

    def test_other_targets(self):
        """The interpreter of the specification rounds nothing but the result."""
        done, lines, output = self.attention("within 1e-2", "--check=all", "--target=reference")
        self.assertEqual(done.returncode, 0, done.stderr)
        p = self.weights()
        errors = abs(output - p @ self.v) / (abs(p) @ abs(self.v))
        self.assertAlmostEqual(float(lines[0][1]) / errors.max(), 1, delta=6e-3)
        self.assertLess(errors.max(), 2.0 ** -8)

    def test_magnitudes(self):
        with open(self.path("f.moa"), "w", encoding="utf-8") as file:
            file.write(FORMS)
        rng = np.random.default_rng(5)
        x, w, g = (rng.standard_normal(s).astype(np.float32) for s in ((50, 33), 33, 50))
        words = []
        for name, value in (("x", x), ("w", w), ("g", g)):
            np.save(self.path(name + ".npy"), value)
            words.append(f"{name}={self.path(name + '.npy')}")
        # Of a logarithm, which may be 0, nothing is shown beforehand.
        done = mt.tool("moa-run", self.path("f.moa"), *words, "--check=all", "--no-tolerance-check", "-o",
                       "a=" + self.path("a.npy"), "-o", "b=" + self.path("b.npy"), "-o",
                       "c=" + self.path("c.npy"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        x, w, g = (value.astype(np.float64) for value in (x, w, g))
        values = {"a": g * (x @ w) / 3 - g,
                  "b": np.where(g > 0, (x - w).sum(1), g * g),
                  "c": np.log((x * x).sum(1))}
        magnitudes = {"a": abs(g) * (abs(x) @ abs(w)) / 3 + abs(g),
                      "b": np.where(g > 0, (abs(x) + abs(w)).sum(1), g * g),
                      "c": abs(values["c"])}
        lines = LINE.findall(done.stdout)
        self.assertEqual([line[0] for line in lines], ["a", "b", "c"])
        for line in lines:
            name = line[0]
            found = np.load(self.path(name + ".npy")).astype(np.float64)
            errors = abs(found - values[name]) / magnitudes[name]
            worst = errors.argmax()
            with self.subTest(result=name):
                self.assert_line(line, name, errors[worst], "1e-1", "component-wise", [worst])


if __name__ == "__main__":
    unittest.main(verbosity=2)
