# REQUIRES: torch
# RUN: %torch_python %s
"""Runs the blocks of Python of docs/PyTorch.md, in order, in one module."""
import importlib.util
import os
import pathlib
import re

import moa
import torch

import moa.torch
from moa.torch import _kernels

try:
    moa.compile
except (ImportError, AttributeError):  # where only the tools are built
    moa.compile = _kernels.compile_kernel
text = pathlib.Path(os.environ["MOA_SOURCE_ROOT"], "docs", "PyTorch.md").read_text(encoding="utf-8")
blocks = re.findall(r"```python\n(.*?)```", text, re.S)
assert len(blocks) >= 5, len(blocks)
torch.manual_seed(0)
names = {}
for block in blocks:
    if "transformers" in block and not importlib.util.find_spec("transformers"):
        continue
    exec(compile(block, "docs/PyTorch.md", "exec"), names)
expected = torch.nn.functional.scaled_dot_product_attention(*(names[x] for x in "qkv"), scale=0.125)
torch.testing.assert_close(names["attend"](*(names[x] for x in "qkv"), 0.125), expected)
gradient, = torch.autograd.grad(expected.sum(), names["q"])
torch.testing.assert_close(names["q"].grad, gradient, rtol=1e-4, atol=1e-5)
print(f"{len(blocks)} blocks")
