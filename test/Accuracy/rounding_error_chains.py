# RUN: %python %s
"""The analysis of rounding errors ends for chains whose bounds grow with each step: squares of a matrix, and layers.

With one more step the report is less than four times as long. For example, five squares take 256 KB.
"""
import os
import subprocess
import tempfile
import unittest

CHAINS = {
    "squares of a matrix": ("kernel c[L](s0 : f32[L, L]) -> (y : f32[L, L]) {", "{0} +.* {0}", (3, 4, 5)),
    "layers": ("kernel c[N; D = 16](s0 : f32[N, D], W : f32[D, D]) -> (y : f32[N, D]) {", "tanh({0} +.* W)", (3, 4, 5)),
    "steps of the delta rule": (
        "kernel c[L](A : f32[L, L], s0 : f32[L, L]) -> (y : f32[L, L]) {", "{0} + (A +.* A) +.* {0}", (2, 3, 4)),
}


class Chains(unittest.TestCase):

    def report(self, begin, step, levels):
        lines = [begin] + [f"  s{k} = {step.format(f's{k - 1}')}" for k in range(1, levels + 1)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines + [f"  y = s{levels}", "}"]) + "\n")
            run = subprocess.run(["moa-codegen", path, "--report=json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('"y"', run.stdout)
        return len(run.stdout)

    def test_growth(self):
        for name, (begin, step, levels) in CHAINS.items():
            with self.subTest(name):
                sizes = [self.report(begin, step, count) for count in levels]
                print(name, sizes)
                for small, large in zip(sizes, sizes[1:]):
                    self.assertLess(large, 4 * small)


if __name__ == "__main__":
    unittest.main()
