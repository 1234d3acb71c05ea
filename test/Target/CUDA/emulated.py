# REQUIRES: x86_64
# RUN: %python %s
"""The CUDA C++ of programs of fragments, run by 128 threads of this CPU.

The kernel, the tables and index expressions of its products, reads and conversions are
those of the emitted file; only helpers that are assembly are replaced (Inputs/emulated.h).
The results are compared with NumPy and with the interpreter of the device level.
"""
import ctypes
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import device

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(mt.SOURCE_ROOT, "test", "Interpreter", "Device", "Inputs")


def without_assembly(text):
    """The definitions at the left margin, without macros and those that are assembly."""
    kept, piece = [], []
    for line in text.split("\n"):
        piece.append(line)
        if piece[0].startswith("#"):
            if not line.endswith("\\"):
                piece = []
        elif line == "}" or (line[:1] not in " /" and line.endswith(("}", ";"))):
            whole = "\n".join(piece)
            # What opens the memory of the block names the one of emulated.h.
            if "asm volatile" not in whole:
                kept.append(whole.replace("extern __shared__ __align__(1024) unsigned char shared_bytes[];", ""))
            piece = []
        elif line == "" or line.startswith("//"):
            piece = []
    return "\n".join(kept)


class Emulated(unittest.TestCase):

    def run_text(self, name, inputs, outputs, arguments):
        """Runs the kernel on arrays; `arguments` is the text of its call."""
        program = os.path.join(FOLDER, name + ".mlir")
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, name)
            made = mt.tool("moa-codegen", program, "--target=cuda", "-o", base + ".cu")
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            with open(base + ".cu", encoding="utf-8") as file:
                text = file.read()
            text = text[text.index("#define DEVICE"):text.index("//===- Checks")]
            parameters = ", ".join(f"void *{n}" for n in [*inputs, *outputs])
            with open(base + ".cpp", "w", encoding="utf-8") as file:
                file.write('#include "emulated.h"\n' + without_assembly(text) +
                           f'\nextern "C" void run({parameters}) {{\n'
                           f"  run_block([=] {{ {name}_0({arguments}); }});\n}}\n")
            done = subprocess.run([os.environ["CXX"], "-std=c++17", "-O1", "-fPIC", "-shared", "-w",
                                   "-pthread", "-I" + os.path.join(HERE, "Inputs"), base + ".cpp",
                                   "-o", base + ".so"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            library = ctypes.CDLL(base + ".so")
            library.run(*(ctypes.c_void_p(a.ctypes.data) for a in [*inputs.values(), *outputs.values()]))

    def interpret(self, name, values, shapes):
        return device.Kernel(os.path.join(FOLDER, name + ".mlir")).run(values, shapes)

    def test_conversions(self):
        x = np.random.default_rng(5).normal(size=(64, 16)).astype(np.float32)
        y, z = np.full((64, 16), np.nan, np.float32), np.full((16, 16), np.nan, np.float32)
        self.run_text("conversions", {"x": x}, {"y": y, "z": z},
                      "(const float *)x, (float *)y, (float *)z, 16, 1, 16, 1, 16, 1")
        expected = self.interpret("conversions", {"x": x}, {"y": y.shape, "z": z.shape})
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, expected["z"])

    def test_half_product(self):
        random = np.random.default_rng(6)
        x, w = (random.integers(-8, 9, s).astype(np.float16) for s in ((32, 24), (24, 48)))
        y = np.full((32, 48), np.nan, np.float32)
        self.run_text("half_product", {"x": x, "w": w}, {"y": y},
                      "(const __half *)x, (const __half *)w, (float *)y, 48, 1, 24, 1, 48, 1")
        np.testing.assert_array_equal(y, x.astype(float) @ w.astype(float))

    def test_double_product(self):
        random = np.random.default_rng(7)
        x, w = random.normal(size=(32, 8)), random.normal(size=(8, 16))
        y = np.full((32, 16), np.nan)
        self.run_text("double_product", {"x": x, "w": w}, {"y": y},
                      "(const double *)x, (const double *)w, (double *)y, 16, 1, 8, 1, 16, 1")
        expected = self.interpret("double_product", {"x": x, "w": w}, {"y": y.shape})
        np.testing.assert_array_equal(y, expected["y"])

    def test_tile_product(self):
        random = np.random.default_rng(8)
        values = {n: random.integers(-2, 3, (r, 64)).astype(float)
                  for n, r in (("q", 64), ("k", 128), ("v", 64))}
        values["k"][:, 8:] = 0
        s, t = np.full((64, 64), np.nan, np.float32), np.full((64, 128), np.nan, np.float32)
        maps = ", ".join(f"CUtensorMap{{(const uint16_t *){n}, {r}, 64}}"
                         for n, r in (("k", 128), ("q", 64), ("v", 64)))
        bits = {n: mt.to_bf16(v) for n, v in values.items()}
        self.run_text("tile_product", bits, {"s": s, "t": t}, self.call(maps))
        scores = values["q"] @ values["k"].T
        np.testing.assert_array_equal(t, scores)
        np.testing.assert_array_equal(s, scores[:, 64:] @ values["v"] + scores[:, 64:])

    def call(self, maps):
        k, q, v = re.findall(r"CUtensorMap\{[^}]*\}", maps)
        return f"(float *)s, (float *)t, {q}, {k}, {v}, 64, 1, 128, 1"


if __name__ == "__main__":
    unittest.main(verbosity=2)
