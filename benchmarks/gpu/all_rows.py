"""Errors over all rows of heads whose values are fitted, against the dense kernel, beside what their samples say:

    moa-codegen benchmarks/gpu/low_rank.moa --target=cuda --low-rank=4096 --decisions -o DIRECTORY/classes.cu
    moa-codegen benchmarks/gpu/low_rank.moa --target=cuda -o DIRECTORY/dense.cu
    for way in classes dense; do
      nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/$way.cu -o DIRECTORY/$way.so -lcuda
    done
    python3 benchmarks/gpu/all_rows.py DIRECTORY [seeds] [FILE] [rows]

Of each D and family, with 16 heads per seed: how many heads are tried and taken, how many of these have a relative L2 error above
1e-2 over all rows (32,768), and the largest. FILE gets a line per head that is tried: D, family, seed, head, plan, estimate, error. A compiler
whose kFittedShare is large takes every head, so that the file tells what any limit of the estimate would take.
"""
import ctypes
import sys

import torch

import low_rank
from timing import Kernel

DIRECTORY, SEEDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
FILE = open(sys.argv[3], "w", encoding="utf-8") if len(sys.argv) > 3 else None
ROWS = int(sys.argv[4]) if len(sys.argv) > 4 else 32768


def call(way, d, inputs, outputs):
    *others, last = outputs
    Kernel(f"{DIRECTORY}/{way}.so", f"low_rank_{d}", [*inputs, ctypes.c_float(d ** -0.5), *others], last)()


def main():
    for d in (64, 128):
        for family in ("plane", "plane_noise"):
            tried, taken = [], []
            for seed in range(SEEDS):
                torch.manual_seed(1000 + seed)
                inputs = low_rank.make(family, 1, 16, ROWS, d)
                found, dense = (torch.empty_like(inputs[2]) for _ in range(2))
                plans = torch.empty(1, 16, dtype=torch.int32, device="cuda")
                estimates = torch.empty(1, 16, 1, device="cuda")
                call("classes", d, inputs, [found, plans, estimates])
                call("dense", d, inputs, [dense])
                errors = (found[0].float() - dense[0].float()).norm(dim=(1, 2)) / dense[0].float().norm(dim=(1, 2))
                rows = zip(plans.flatten().tolist(), estimates.flatten().tolist(), errors.tolist())
                for head, (plan, estimate, error) in enumerate(rows):
                    if estimate == estimate:
                        tried.append(estimate)
                        if FILE:
                            print(d, family, seed, head, plan, estimate, error, file=FILE, flush=True)
                    if plan:
                        taken.append(error)
            print(f"D = {d} {family}: {len(tried)} of {16 * SEEDS} heads tried, {len(taken)} taken, of these "
                  f"{sum(e > 1e-2 for e in taken)} above 1e-2, largest {max(taken, default=0):.2e}", flush=True)


if __name__ == "__main__":
    main()
