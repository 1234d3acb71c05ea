# RUN: %python %s
"""Texts of the levels with one word missing, exchanged or too many: moa-opt takes them, or
says where they are wrong, and does not crash."""
import os
import random
import re
import subprocess
import unittest

import moa_testing as mt

SPEC = """kernel k[N, M; D = 8](q : bf16[N, D], x : bf16[M, D], w : f32[M]) -> (y : f32[N], p : f32[N, M]) {
  S = mask([i, j] j <= i, q +.* transpose(x))
  y = +/ (softmax(S) *@(1,1) w)
  p = softmax(S)
}
"""
LEVELS = ["moa", "dnf", "onf", "device"]
TEXTS = 40
WORD = re.compile(r'[\w.%@#!^]+|"[^"]*"|\S')
PLACE = re.compile(r"^broken\.mlir:\d+:\d+: error: ", re.M)


def spoil(text, chance):
    """`text` with a word left out, replaced by another one of it, or one more."""
    words = list(WORD.finditer(text))
    word, other = chance.choice(words), chance.choice(words).group(0)
    middle = chance.choice(["", other, other + " " + word.group(0)])
    return text[:word.start()] + middle + text[word.end():]


class BrokenLevels(mt.DirectoryTest):

    def tool(self, *command):
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, timeout=60,
                              check=False)

    def level(self, level):
        self.write("spec.moa", SPEC)
        target = ["--target=cuda"] if level == "device" else []
        return self.tool("moa-codegen", "spec.moa", "--emit=" + level, *target).stdout

    def test_messages(self):
        refused = 0
        for level in LEVELS:
            text, chance = self.level(level), random.Random(level)
            for number in range(TEXTS):
                broken = spoil(text, chance)
                self.write("broken.mlir", broken)
                done = self.tool("moa-opt", "broken.mlir", "-o", os.devnull)
                refused += done.returncode
                with self.subTest(level=level, number=number):
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertEqual(bool(PLACE.search(done.stderr)), bool(done.returncode), done.stderr)
        self.assertGreater(refused, TEXTS * len(LEVELS) // 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
