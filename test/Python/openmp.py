# REQUIRES: moa-python
# RUN: env OMP_NUM_THREADS=4 %moa_python %s
"""Processes with another OpenMP library: kernels take all functions from one library. PyTorch shows GCC's to all
libraries, and NumPy with MKL loads Intel's, which ends the process if LLVM's starts too."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import SOURCE  # noqa: E402

try:
    gomp = ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)  # before the compiler's library
except OSError:
    print("skipped: this machine has no libgomp.so.1")
    sys.exit(0)

import numpy as np  # noqa: E402

import moa  # noqa: E402


class OpenMP(unittest.TestCase):

    def test_threads(self):
        self.assertEqual(gomp.omp_get_thread_num(), 0)
        q, k, v = np.random.default_rng(0).standard_normal((3, 2, 4, 300, 32))
        scores = q @ k.transpose(0, 1, 3, 2) * 0.25
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = weights / weights.sum(-1, keepdims=True) @ v
        kernel = moa.compile(SOURCE / "examples" / "sdpa.moa", T="f64", D=32)
        first = kernel(q, k, v, scale=0.25)
        np.testing.assert_allclose(first, wanted, rtol=1e-12, atol=1e-12)
        for _ in range(50):
            np.testing.assert_array_equal(kernel(q, k, v, scale=0.25), first)

    def test_intel(self):
        """A copy of LLVM's library under the name of Intel's, loaded for another library only."""
        kernel = moa.compile("kernel k[N](x : f32[N]) -> y : f32[N] { y = [i < N] x[i] * 2.0 }")
        kernel(np.ones(5, np.float32))
        with open("/proc/self/maps", encoding="utf-8") as maps:
            (path,) = {line.split()[-1] for line in maps if re.search(r"/libomp\.so", line)}
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            other = pathlib.Path(directory, "libiomp5.so")
            other.write_bytes(pathlib.Path(path).read_bytes().replace(b"libomp.so.5", b"libiomp5.so"))
            script = f"""
import ctypes, os
assert ctypes.CDLL({str(other)!r}, os.RTLD_LOCAL).omp_get_max_threads() > 0
import numpy as np, moa
kernel = moa.compile({kernel.specification!r})
assert (kernel(np.ones(5, np.float32)) == 2).all()
"""
            made = subprocess.run([sys.executable, "-c", script], env={**os.environ, "MOA_CACHE": "0"},
                                  stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual(made.returncode, 0, made.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
