"""Times attention of f32 inputs whose result allows an error (halves.moa) beside the same as it is written:

    moa-codegen benchmarks/gpu/halves.moa --target=cuda --spend -o DIRECTORY/halves.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/halves.cu -o DIRECTORY/halves.so -lcuda
    python3 benchmarks/gpu/halves.py DIRECTORY/halves.so [--families normal,diffuse] [--rounds 5] [--kernels] [--norms]

on families of benchmarks/accuracy. Magnitudes, samples and rounding are part of the times. Printed are medians of interleaved launches, the
speed of the exact kernel being 1, of how many heads results differ from its (those that took fewer bits), the largest relative L2 error of
a head and the largest error of an element relative to |P|·|V|, both on 128 rows against float64. With --kernels, the time of each kernel of
a launch. Two further lines are PyTorch's attention of f32 inputs, and the same by matrix products in TF32, as its fused kernels take
none: scores are in memory then. With --norms, the same of rows and keys over their norms.
"""
import argparse
import ctypes
import os
import statistics
import sys

import torch

from torch.nn.attention import SDPBackend, sdpa_kernel

from eight_bits import SHAPES
from timing import Kernel, measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "accuracy"))
import families  # noqa: E402

KERNELS = ("exact", "sampled_1", "sampled_5", "bound_1", "bound_6")
NORMED = ("normed", "normed_1", "normed_6")
EPSILON = 1e-6
TORCH = ("torch", "torch_tf32")


def rms(x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=EPSILON)


def torch_attention(q, k, v, scale, output, takes_tf32, norms):
    """A launch of PyTorch's attention; what it gives stands in output afterwards."""
    def run():
        torch.backends.cuda.matmul.allow_tf32 = takes_tf32
        x, y = (rms(q), rms(k)) if norms else (q, k)
        with sdpa_kernel(SDPBackend.MATH if takes_tf32 else SDPBackend.EFFICIENT_ATTENTION):
            output.copy_(torch.nn.functional.scaled_dot_product_attention(x, y, v, scale=scale))
    return run


def attention(q, k, v, rows, scale, norms):
    """Some rows in float64 and what their errors are relative to, one head after the other."""
    results = []
    for x, y, z in zip(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)):
        x, y = x[rows].double(), y.double()
        if norms:
            x, y = (a * (a.square().mean(-1, keepdim=True) + EPSILON).rsqrt() for a in (x, y))
        weights = (x @ y.T * scale).softmax(-1)
        results.append(torch.stack((weights @ z.double(), weights @ z.double().abs())))
    return torch.stack(results, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object")
    parser.add_argument("--families", default="normal,diffuse,uniform,peaked,large_scores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", type=int, default=len(SHAPES))
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--only", help="kernels, instead of all; the first one is always there")
    parser.add_argument("--norms", action="store_true")
    options = parser.parse_args()
    known = NORMED if options.norms else KERNELS
    exact = known[0]
    names = tuple(name for name in known if not options.only or name in [exact, *options.only.split(",")])
    for b, h, n, d in SHAPES[:options.shapes]:
        for family in options.families.split(","):
            # The heads of one entry, which the others repeat in another order.
            arrays = families.Heads(family, 1, min(h, 4), n, d=d).arrays()
            q, k, v = (torch.from_numpy(x).cuda().repeat(b, h // x.shape[1], 1, 1).contiguous() for x in arrays)
            scale = d ** -0.5
            outputs = {name: torch.empty_like(v) for name in names + TORCH}
            variants = {name: Kernel(options.object, name, [q, k, v, ctypes.c_float(scale)], outputs[name])
                        for name in names}
            for name in TORCH:
                variants[name] = torch_attention(q, k, v, scale, outputs[name], name == "torch_tf32", options.norms)
            times = measure(variants, options.rounds, 0.02)
            rows = torch.arange(0, n, n // 128, device="cuda")
            meant, magnitude = attention(q, k, v, rows, scale, options.norms)
            for name in names + TORCH:
                ratio = statistics.median(x / y for x, y in zip(times[exact], times[name]))
                found = outputs[name].flatten(0, 1)
                off = found[:, rows].double() - meant
                errors = off.norm(dim=(1, 2)) / meant.norm(dim=(1, 2))
                largest = float((off.abs() / magnitude).max())
                other = int((found != outputs[exact].flatten(0, 1)).flatten(1).any(1).sum())
                print(f"({b}, {h}, {n}, {d}) {family:16s} {name:9s} {statistics.median(times[name]):.3f} ms, {ratio:.3f} x, "
                      f"{other} of {b * h} heads with other results, error {float(errors.max()):.2e}, component-wise {largest:.2e}",
                      flush=True)
            if options.kernels:
                from torch.profiler import ProfilerActivity, profile
                for name in names[1:4]:
                    with profile(activities=[ProfilerActivity.CUDA]) as p:
                        variants[name]()
                        torch.cuda.synchronize()
                    for x in sorted(p.key_averages(), key=lambda x: -x.device_time_total):
                        if x.device_time_total:
                            print(f"    {name:9s} {x.key[:48]:48s} {x.device_time_total / 1000:.3f} ms")


if __name__ == "__main__":
    main()
