# REQUIRES: torch
# RUN: %torch_python %s
"""Runs the blocks of Python of docs/PyTorch.md, in order, in one module."""
import os
import pathlib
import sys

import moa
import torch

import moa.torch
from moa.torch import _kernels

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Support"))
import pages  # noqa: E402

try:
    moa.compile
except (ImportError, AttributeError):  # where only the tools are built
    moa.compile = _kernels.compile_kernel
page = pathlib.Path(os.environ["MOA_SOURCE_ROOT"], "docs", "PyTorch.md")
torch.manual_seed(0)
names, _, executed = pages.run(page, optional=("transformers",))
assert executed >= 5, executed
expected = torch.nn.functional.scaled_dot_product_attention(*(names[x] for x in "qkv"), scale=0.125)
torch.testing.assert_close(names["attend"](*(names[x] for x in "qkv"), 0.125), expected)
gradient, = torch.autograd.grad(expected.sum(), names["q"])
torch.testing.assert_close(names["q"].grad, gradient, rtol=1e-4, atol=1e-5)
print(f"{executed} blocks")
