# REQUIRES: nvcc
# RUN: %python %s
"""nvcc takes device programs of fragments without a warning: for sm_90a and, where no
instruction is Hopper's, for sm_80. The text has the instructions their ops are named
after, as often as the tiles ask for."""
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt

FOLDER = os.path.join(mt.SOURCE_ROOT, "test", "Interpreter", "Device", "Inputs")
HOPPER, AMPERE = "arch=compute_90a,code=sm_90a", "arch=compute_80,code=sm_80"
# Instructions of the PTX that nvcc makes. tile_product: a, kt and v of 64 by 64 are 4, 16
# and 16 reads of four matrices; two products of 8 by 4 tiles; 32 registers, for each of
# which lanes ask for 4. conversions: 8·4 + 4 + 4 + 8·2 + 2·4 shuffles, 2 products.
PROGRAMS = {
    "tile_product": ([HOPPER], {
        r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16": 20,
        r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans\.shared\.b16": 16,
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32": 64,
        r"wgmma\.mma_async": 4, r"shfl\.sync\.idx": 128}),
    "half_product": ([HOPPER, AMPERE], {
        r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.f16\.f16\.f32": 9, r"shfl": 0}),
    "double_product": ([HOPPER, AMPERE], {
        r"mma\.sync\.aligned\.m8n8k4\.row\.col\.f64\.f64\.f64\.f64": 8, r"shfl": 0}),
    "conversions": ([HOPPER, AMPERE], {
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32": 2,
        r"shfl\.sync\.idx": 64}),
}


class Fragments(unittest.TestCase):

    def nvcc(self, *words):
        done = subprocess.run(["nvcc", "-Werror", "all-warnings", *words], text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_programs(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for name, (architectures, counts) in PROGRAMS.items():
                with self.subTest(program=name):
                    base = os.path.join(directory, name)
                    made = mt.tool("moa-codegen", os.path.join(FOLDER, name + ".mlir"),
                                   "--target=cuda", "-o", base + ".cu")
                    self.assertEqual((made.returncode, made.stderr), (0, ""))
                    for architecture in architectures:
                        self.nvcc("-gencode", architecture, "-cubin", base + ".cu", "-o", base)
                    self.nvcc("-gencode", HOPPER.replace("code=sm", "code=compute"), "-ptx",
                              base + ".cu", "-o", base + ".ptx")
                    with open(base + ".ptx", encoding="utf-8") as file:
                        text = file.read()
                    for pattern, count in counts.items():
                        self.assertEqual(len(re.findall(pattern, text)), count, pattern)
                    with open(base + ".cu", encoding="utf-8") as file:
                        kernel = file.read().split("\n#include", 1)[1]
                    self.assertLessEqual(max(map(len, kernel.split("\n"))), 120)


if __name__ == "__main__":
    unittest.main(verbosity=2)
