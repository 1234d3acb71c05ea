# RUN: %python %s
"""Other names and another order of definitions give the same lowered code."""
import os
import re
import tempfile
import unittest

import moa_testing as mt

HEADER = """kernel gqa[B, H, G, N, M; T : float = f32, D = 64](
    Q : T[B, H, N, D],  K : T[B, G, M, D],  V : T[B, G, M, D],  scale : f32)
    -> (O : T[B, H, N, D], lse : f32[B, H, N])
  require H % G == 0
"""

ORIGINAL = HEADER + """{
  Kh  = [b < B, h < H] K[b, h / (H/G)]
  Vh  = [b < B, h < H] V[b, h / (H/G)]
  S   = (Q +.* transpose(Kh)) * scale
  S   = mask([_, _, i, j] j <= i + (M - N), S)
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""

# The same with every local name changed, the index variables too.
RENAMED = HEADER + """{
  zulu  = [x < B, y < H] K[x, y / (H/G)]
  alpha = [p < B, q < H] V[p, q / (H/G)]
  mike  = (Q +.* transpose(zulu)) * scale
  late  = mask([_, _, row, col] col <= row + (M - N), mike)
  O     = softmax(late) +.* alpha
  lse   = logsumexp(late)
}
"""

# The same with the definitions in another order and softmax written out.
REORDERED = HEADER + """{
  Vh  = [b < B, h < H] V[b, h / (H/G)]
  Kh  = [b < B, h < H] K[b, h / (H/G)]
  R   = (Q +.* transpose(Kh)) * scale
  S   = mask([_, _, i, j] j <= i + (M - N), R)
  lse = logsumexp(S)
  O   = weights(S) +.* Vh
}

def weights(s : [n]) {
  top = max/ s
  shifted = s - top
  numerator = exp(shifted)
  total = +/ numerator
  return numerator / total
}
"""

DIFFERENT = ORIGINAL.replace("j <= i", "j < i")


def without_names(text):
    """Names in quotes and SSA names numbered by first occurrence, no locations.

    The label of a state says nothing to the compiler, and two states may have the
    same one: labels are left out.
    """
    seen = {}
    text = re.sub(r'(onf\.acc\s+\w+) "\w[\w.]*"', r"\1", text)
    text = re.sub(r"loc\(.*?\)|#loc.*", "", text)
    text = re.sub(r"^(; ModuleID|source_filename).*$", "", text, flags=re.M)

    def number(match):
        return seen.setdefault(match.group(0), f"<{len(seen)}>")
    return re.sub(r'"[A-Za-z_][\w.]*"|%[\w.]+', number, text)


class Renaming(unittest.TestCase):

    def emit(self, text, level):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "spec.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = mt.tool("moa-codegen", path, f"--emit={level}")
            self.assertEqual(done.returncode, 0, done.stderr)
            return without_names(done.stdout)

    def test_every_level(self):
        for level in ("onf", "lifted", "llvm"):
            expected = self.emit(ORIGINAL, level)
            self.assertEqual(expected, self.emit(RENAMED, level), level)
            self.assertEqual(expected, self.emit(REORDERED, level), level)

    def test_the_comparison_sees_a_difference(self):
        self.assertNotEqual(self.emit(ORIGINAL, "lifted"),
                            self.emit(DIFFERENT, "lifted"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
