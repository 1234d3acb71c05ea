# RUN: %python %s
"""Assumptions in modules written by hand: what cannot be read is said at the kernel, with
the text and what it lacks."""
import os
import subprocess
import tempfile
import unittest

KERNEL = """dnf.kernel @k attributes {symbols = ["N"], requires = [], moa.assumes = ["%s"],
    arg_names = ["x", "off"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%%x: !moa.array<[N], f32>, %%off: !moa.array<[N], i32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%%n: index):
    %%0 = dnf.psi %%x[%%n] : <[N], f32> -> f32
    dnf.yield %%0 : f32
  }
}
"""
CASES = [
    ("off[0", "'off[0' cannot be read: expected ']'"),
    ("[] N > 0", "'[] N > 0' cannot be read: expected a name"),
    ("[b] off[b] and 1", "'[b] off[b] and 1' cannot be read: 'and' and 'or' combine comparisons"),
    ("off[0] >= 99999999999999999999",
     "'off[0] >= 99999999999999999999' cannot be read: an integer is too large"),
    ("off[0] + 1", "'off[0] + 1' cannot be read: it is no predicate"),
    ("-" * 250 + "1 > N", "1 > N' cannot be read: it is nested too deeply"),
    ("N > N", "the assumption 'N > N' never holds"),
]


class Predicates(unittest.TestCase):

    def check(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "k.mlir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(KERNEL % text)
            return subprocess.run(["moa-opt", path, "-moa-validate", "-o", os.devnull], timeout=60,
                                  capture_output=True, text=True, check=False)

    def test_refused(self):
        for text, message in CASES:
            with self.subTest(text=text):
                done = self.check(text)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("k.mlir:1:1: error: ", done.stderr)
                self.assertIn(message, done.stderr)

    def test_read(self):
        done = self.check("[b] off[b] >= 0 and off[b] + 1 <= N or N == 7")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
