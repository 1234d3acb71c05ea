"""Runs equal runs, a batch entry alone equals itself in a batch, and other layouts
give the same bits: determinism.py DIRECTORY, with the kernels of benchmarks/gpu.
Needs PyTorch; prints one line per property.
"""
import ctypes
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../benchmarks/gpu"))
from run import Kernel  # noqa: E402


def main(directory):
    torch.manual_seed(3)
    for form in ("sdpa", "causal"):
        for width in (64, 128, 256):
            q, k, v = (torch.randn(3, 4, 777, width, device="cuda", dtype=torch.bfloat16)
                       for _ in range(3))

            def run(*tensors):
                out = torch.full_like(tensors[0], float("nan"))
                inputs = [*tensors, ctypes.c_float(width ** -0.5)]
                Kernel(os.path.join(directory, f"{form}-{width}.so"), form, inputs, out)()
                return out

            first = run(q, k, v)
            for _ in range(99):
                assert torch.equal(first, run(q, k, v)), "runs differ"
            for b in range(3):
                alone = run(*(x[b:b + 1].contiguous() for x in (q, k, v)))
                assert torch.equal(first[b:b + 1], alone), "a batch entry depends on the others"
            moved = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
            assert torch.equal(first, run(*moved)), "the layout changes bits"
            try:
                run(*(torch.randn(1, 1, 64, 2 * width, device="cuda", dtype=torch.bfloat16)[..., ::2]
                      for _ in range(3)))
                raise AssertionError("a last axis that is not adjacent was not refused")
            except RuntimeError as refusal:
                assert "code 6" in str(refusal)
            print(f"{form} {width}: 100 runs, batch entries and layouts equal; strides refused")


if __name__ == "__main__":
    main(sys.argv[1])
