# REQUIRES: moa-python
# RUN: %moa_python %s
"""The examples of docs/Python.md: those with prompts print what the page says, and the others are Python."""
import doctest
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import SOURCE  # noqa: E402

import moa  # noqa: E402

PAGE = SOURCE / "docs" / "Python.md"


class Page(unittest.TestCase):

    def test_examples(self):
        os.chdir(SOURCE)
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        prompted = [block for block in blocks if block.startswith(">>>")]
        self.assertGreaterEqual(len(prompted), 4)
        for number, block in enumerate(blocks):
            if block not in prompted:
                compile(block, f"example {number}", "exec")
        example = doctest.DocTestParser().get_doctest("".join(prompted), {}, PAGE.name, str(PAGE), 0)
        said = []
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
        self.assertGreater(result.attempted, 10)
        self.assertEqual(result.failed, 0, "".join(said))

    def test_names(self):
        text = PAGE.read_text(encoding="utf-8")
        names = [name for name in moa.__all__ if f"`moa.{name}" not in text]
        names += [name for name in dir(moa.Kernel) if not name.startswith("_") and f"`{name}" not in text]
        names += [name for name in moa.Options.__dataclass_fields__ if f"`{name}`" not in text]
        self.assertEqual(names, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
