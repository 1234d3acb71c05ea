# RUN: %python %s
"""What moa-run and moa-codegen --timing write about a run, line by line, with # for each
number, and what moa-run says of inputs and targets that do not go together."""
import os
import re
import unittest

import numpy as np

import moa_testing as mt

NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[-+]\d+)?(?![\w.])")
COMPILED = ("compile  frontend #, dnf #, validate #, onf #, lifted #, vector #, llvm #, translate #, "
            "optimise #, codegen #, load #, ms: specification to lowered code # s, machine code # s, "
            "in all # s")
RAN = ["run      # ms, # GFLOP/s", "bytes    # B in, # B out, # GB/s"]
CHECKED = "check    {}: # of # rows, largest error #, relative L2 error # (bound #)"
SCALE = "kernel k[N](x : f32[N], a : f32) -> y : f32[N] { y = a * x }"
TIES = "kernel k[N](x : f32[N], y : f32[N]) -> a : i32[N] { a = i32(x * y * 1000) }"
RANGE = "kernel k[N](x : f32[N]) -> y : f32[N] { y = exp(x * 200) / exp(x * 200) }"
FAR = "kernel k[N](x : f32[N]) -> y : f32[N] { far = x + 10000  y = exp(far - 10000) }"
ATTENTION = """kernel k[B, H, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D]) -> O : T[B, H, N, D]
{ O = softmax(mask([_, _, i, j] j <= i, Q +.* transpose(K))) +.* V }"""
# The specification, the words, the exit status, and the lines.
CASES = [
    (SCALE, ["N=5", "a=2"], 0, [COMPILED] + RAN),
    (SCALE, ["N=5", "a=2", "--repeat=3", "--check"], 0,
     [COMPILED, "run      # ms (median of #; first # ms), # GFLOP/s", RAN[1], CHECKED.format("y")]),
    (SCALE, ["N=5", "a=2", "--target=reference", "--check=all"], 0,
     ["run      # s in the interpreter", CHECKED.format("y")]),
    (ATTENTION, ["B=1", "H=1", "N=70", "M=70", "--target=device"], 0,
     ["run      # s in the interpreter", "tiles    copied: K #, Q #, V #; guard evaluated in #"]),
    (TIES, ["N=100000", "--check=all"], 0,
     [COMPILED, RAN[0], "bytes    # KiB in, # KiB out, # GB/s",
      CHECKED.format("a") + "; # more where a rounding decides"]),
    (RANGE, ["N=300", "--check=all"], 1,
     [COMPILED, RAN[0], "bytes    # KiB in, # KiB out, # GB/s",
      CHECKED.format("y") + ", NaN or infinity at the wrong place: y[#] is NaN, and # in the "
      "reference; a value on the way there leaves the range of f32, # to #: FAILED"]),
    (FAR, ["N=100", "--check"], 1,
     [COMPILED] + RAN + [CHECKED.format("y") + "; one rounding per operation moves the reference by "
                         "#: UNDECIDED, as these inputs are ill-conditioned; declare the ranges that x has "
                         "in use, as in 'x : f32[N] in -1.0..0'"]),
]


def lines(text):
    return [NUMBER.sub("#", line) for line in text.splitlines()]


class Lines(mt.DirectoryTest):

    def run_tool(self, name, *words):
        return mt.tool(name, *words, cwd=self.directory)

    def test_runs(self):
        for text, words, status, expected in CASES:
            with self.subTest(specification=text, words=words):
                self.write("spec.moa", text)
                done = self.run_tool("moa-run", "spec.moa", "--random", 1, *words)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(lines(done.stdout), expected)

    def test_rounded_operands(self):
        """Queries and keys that are computed, and rounded to bf16 for the contraction."""
        path = os.path.join(os.environ["MOA_SOURCE_ROOT"], "test", "Families",
                            "rotary_computed.moa")
        done = self.run_tool("moa-run", path, "--set", "D=16", "--random", 1, "B=1", "H=2", "N=16", "M=60", "scale=0.25", "--check")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(lines(done.stdout)[3], "check    O: # of # rows, largest error #, relative L2 "
                         "error # (bound # and # of rounded operands)")
        # Weights next to 1, less 1: rounding them leaves little of their differences, and allows no error of that size.
        self.write("rest.moa", """kernel rest[N, M, D; T : float = bf16](x : T[N, M], y : T[M, D]) -> z : f32[N, D]
{ z = (exp(x * 0.001) +.* y) - ((x * 0.0 + 1.0) +.* y) }""")
        done = self.run_tool("moa-run", "rest.moa", "--random", 1, "N=8", "M=40", "D=16", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"relative L2 error \S+ \(bound 3e-03 and \S+ of rounded operands, of which 6\.2e-02 count\); .*: FAILED")

    def test_timing(self):
        self.write("spec.moa", SCALE)
        done = self.run_tool("moa-codegen", "spec.moa", "--emit=onf", "-o", "spec.mlir", "--timing")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split() for line in lines(done.stderr)],
                         [["#", "ms", stage]
                          for stage in ("frontend", "dnf", "validate", "onf", "total")])

    def test_levels(self):
        """What a target runs, and what --check compares with."""
        self.write("spec.moa", SCALE)
        for level in ("dnf", "onf", "device"):
            made = self.run_tool("moa-codegen", "spec.moa", f"--emit={level}", "-o", f"{level}.mlir")
            self.assertEqual(made.returncode, 0, made.stderr)
        for level, words, message in (
                ("device", [], "device.mlir is at the level device; --target=device runs it"),
                ("dnf", ["--target=reference"], "--target=reference interprets specifications, but "
                 "dnf.mlir is at the level dnf"),
                ("onf", ["--check"], "--check compares with the interpreter of the specification, but "
                 "onf.mlir is at the level onf; check the specification, or compare the files of -o"),
                ("dnf", ["--check=all"], "--check compares with the interpreter of the "
                 "specification, but dnf.mlir is at the level dnf; check the specification, or "
                 "compare the files of -o")):
            with self.subTest(level=level, words=words):
                done = self.run_tool("moa-run", f"{level}.mlir", "--random", 1, "N=3", "a=2", *words)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertEqual(done.stderr, f"moa-run: error: {message}\n")
        done = self.run_tool("moa-run", "dnf.mlir", "--random", 1, "N=3", "a=2", "--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_outputs_are_tried_first(self):
        self.write("spec.moa", SCALE)
        done = self.run_tool("moa-run", "spec.moa", "--random", 1, "N=3", "a=2", "-o", "y=no/y.npy")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr,
                         "moa-run: error: cannot write no/y.npy: No such file or directory\n")

    def test_a_constraint_that_does_not_hold(self):
        self.write("spec.moa", SCALE.replace(" {", " require N % 2 == 0 {"))
        np.save(os.path.join(self.directory, "x.npy"), np.ones(3, np.float32))
        done = self.run_tool("moa-run", "spec.moa", "x=x.npy", "a=2")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "moa-run: error: the constraint 'N%2 == 0' does not hold with "
                         "N = 3\n")

    def test_a_long_remark_is_cut(self):
        done = mt.tool("moa-codegen", mt.example("layernorm_product"), "--emit=onf", "--remarks", "-o",
                       os.devnull)
        remarks = [line for line in done.stderr.splitlines() if ": remark: " in line]
        self.assertTrue(any("another pass" in line and " … " in line for line in remarks), remarks)
        for line in remarks:
            self.assertLess(len(line.split(": remark: ")[1]), 400)


if __name__ == "__main__":
    unittest.main(verbosity=2)
