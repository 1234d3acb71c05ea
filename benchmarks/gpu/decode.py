"""Times decoding, few queries of grouped heads over many keys, and compares with cuDNN in PyTorch:

    moa-codegen benchmarks/gpu/decode.moa --target=cuda -o DIRECTORY/decode.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/decode.cu \\
      -o DIRECTORY/decode.so -lcuda
    python3 benchmarks/gpu/decode.py DIRECTORY

Medians of interleaved launches; bytes are those of the keys and values that are read; the bandwidth is that of
a sum over 2 GiB in the same run; errors are relative L2 against float64. The check runs each kernel 100 times,
and each entry of a batch alone, and compares all bits.
"""
import ctypes
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from timing import Kernel, measure

D = 128
# Batch, heads, groups, queries, keys in the arrays, keys that are seen.
CASES = ((32, 32, 8, 1, 8192, 8192), (8, 32, 32, 1, 8192, 8192), (1, 32, 8, 1, 131072, 131072),
         (1, 32, 8, 1, 16384, 16384), (1, 32, 8, 1, 4096, 4096), (1, 32, 8, 1, 1024, 1024),
         (32, 32, 8, 1, 8192, 5000), (8, 32, 8, 4, 4096, 4089))


def median(variants):
    return {name: statistics.median(times) * 1000 for name, times in measure(variants, 15, 0.005).items()}


def measure_bandwidth():
    """Bytes per second of a sum over 2 GiB, in GB/s."""
    numbers = torch.ones(1 << 29, device="cuda")
    return numbers.numel() * 4 / median({"sum": numbers.sum})["sum"] / 1000


def attend(q, k, v, length):
    """The result in float64, entry by entry."""
    rows = []
    for entry in range(q.shape[0]):
        keys, values = (x[entry, :, :length].double().repeat_interleave(q.shape[1] // k.shape[1], 0) for x in (k, v))
        i, j = torch.arange(q.shape[2], device="cuda")[:, None], torch.arange(length, device="cuda")
        scores = q[entry].double() @ keys.transpose(-1, -2) * D ** -0.5
        rows.append(torch.softmax(scores.masked_fill(j > i + length - q.shape[2], -torch.inf), -1) @ values)
    return torch.stack(rows)


def compare(path, case, bandwidth):
    b, h, g, n, m, length = case
    q = torch.randn(b, h, n, D, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(b, g, m, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k[:, :, length:], v[:, :, length:] = torch.nan, torch.nan
    lengths = torch.full((b,), length, dtype=torch.int32, device="cuda")
    scale = ctypes.c_float(D ** -0.5)
    found = torch.empty_like(q)
    variants = {"own": Kernel(path, "decode", [q, k, v, scale, lengths], found)}

    def run_cudnn():
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            F.scaled_dot_product_attention(q, k, v, enable_gqa=h != g)

    if n == 1 and m == length:
        variants["cudnn"] = run_cudnn
    times = median(variants)
    wanted = attend(q, k, v, length)
    error = float((found.double() - wanted).norm() / wanted.norm())
    rate = 4 * b * g * length * D / times["own"] / 1000
    peer = f"{times['cudnn']:.1f} | {times['cudnn'] / times['own']:.2f}" if "cudnn" in times else "- | -"
    print(f"| {b}, {h}/{g}, {n}, {length} of {m} | {times['own']:.1f} | {peer} | {rate:.0f} | {rate / bandwidth:.2f} | "
          f"{error:.1e} |", flush=True)
    check(path, variants["own"], q, k, v, scale, lengths, found)


def check(path, kernel, q, k, v, scale, lengths, found):
    first = found.clone()
    for _ in range(100):
        found.zero_()
        kernel()
        if not torch.equal(found, first):
            sys.exit("two runs differ")
    for entry in range(0, q.shape[0], 7):
        own = [x[entry:entry + 1].contiguous() for x in (q, k, v, lengths)]
        alone = torch.empty_like(own[0])
        Kernel(path, "decode", [*own[:3], scale, own[3]], alone)()
        if not torch.equal(alone[0], first[entry]):
            sys.exit(f"entry {entry} differs alone and in a batch")


def main():
    torch.manual_seed(0)
    bandwidth = measure_bandwidth()
    print(f"A sum over 2 GiB: {bandwidth:.0f} GB/s")
    print("| B, H/G, N, keys | own, µs | cuDNN, µs | cuDNN / own | GB/s | share | error |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for case in CASES:
        compare(f"{sys.argv[1]}/decode.so", case, bandwidth)
    print("100 runs have equal bits, and so has each entry alone.")


if __name__ == "__main__":
    main()
