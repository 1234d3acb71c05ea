# REQUIRES: nvcc
# RUN: %python %s
"""CUDA C++ and PTX of kernels with unsigned arrays and scalars: both are assembled, and the
header's scalars have no sign.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "test/Integration/CPU"))
import unsigned  # noqa: E402

HOPPER = "arch=compute_90a,code=sm_90a"
CASES = [(unsigned.CONVERT, {"U": kind}) for kind in unsigned.KINDS]
CASES += [(unsigned.GATHER, {"I": "u32"}), (unsigned.HIGH, {}), (unsigned.DEQUANTISED, {})]
CASES += [(unsigned.PAGED, {"T": kind}) for kind in ("f32", "bf16")]
CASES += [(unsigned.PRODUCTS.format(x="u8", y="i8"), {})]


class Unsigned(unittest.TestCase):

    def run_tool(self, *words):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (0, ""), words)

    def test_both_texts(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, "k")
            for spec, settings in CASES:
                with open(base + ".moa", "w", encoding="utf-8") as file:
                    file.write(spec)
                sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
                with self.subTest(kernel=spec.split("[")[0], **settings):
                    for target, name in (("cuda", "k.cu"), ("ptx", "k.ptx")):
                        made = mt.tool("moa-codegen", base + ".moa", *sets, f"--target={target}", "-o",
                                       os.path.join(directory, name), "--header", base + ".h")
                        self.assertEqual(made.returncode, 0, made.stderr)
                    self.run_tool("nvcc", "-gencode", HOPPER, "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-fPIC",
                                  "-shared", base + ".cu", "-o", base + ".so")
                    self.run_tool("ptxas", "-arch=sm_90a", base + ".ptx", "-o", base + ".cubin")
                    self.run_tool("cc", "-Wall", "-Wextra", "-fsyntax-only", base + ".h")


if __name__ == "__main__":
    unittest.main(verbosity=2)
