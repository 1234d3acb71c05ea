# REQUIRES: ptxas
# RUN: %python %s
"""ptxas takes the PTX of device programs of fragments, which has as many of each
instruction as the CUDA C++ text makes (test/Target/CUDA/fragments.py)."""
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt

FOLDER = os.path.join(mt.SOURCE_ROOT, "test", "Interpreter", "Device", "Inputs")
PROGRAMS = {
    "tile_product": {
        r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16": 20,
        r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16": 16,
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32": 64,
        r"wgmma\.mma_async": 4, r"shfl\.sync\.idx": 128},
    "half_product": {
        r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.f16\.f16\.f32": 9, r"shfl": 0},
    "double_product": {
        r"mma\.sync\.aligned\.m8n8k4\.row\.col\.f64\.f64\.f64\.f64": 8, r"shfl": 0},
    "conversions": {
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32": 2,
        r"shfl\.sync\.idx": 64},
}


class Fragments(unittest.TestCase):

    def test_programs(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for name, counts in PROGRAMS.items():
                with self.subTest(program=name):
                    base = os.path.join(directory, name)
                    made = mt.tool("moa-codegen", os.path.join(FOLDER, name + ".mlir"),
                                   "--target=ptx", "-o", base + ".ptx")
                    self.assertEqual((made.returncode, made.stderr), (0, ""))
                    done = subprocess.run(["ptxas", "-arch=sm_90a", base + ".ptx", "-o", base],
                                          text=True, timeout=300, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT)
                    self.assertEqual((done.returncode, done.stdout), (0, ""))
                    with open(base + ".ptx", encoding="utf-8") as file:
                        text = file.read()
                    for pattern, count in counts.items():
                        self.assertEqual(len(re.findall(pattern, text)), count, pattern)


if __name__ == "__main__":
    unittest.main(verbosity=2)
