# REQUIRES: nvcc
# RUN: %python %s
"""nvcc makes the same float operations of CUDA C++ text whether it may contract or not,
but for the inside of libdevice (functions.py).
"""
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt

OPERATIONS = re.compile(r"(fma|add|sub|mul|div|ex2|rcp|sqrt|max|min|cvt)\.\S*f(16|32|64)\S*")
CASES = [("sdpa", "bf16"), ("softcap", "bf16"), ("gqa_causal", "f32"), ("softcap", "f32"),
         ("layernorm_product", "f32"), ("sdpa", "f64")]


class Contraction(unittest.TestCase):

    def test_same(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for name, kind in CASES:
                with self.subTest(example=name, T=kind):
                    base = os.path.join(directory, f"{name}-{kind}")
                    made = mt.tool("moa-codegen", mt.example(name), "--set", f"T={kind}",
                                   "--target=cuda", "-o", base + ".cu")
                    self.assertEqual((made.returncode, made.stderr), (0, ""))
                    lists = []
                    for contracts in ("true", "false"):
                        done = subprocess.run(
                            ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-ptx",
                             f"-fmad={contracts}", base + ".cu", "-o", base + ".ptx"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                        self.assertEqual(done.returncode, 0, done.stdout)
                        with open(base + ".ptx", encoding="utf-8") as file:
                            found = [m[0].replace(".rn", "") for m in OPERATIONS.finditer(file.read())]
                        self.assertGreater(len(found), 20)
                        lists.append(sorted(found))
                    self.assertEqual(*lists)


if __name__ == "__main__":
    unittest.main(verbosity=2)
