# REQUIRES: nvcc
# RUN: %python %s
"""Outputs without elements, by their declared extents: nvcc takes the file without a warning,
and a call writes what is not empty and launches nothing for what is.

No GPU is needed: the library is called beside functions that answer as a driver with
one does, and remember a launch.
"""
import ctypes as C
import os
import subprocess
import sys
import tempfile
import unittest

import host
import moa_testing as mt

HEADS = "Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, E]) -> "
# Name, specification, and how many of its kernels start no block.
CASES = [
    ("scaled", "kernel k[N; D = 0](x : f32[N, D]) -> y : f32[N, D] { y = x * 2 }", 1),
    ("rows", "kernel k[N](x : f32[N]) -> y : f32[0, N] { y = [i < 0, j < N] x[j] }", 1),
    ("two", "kernel k[N; D = 0](x : f32[N, D]) -> (y : f32[N], z : f32[N, D]) { y = +/ x  z = x }",
     1),
    ("width", "kernel k[B, H, N, M; T : float = bf16, D = 64, E = 0](" + HEADS +
     "(O : T[B, H, N, E], l : f32[B, H, N])\n"
     "{ S = Q +.* transpose(K)  O = softmax(S) +.* V  l = logsumexp(S) }", 0),
    ("heads", "kernel k[B, N, M; T : float = bf16, D = 64, E = 64, H = 0](" + HEADS +
     "O : T[B, H, N, E] { O = softmax(Q +.* transpose(K)) +.* V }", 1),
]
NOTHING = "  // Every output of this kernel is empty, so that no block starts.\n}\n"


DRIVER = """static int launched;
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaLaunchKernelExC(const void *config, const void *kernel, void **arguments) { return launched = 1; }
"""


def call(path):
    """In a process of its own, beside DRIVER."""
    library = C.CDLL(path)
    arguments = [host.tensor([3, 0], code=2, bits=32, data=data) for data in (None, 0x10000)]
    print(library.k(*map(C.byref, arguments), None, C.c_size_t(0), None))


class Empty(unittest.TestCase):

    def make(self, directory, name, text, *words):
        base = os.path.join(directory, name)
        with open(base + ".moa", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        made = mt.tool("moa-codegen", base + ".moa", "--target=cuda", "-o", base + ".cu")
        self.assertEqual(made.returncode, 0, made.stderr)
        built = subprocess.run(["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror",
                                "all-warnings", *words, base + ".cu"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual((built.returncode, built.stdout), (0, ""))
        with open(base + ".cu", encoding="utf-8") as file:
            return file.read()

    def test_nvcc_takes_them(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for name, text, empty in CASES:
                with self.subTest(case=name):
                    code = self.make(directory, name, text, "-cubin", "-o",
                                     os.path.join(directory, name + ".cubin"))
                    self.assertEqual(code.count(NOTHING), empty)

    def test_a_call_launches_nothing(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, "scaled")
            self.make(directory, *CASES[0][:2], "-cudart", "shared", "-Xcompiler", "-fPIC",
                      "-shared", "-o", base + ".so")
            with open(base + ".c", "w", encoding="utf-8") as file:
                file.write(DRIVER)
            subprocess.run(["cc", "-shared", "-fPIC", base + ".c", "-o", base + "-device.so"],
                           check=True, timeout=60)
            done = subprocess.run([sys.executable, __file__, "--call", base + ".so"],
                                  env=os.environ | {"LD_PRELOAD": base + "-device.so"},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, "0\n"))

    def test_the_program_runs(self):
        """On this CPU: what is not empty is right."""
        sizes = {"B": 1, "H": 2, "N": 3, "M": 5}
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for name, text, _ in CASES:
                path = os.path.join(directory, name + ".moa")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
                symbols = text.split("[", 1)[1].split("]", 1)[0].split(";")[0].split(",")
                words = [f"{s.strip()}={sizes[s.strip()]}" for s in symbols]
                for target in ("cpu", "device"):
                    with self.subTest(case=name, target=target):
                        done = mt.tool("moa-run", path, "--random", 1, *words, "--check=all",
                                       f"--target={target}")
                        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--call"]:
        call(sys.argv[2])
    else:
        unittest.main(verbosity=2)
