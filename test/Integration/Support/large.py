"""f16 errors, and an array of more than 2^31 elements: large.py DIRECTORY with
sdpa and causal in f16 (FORM-WIDTH.so) and sdpa in bf16 (bf16/sdpa-128.so).
Needs PyTorch; prints one line per property.
"""
import ctypes
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../benchmarks/gpu"))
from run import Kernel  # noqa: E402


def reference(q, k, v, scale, causal, rows):
    """Some query rows in float64."""
    s = (q[:, :, rows].double() @ k.double().transpose(-1, -2)) * scale
    if causal:
        i = torch.tensor(rows, device=q.device)[:, None]
        s.masked_fill_(torch.arange(k.shape[2], device=q.device)[None] > i, float("-inf"))
    return torch.softmax(s, -1) @ v.double()


def error(path, form, q, k, v, rows):
    out = torch.full_like(q, float("nan"))
    scale, causal = q.shape[-1] ** -0.5, form == "causal"
    Kernel(path, form, [q, k, v, ctypes.c_float(scale)], out)()
    torch.cuda.synchronize()
    want = reference(q, k, v, scale, causal, rows)
    assert not out.isnan().any() or q.numel() > 1 << 30
    return ((out[:, :, rows].double() - want).norm() / want.norm()).item()


def main(directory):
    torch.manual_seed(5)
    for form in ("sdpa", "causal"):
        for width in (64, 128, 256):
            q, k, v = (torch.randn(2, 3, 1000, width, device="cuda", dtype=torch.float16)
                       for _ in range(3))
            found = error(os.path.join(directory, f"{form}-{width}.so"), form, q, k, v,
                          list(range(0, 1000, 7)))
            print(f"f16 {form} {width}: relative L2 error {found:.2e}")
            assert found <= 4e-4
    n = (1 << 24) + 77
    q = torch.randn(1, 1, n, 128, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(1, 1, 200, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    found = error(os.path.join(directory, "bf16", "sdpa-128.so"), "sdpa", q, k, v, [0, 1, n // 2, n - 100, n - 2, n - 1])
    print(f"{q.numel()} elements: relative L2 error {found:.2e}")
    assert q.numel() > 1 << 31 and found <= 3e-3


if __name__ == "__main__":
    main(sys.argv[1])
