# REQUIRES: nvcc
# RUN: %python %s
"""Elementary functions in PTX run the operations that nvcc makes of them.

Compared is how often each float operation stands in the PTX of both targets, by
name; a difference counts as a sum with one sign turned.
"""
import collections
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt

OPERATIONS = re.compile(r"(fma|add|sub|mul|div|ex2|lg2|rcp|rsqrt|sqrt|max|min|sin|cos|tanh)\.\S*f(32|64)")
BINARY = ["pow", "fmod", "atan2", "floor_divide"]
UNARY = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf",
         "round", "log1p", "expm1", "asin", "acos", "atan", "sinh", "cosh"]
# What the two compilers write differently, with equal values: (nvcc more, ours more).
SAME_VALUES = {
    # fma(x, -1, 0) = 0 - x, for zeros too.
    ("sin", "f32"): ({"fma.f32": 1}, {"add.f32": 1}),
    ("cos", "f32"): ({"fma.f32": 1}, {"add.f32": 1}),
    ("sin", "f64"): ({"fma.f64": 1}, {"add.f64": 1}),
    ("cos", "f64"): ({"fma.f64": 1}, {"add.f64": 1}),
    # x + 0 of a sum, and a fused operation that nvcc repeats.
    ("pow", "f64"): ({"add.f64": 1, "fma.f64": 1}, {}),
    # fma(x, y, -0) = x * y.
    ("fmod", "f32"): ({"fma.f32": 1}, {"mul.f32": 1}),
    ("floor_divide", "f32"): ({"fma.f32": 1}, {"mul.f32": 1}),
    # A maximum is a comparison and a selection.
    ("atan", "f64"): ({"max.f64": 1}, {}),
}


def operations(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = re.sub(r"^\s*(@!?%\w+\s+)?", "", line)
            found = OPERATIONS.match(line)
            if found:
                name = found[0].replace(".rn", "")
                counts["add" + name[3:] if name.startswith("sub") else name] += 1
    return counts


class Functions(unittest.TestCase):

    def counts(self, directory, function, kind):
        binary = function in BINARY
        inputs = "x : T[N], y : T[N]" if binary else "x : T[N]"
        call = f"{function}(x[i], y[i])" if binary else f"{function}(x[i])"
        base = os.path.join(directory, f"{function}-{kind}")
        with open(base + ".moa", "w", encoding="utf-8") as file:
            file.write(f"kernel f[N; T : float = f32]({inputs}) -> (o : T[N])\n"
                       f"{{\n  o = [i < N] {call}\n}}\n")
        for target, path in (("cuda", base + ".cu"), ("ptx", base + ".ptx")):
            made = mt.tool("moa-codegen", base + ".moa", "--set", f"T={kind}",
                           f"--target={target}", "-o", path)
            self.assertEqual((made.returncode, made.stderr), (0, ""))
        done = subprocess.run(["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-ptx",
                               base + ".cu", "-o", base + ".nvcc.ptx"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return operations(base + ".nvcc.ptx"), operations(base + ".ptx")

    def test_operations(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for kind in ("f32", "f64"):
                for function in UNARY + BINARY:
                    with self.subTest(function=function, kind=kind):
                        theirs, ours = self.counts(directory, function, kind)
                        self.assertTrue(theirs)
                        more, other = SAME_VALUES.get((function, kind), ({}, {}))
                        self.assertEqual((dict(theirs - ours), dict(ours - theirs)), (more, other))


if __name__ == "__main__":
    unittest.main(verbosity=2)
