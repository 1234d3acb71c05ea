"""near.py A B LIMIT: whether the relative L2 distance of two arrays, of floats or of bf16, is at most LIMIT."""
import sys

import numpy as np


def load(path):
    x = np.load(path)
    if x.dtype.kind == "V":
        x = (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float64)


a, b = load(sys.argv[1]), load(sys.argv[2])
distance = np.linalg.norm(a - b) / np.linalg.norm(a)
if not distance <= float(sys.argv[3]):
    sys.exit(f"the arrays differ by {distance:.2e}, more than {sys.argv[3]}")
