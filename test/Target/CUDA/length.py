# RUN: %python %s
"""The text stays short enough to be read.

No line of any example passes 120 columns; that of grouped-query attention, which
has everything a kernel on the tensor cores has, is bounded in lines as well, with
one version and with the one for few rows. The parts that no kernel needs are not there.
"""
import glob
import os
import re
import tempfile
import unittest

import moa_testing as mt

COLUMNS = 120
# By settings: wider contractions have longer lists of operands, and settings a line.
LINES = {(): 650, ("D=64",): 655, ("D=256",): 657}
VERSIONS = 1200


def names():
    folder = os.path.dirname(mt.example("sdpa"))
    return sorted(os.path.basename(f)[:-4] for f in glob.glob(os.path.join(folder, "*.moa")))


LONG_NAMES = """
kernel attention_of_long_names[Batches, Outer_heads, Heads, Query_rows, Key_rows; T : float = bf16, D = 64](
    queries_of_the_decoder : T[Batches, Outer_heads, Heads, Query_rows, D],
    keys_of_the_encoder_side : T[Batches, Outer_heads, Heads, Key_rows, D],
    values_of_the_encoder_side : T[Batches, Outer_heads, Heads, Key_rows, D], scale : f32)
    -> (weighted_values_of_the_decoder : T[Batches, Outer_heads, Heads, Query_rows, D])
{
  scores = (queries_of_the_decoder +.* transpose(keys_of_the_encoder_side)) * scale
  weighted_values_of_the_decoder = softmax(scores) +.* values_of_the_encoder_side
}
"""


class Length(unittest.TestCase):

    def text(self, name, *settings, disabled=()):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            path = os.path.join(directory, name + ".cu")
            sets = [word for setting in settings for word in ("--set", setting)]
            made = mt.tool("moa-codegen", mt.example(name), *sets, "--target=cuda", "-o", path,
                           *(f"--disable-rule={rule}" for rule in disabled))
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(path, encoding="utf-8") as file:
                return file.read()

    def test_columns(self):
        self.assertGreaterEqual(len(names()), 11)
        for name in names():
            for kind in ("f32", "bf16"):
                with self.subTest(example=name, type=kind):
                    lines = self.text(name, f"T={kind}").split("\n")
                    self.assertGreater(len(lines), 100)
                    long = [line for line in lines if len(line) > COLUMNS]
                    self.assertEqual(long, [])
                    self.assertEqual([line for line in lines if line != line.rstrip()], [])

    def test_long_names(self):
        """Tiles of arrays of five axes, with long names, in the lines that hold most of them."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            path = os.path.join(directory, "long.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write(LONG_NAMES)
            made = mt.tool("moa-codegen", path, "--target=cuda", "-o", path + ".cu")
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(path + ".cu", encoding="utf-8") as file:
                text = file.read()
        for call in ("copy_tile_5d<", "store_tile_5d<", "check_extents(m, ", "describe_tiles(m, "):
            self.assertIn(call, text)
        self.assertEqual([line for line in text.split("\n") if len(line) > COLUMNS], [])

    def test_lines(self):
        for settings, lines in LINES.items():
            with self.subTest(settings=settings):
                text = self.text("gqa_causal", *settings, disabled=["R4"])
                self.assertLessEqual(len(text.split("\n")), lines)
        self.assertLessEqual(len(self.text("gqa_causal").split("\n")), VERSIONS)

    def test_nothing_unused(self):
        """Every function of the device is called, every function of the host too."""
        for name in names():
            for kind in ("f32", "bf16"):
                with self.subTest(example=name, type=kind):
                    text = self.text(name, f"T={kind}")
                    defined = re.findall(r"^(?:template <.*> ?|constexpr )*\n?(?:DEVICE|static|bool) "
                                         r"\w+ (\w+)\(", text, re.MULTILINE)
                    self.assertTrue(defined)
                    for function in defined:
                        self.assertGreater(len(re.findall(rf"\b{function}\b", text)), 1, function)


if __name__ == "__main__":
    unittest.main(verbosity=2)
