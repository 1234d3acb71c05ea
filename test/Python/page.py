# REQUIRES: moa-python
# RUN: %moa_python %s
"""The examples of docs/Python.md and README: those with prompts print what the page says, and the others are Python."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
import pages  # noqa: E402
from helpers import SOURCE  # noqa: E402

import moa  # noqa: E402

PAGE = SOURCE / "docs" / "Python.md"


class Page(unittest.TestCase):

    def check(self, page, blocks_wanted, examples_wanted):
        os.chdir(SOURCE)
        self.assertGreaterEqual(sum(pages.is_doctest(code) for code, _ in pages.blocks(page)), blocks_wanted)
        _, attempted, _ = pages.run(page, executes=False)
        self.assertGreaterEqual(attempted, examples_wanted)

    def test_page(self):
        self.check(PAGE, 4, 11)

    def test_readme(self):
        self.check(SOURCE / "README.md", 1, 5)

    def test_names(self):
        text = PAGE.read_text(encoding="utf-8")
        names = [name for name in moa.__all__ if f"`moa.{name}" not in text]
        names += [name for name in dir(moa.Kernel) if not name.startswith("_") and f"`{name}" not in text]
        names += [name for name in moa.Options.__dataclass_fields__ if f"`{name}`" not in text]
        self.assertEqual(names, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
