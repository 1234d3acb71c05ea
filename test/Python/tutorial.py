# REQUIRES: moa-python
# RUN: %moa_python %s
"""The blocks of docs/Tutorial.md run in order, print what the page says, and agree with NumPy."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
import pages  # noqa: E402
from helpers import SOURCE, Case, np, softmax  # noqa: E402

PAGE = SOURCE / "docs" / "Tutorial.md"


class Tutorial(Case):

    def test_page(self):
        names, attempted, executed = pages.run(PAGE, optional=("ml_dtypes",))
        self.assertGreaterEqual(attempted, 6)
        self.assertGreaterEqual(executed, 6)
        self.check_function(names["fading_numpy"])
        self.check_kernel(names["kernel"])
        self.assertIn("__global__ void", names["cuda"])

    def reference(self, q, k, v, decay, scale, window, sinks):
        """The formula, written once more without the page: row by row, over the keys that a row sees."""
        result = np.zeros(q.shape)
        for b, h, i in np.ndindex(q.shape[:3]):
            seen = [j for j in range(i + 1) if i - j < window or j < sinks]
            scores = 30 * np.tanh(k[b, h, seen] @ q[b, h, i] * scale / 30)
            weights = softmax(scores - decay[h] * np.log([1 + i - j for j in seen]))
            result[b, h, i] = weights @ v[b, h, seen]
        return result

    def inputs(self):
        return np.random.default_rng(1).standard_normal((3, 2, 3, 70, 64)), np.array([0, 0.7, 2.5])

    def check_function(self, function):
        (q, k, v), decay = self.inputs()
        for rest in ((4.0, 9, 2), (0.125, 70, 0), (0.125, 1, 70)):
            self.assertClose(function(q, k, v, decay, *rest), self.reference(q, k, v, decay, *rest), 1e-13)

    def check_kernel(self, kernel):
        arrays, decay = self.inputs()
        arrays = [array.astype(np.float32) for array in (*arrays, decay)]
        for rest in ((4.0, 9, 2), (0.125, 70, 0), (0.125, 1, 70)):
            wanted = self.reference(*(array.astype(np.float64) for array in arrays), *rest)
            self.assertClose(kernel(*arrays, *rest), wanted)

        self.assertLess(self.workspace(kernel, 1024), 2**20 * os.cpu_count())
        self.assertLessEqual(self.workspace(kernel, 65536), self.workspace(kernel, 1024))

    def workspace(self, kernel, n):
        array = np.broadcast_to(np.zeros(1, np.float32), (1, 8, n, 64))
        return kernel.workspace_bytes(array, array, array, np.zeros(8, np.float32), 0.125, 256, 4)

    def test_length(self):
        self.assertLessEqual(len(PAGE.read_text(encoding="utf-8").splitlines()), 250)

    def test_every_block_counts(self):
        """No fence has a name that the runner passes over."""
        fences = re.findall(r"^```(.*)$", PAGE.read_text(encoding="utf-8"), re.M)[::2]
        self.assertEqual(set(fences), {"python", "text"})
        self.assertEqual(fences.count("python"), len(pages.blocks(PAGE)))
        self.assertEqual(fences.count("text"), sum(bool(text) for _, text in pages.blocks(PAGE)))


class Runner(unittest.TestCase):
    """The runner of pages finds what is wrong."""

    def run_page(self, text, **named):
        with tempfile.TemporaryDirectory() as directory:
            page = pathlib.Path(directory, "page.md")
            page.write_text(text, encoding="utf-8")
            return pages.run(page, **named)

    def test_shares_names(self):
        names, attempted, executed = self.run_page("```python\nx = 2\n```\n\n```python\n>>> y = x + 1\n>>> y\n3\n\n```\n"
                                                   "```python\nz = y\nprint('at', 0.5)\n```\n\n```text\nat 17\n```\n")
        self.assertEqual((names["z"], attempted, executed), (3, 2, 2))

    def test_wrong(self):
        for text in ("```python\n>>> 1 + 1\n3\n\n```\n", "```python\nprint('a 1')\n```\nso\n\n```python\nassert False\n```\n",
                     "```python\nprint('a 1')\n```\n\n```text\nb 1\n```\n"):
            with self.assertRaises(AssertionError):
                self.run_page(text)
        with self.assertRaises(SyntaxError):
            self.run_page("```python\nx = = 1\n```\n", executes=False)

    def test_left_out(self):
        text = "```python\nimport nosuchmodule\n```\n"
        self.assertEqual(self.run_page(text, optional=("nosuchmodule",))[2], 0)
        self.assertEqual(self.run_page(text, executes=False)[2], 0)
        with self.assertRaises(ImportError):
            self.run_page(text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
