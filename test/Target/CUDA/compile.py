# REQUIRES: nvcc
# RUN: %python %s
"""nvcc takes the CUDA C++ of every example without a warning.

ptxas says what it made of it: products that it serialised (C7510 to C7519) are an
error everywhere, registers spilled to memory one in the kernels on the tensor
cores (gpu_cases.py has the list, which PTX shares).
"""
import concurrent.futures
import os
import subprocess
import tempfile
import unittest

import gpu_cases
import moa_testing as mt

FLAGS = ["-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings",
         "-Xptxas", "-v", "-cubin"]


class Compile(unittest.TestCase):

    def compile(self, directory, name, settings):
        """What moa-codegen and nvcc said, one after the other."""
        words = [name] + [f"{k}={v}" for k, v in settings.items()]
        base = os.path.join(directory, "-".join(words))
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        made = mt.tool("moa-codegen", mt.example(name), *sets, "--target=cuda",
                       "-o", base + ".cu")
        if made.returncode:
            return "moa-codegen", made.returncode, made.stderr
        done = subprocess.run(["nvcc", *FLAGS, base + ".cu", "-o", base + ".cubin"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300)
        return "nvcc", done.returncode, done.stdout

    def test_examples(self):
        self.assertGreaterEqual(len(gpu_cases.names()), 11)
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = [(*case, pool.submit(self.compile, directory, *case[:2]))
                       for case in gpu_cases.cases()]
            for name, settings, strict, future in running:
                with self.subTest(example=name, **settings):
                    tool, code, text = future.result()
                    self.assertEqual(code, 0, f"{tool}: {text}")
                    gpu_cases.check_assembler(self, text, strict)

    def test_host_code(self):
        """The part that runs on the CPU: with all warnings of the host compiler."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for kind in ("f32", "bf16"):
                base = os.path.join(directory, kind)
                made = mt.tool("moa-codegen", mt.example("gqa_causal"), "--set", f"T={kind}",
                               "--target=cuda", "-o", base + ".cu")
                self.assertEqual(made.returncode, 0, made.stderr)
                done = subprocess.run(
                    ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror",
                     "all-warnings", "-Xcompiler", "-Wall,-Wextra,-fPIC", "-shared",
                     base + ".cu", "-o", base + ".so"],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
                self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
