"""Times attention whose result allows an error (precision.moa) beside the same as it is written:

    moa-codegen benchmarks/gpu/precision.moa --target=cuda --spend -o DIRECTORY/precision.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/precision.cu -o DIRECTORY/precision.so -lcuda
    python3 benchmarks/gpu/precision.py DIRECTORY/precision.so [--families normal,peaked]

on families of benchmarks/accuracy. Analysis and rounding are part of the times. Printed are medians of interleaved launches, the speed of the
exact kernel being 1, of how many heads results differ from its (those that took fewer bits), and the largest
relative L2 error of a head, on 128 rows against float64. What each launch adds is printed by launches.py.
"""
import argparse
import ctypes
import os
import statistics
import sys

import torch

from eight_bits import SHAPES, attention
from timing import Kernel, measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "accuracy"))
import families  # noqa: E402

KERNELS = ("exact", "within_3", "within_6")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object")
    parser.add_argument("--families", default="normal,coherent_values,peaked,diffuse,outlier_channels,large_scores,sinks")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many of the usual ones")
    parser.add_argument("--shape", action="append", help="B,H,N,D in place of these; may be given again")
    parser.add_argument("--only", default=",".join(KERNELS), help="kernels, exact among them")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split(","))) for shape in options.shape or ()] or SHAPES[:options.shapes]
    kernels = options.only.split(",")
    for b, h, n, d in shapes:
        for family in options.families.split(","):
            # The heads of one entry, which the others repeat in another order.
            arrays = families.Heads(family, 1, min(h, 4), n, d=d).arrays()
            q, k, v = (torch.from_numpy(x).cuda().repeat(b, h // x.shape[1], 1, 1).bfloat16().contiguous() for x in arrays)
            scale = d ** -0.5
            outputs = {name: torch.empty_like(v) for name in kernels}
            variants = {name: Kernel(options.object, name, [q, k, v, ctypes.c_float(scale)], outputs[name])
                        for name in kernels}
            times = measure(variants, options.rounds, 0.02)
            rows = torch.arange(0, n, n // 128, device="cuda")
            meant = attention(q, k, v, rows, scale)
            for name in kernels:
                ratio = statistics.median(x / y for x, y in zip(times["exact"], times[name]))
                found = outputs[name].flatten(0, 1)
                errors = (found[:, rows].double() - meant).norm(dim=(1, 2)) / meant.norm(dim=(1, 2))
                other = int((found != outputs["exact"].flatten(0, 1)).flatten(1).any(1).sum())
                print(f"({b}, {h}, {n}, {d}) {family:16s} {name:12s} {statistics.median(times[name]):.3f} ms, "
                      f"{ratio:.3f} x, {other} of {b * h} heads in fewer bits, error {float(errors.max()):.2e}", flush=True)


if __name__ == "__main__":
    main()
