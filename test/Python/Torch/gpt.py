# REQUIRES: torch, moa-python
# RUN: %torch_python %s
"""Runs examples/pytorch/gpt.py with small sizes, and checks that it fails if an attention is wrong."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import unittest

import moa
import torch

import moa.torch
from processor import fewer_bits
import reference  # sets the optimisation of kernels in tests

path = pathlib.Path(os.environ["MOA_SOURCE_ROOT"], "examples", "pytorch", "gpt.py")
spec = importlib.util.spec_from_file_location("gpt", path)
gpt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpt)
SIZES = ["--layers", "1", "--tokens", "20", "--prompt", "260", "--steps", "30", "--width", "32", "--heads", "2"]


def run(arguments, more=()):
    """Returns the status of the example, its output and its errors."""
    compile_kernel, out, err = moa.compile, io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = gpt.main(arguments, more)
    finally:
        moa.compile = compile_kernel
    return status, out.getvalue(), err.getvalue()


class Example(unittest.TestCase):

    def test_all_forms(self):
        status, out, err = run(SIZES)
        self.assertEqual((status, err), (0, ""), out)
        for name in ("PyTorch's SDPA", "moa.torch SDPA", "flex_attention", "operator", "AdaptiveAttention"):
            self.assertRegex(out, rf"(?m)^{re.escape(name)} +\d+ ")
        self.assertRegex(out, rf"layer 0, prompt: <AttentionMetrics 2 heads: sums of products.*{fewer_bits()}")
        self.assertRegex(out, r"the call has a mask")

    def test_wrong_attention(self):
        lengths = []

        def forgets(q, k, v):  # leaves out the first key
            return gpt.pytorch(q, k[:, :, 1:], v[:, :, 1:]) if q.shape[2] == 1 else gpt.pytorch(q, k, v)

        def compiles(q, k, v):  # for each length
            if k.shape[2] not in lengths:
                lengths.append(k.shape[2])
                moa.compile("kernel k[N](x : f32[N]) -> y : f32[N] { y = x + %d }" % len(lengths))
            return gpt.pytorch(q, k, v)

        status, _, err = run(SIZES[:2] + ["--tokens", "6", "--prompt", "20", "--steps", "0"],
                             [("forgets", forgets, 1e-4), ("compiles", compiles, 1e-4)])
        self.assertEqual(status, 1)
        self.assertRegex(err, r"^forgets: (logits have|token \d+ differs).*\ncompiles: 4 kernels were compiled for new")
        self.assertEqual(err.count("\n"), 2)


if __name__ == "__main__":
    unittest.main()
