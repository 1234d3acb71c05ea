# RUN: %python %s
"""What docs/Determinism.md says of emitted code: no atomic operation on floats, no fast-math flag.

The files that the page names are there.
"""
import glob
import os
import re
import tempfile
import unittest

import moa_testing as mt

PAGE = os.path.join(mt.SOURCE_ROOT, "docs", "Determinism.md")
EXAMPLES = sorted(glob.glob(os.path.join(mt.SOURCE_ROOT, "examples", "*.moa")))
SPEND = ("--within", "O=6e-2,relative,sampled", "--spend=256", "--low-rank=512")
# CUDA's functions and PTX's instructions that change memory in one step.
ATOMIC = re.compile(r"\batomic\w+|\b(?:atom|red|cp\.reduce)\.[\w.:]+")
ALLOWED = re.compile(r"atomicOr|(?:atom|red)\.\S*\.(?:add|or)\.(?:s32|u32|b32|u64)")
# LLVM's flags: what may be fused, reordered or left out.
FAST = re.compile(r"\b(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b")


class Determinism(unittest.TestCase):

    def emit(self, directory, *arguments):
        path = os.path.join(directory, "out")
        made = mt.tool("moa-codegen", *arguments, "-o", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def check_atomics(self, text, what):
        found = {match[0] for match in ATOMIC.finditer(text)}
        self.assertFalse({one for one in found if not ALLOWED.fullmatch(one)}, what)
        return found

    def test_atomics(self):
        with tempfile.TemporaryDirectory() as directory:
            for example in EXAMPLES:
                for target in ("cuda", "ptx"):
                    with self.subTest(example=example, target=target):
                        self.check_atomics(self.emit(directory, example, "--target=" + target), example)

    def test_atomics_of_plans(self):
        """Here some are found, so that the search itself is tried."""
        with tempfile.TemporaryDirectory() as directory:
            for target in ("cuda", "ptx"):
                text = self.emit(directory, mt.example("sdpa"), *SPEND, "--target=" + target)
                self.assertTrue(self.check_atomics(text, target), target)

    def test_search(self):
        for text in ("atomicAdd(&x, 1.0f);", "red.global.add.f32 [%0], %1;", "cp.reduce.async.bulk.global.shared",
                     "atom.relaxed.gpu.global.add.f64 %0, [%1], %2;"):
            with self.assertRaises(AssertionError):
                self.check_atomics(text, text)

    def test_flags(self):
        with tempfile.TemporaryDirectory() as directory:
            for example in EXAMPLES:
                with self.subTest(example=example):
                    text = self.emit(directory, example, "--target=cpu", "--set", "T=f32", "--emit=llvm")
                    operations = [line for line in text.splitlines()
                                  if re.search(r"= f(?:add|sub|mul|div|neg|cmp)\b|call .*@llvm\.fma", line)]
                    self.assertTrue(operations)
                    self.assertFalse([line for line in operations if FAST.search(line)])

    def test_files(self):
        with open(PAGE, encoding="utf-8") as file:
            names = set(re.findall(r"\btest/[\w/]+(?:\.\w+)?", file.read()))
        self.assertGreater(len(names), 12)
        for name in names:
            self.assertTrue(os.path.exists(os.path.join(mt.SOURCE_ROOT, name)), name)


if __name__ == "__main__":
    mt.main()
