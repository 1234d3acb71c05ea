"""Runs where the wheel and NumPy are installed: compiles SPECIFICATION, which is examples/sdpa.moa,
compares the kernel with NumPy, and runs the tools. OPENMP, if given, is loaded first: another library
of the process uses it."""
import ctypes
import os
import re
import subprocess
import sys

import numpy as np

import moa

specification, version, *openmp = sys.argv[1:]
for path in openmp:
    assert ctypes.CDLL(path, os.RTLD_LOCAL).omp_get_max_threads() > 0
kernel = moa.compile(specification, T="f32", D=64)
draw = np.random.default_rng(0)
Q, K, V = (draw.standard_normal((2, 3, rows, 64), np.float32) for rows in (50, 70, 70))
O = kernel(Q, K, V, scale=0.125)
S = np.einsum("bhnd,bhmd->bhnm", Q.astype(np.float64), K) * 0.125
P = np.exp(S - S.max(-1, keepdims=True))
expected = P / P.sum(-1, keepdims=True) @ V
error = np.linalg.norm(O - expected) / np.linalg.norm(expected)
assert O.dtype == np.float32 and error < 2e-6, error
assert moa.__version__ == version, moa.__version__


def run(tool, *arguments):
    return subprocess.run([sys.executable, "-m", "moa", tool, *arguments], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8").stdout


for tool in ("codegen", "opt", "run"):
    assert run(tool, "--version").startswith(f"MoA {version}, LLVM "), tool
assert ".visible .entry" in run("codegen", specification, "--target=ptx", "-o", "-")
assert "check    O" in run("run", specification, "--set", "T=f32", "--random", "1", "B=1", "H=2",
                           "N=20", "M=30", "scale=0.1", "--check")

with open("/proc/self/maps", encoding="utf-8") as maps:
    loaded = {line.split()[-1] for line in maps if re.search("lib(i?omp|LLVM|MLIR)", line)}
package = os.path.join(os.path.dirname(moa.__file__), "_lib", "libomp.so.5")
assert loaded == {package, *openmp}, loaded
print("the wheel works")
