# REQUIRES: moa-python
# RUN: env OMP_NUM_THREADS=4 %moa_python %s
"""A process that shows GCC's OpenMP to all libraries, as PyTorch does: kernels take all functions from one library."""
import ctypes
import pathlib
import sys
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
