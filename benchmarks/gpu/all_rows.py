"""Errors over all rows of heads whose values are fitted, against the dense kernel, of the libraries that low_rank.py times:

    python3 benchmarks/gpu/all_rows.py DIRECTORY [seeds]

With D = 64 values are fitted at that length where it was compiled with --low-rank=4096 only. Per D, family and seed: how many of 16 heads take few keys, and the relative L2 errors of these over all 32,768 rows, beside the largest on 128.
"""
import ctypes
import sys

import torch

import low_rank
from run import Kernel

DIRECTORY, SEEDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6


def result(way, arrays, d):
    output = torch.empty_like(arrays[2])
    Kernel(f"{DIRECTORY}/{way}.so", f"low_rank_{d}", [*arrays, ctypes.c_float(d ** -0.5)], output)()
    torch.cuda.synchronize()
    return output[0]


def errors(found, dense):
    return (found.float() - dense.float()).norm(dim=(1, 2)) / dense.float().norm(dim=(1, 2))


for d in (64, 128):
    for family in ("plane", "plane_noise"):
        for seed in range(SEEDS):
            torch.manual_seed(1000 + seed)
            arrays = low_rank.make(family, 1, 16, 32768, d)
            found, dense = (result(way, arrays, d) for way in ("classes", "dense"))
            taken = (found != dense).flatten(1).any(1)
            each = errors(found, dense)[taken]
            most, median = (float(each.max()), float(each.median())) if len(each) else (0.0, 0.0)
            print(f"D = {d} {family} seed {seed}: {int(taken.sum())} of 16 heads, largest error {most:.2e}, median {median:.2e}, "
                  f"{int((each > 1e-2).sum())} above 1e-2; on 128 rows {float(errors(found[:, ::256], dense[:, ::256]).max()):.2e}", flush=True)
