"""Times one query per head over many keys, in parts and as one block per head, beside PyTorch's attention:

    for way in parts whole; do
      moa-codegen examples/sdpa.moa --set N=1 --target=cuda $([ $way = whole ] && echo --disable-rule=R4) -o DIRECTORY/$way.cu
      nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/$way.cu -o DIRECTORY/$way.so -lcuda
    done
    python3 benchmarks/gpu/decode.py DIRECTORY

Medians of interleaved launches; bytes are those of K and V; errors are relative L2 against float64.
"""
import ctypes
import statistics
import sys

import torch
import torch.nn.functional as F

from timing import Kernel, measure


def compare(directory, b, h, m, d=128):
    q = torch.randn(b, h, 1, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(b, h, m, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    scale = d ** -0.5
    results = {way: torch.empty_like(q) for way in ("parts", "whole")}
    variants = {way: Kernel(f"{directory}/{way}.so", "sdpa", [q, k, v, ctypes.c_float(scale)], results[way])
                for way in results}
    variants["torch"] = lambda: F.scaled_dot_product_attention(q, k, v, scale=scale)
    times = {way: statistics.median(list_) for way, list_ in measure(variants, 15, 0.01).items()}
    wanted = torch.softmax((q.double() @ k.double().transpose(-1, -2)) * scale, -1) @ v.double()
    errors = [float((results[way].double() - wanted).norm() / wanted.norm()) for way in results]
    print(f"| {(b, h, 1, m, d)} | {times['parts']:.4f} | {times['whole']:.4f} | {times['torch']:.4f} | "
          f"{2 * k.numel() * 2 / times['parts'] / 1e6:.0f} | {errors[0]:.1e} | {errors[1]:.1e} |", flush=True)


def main():
    torch.manual_seed(0)
    print("| B, H, N, M, D | parts, ms | whole, ms | PyTorch, ms | parts, GB/s | error parts | error whole |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for b, h, m in ((1, 32, 8192), (1, 32, 65536), (8, 32, 8192), (1, 8, 131072)):
        compare(sys.argv[1], b, h, m)


if __name__ == "__main__":
    main()
