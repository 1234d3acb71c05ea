"""Times attention over keys in pages, and compares with the same keys without pages:

    for P in 16 64; do moa-codegen benchmarks/gpu/pages.moa --set P=$P --target=cuda -o DIRECTORY/pages-$P.cu; done
    moa-codegen benchmarks/gpu/decode.moa --target=cuda -o DIRECTORY/contiguous.cu
    for each file: nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC F.cu -o F.so -lcuda
    python3 benchmarks/gpu/pages.py DIRECTORY

Medians of interleaved launches. Pages lie in random order, entries share some, and pages that no table names hold
NaN. Errors are relative L2 against float64; 100 runs must have equal bits, and an entry the same bits alone.
"""
import ctypes
import glob
import os
import statistics
import sys

import torch

from decode import attend
from timing import Kernel, measure

D = 128
# Batch, heads, groups, queries, keys of the table, keys that are seen.
CASES = ((32, 32, 8, 1, 8192, 8192), (8, 32, 8, 1, 8192, 5000), (1, 32, 8, 1, 32768, 32768),
         (2, 32, 8, 2048, 4096, 4096), (2, 32, 8, 300, 1152, 1111))


def put_in_pages(keys, length, size):
    """Pages [C, size, G, D] in random order, with the last half unused, and a table [B, L]."""
    b, g, m, _ = keys.shape
    count = m // size
    rows = keys.transpose(1, 2).reshape(b * count, size, g, D)
    place = torch.randperm(2 * b * count, device="cuda")[:b * count]
    pages = torch.full((2 * b * count, size, g, D), torch.nan, device="cuda", dtype=keys.dtype)
    pages[place] = rows
    table = place.reshape(b, count).to(torch.int32)
    used = -(-length // size)
    table[:, used:] = table[:, :1]  # behind the last key, a page that occurs before
    return pages, table


def compare(directory, case):
    b, h, g, n, m, length = case
    q = torch.randn(b, h, n, D, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(b, g, m, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k[1::3] = k[:1]  # entries with equal keys
    lengths = torch.full((b,), length, dtype=torch.int32, device="cuda")
    scale = ctypes.c_float(D ** -0.5)
    found, kept = {"contiguous": torch.empty_like(q)}, []
    variants = {"contiguous": Kernel(f"{directory}/contiguous.so", "decode", [q, k, v, scale, lengths],
                                     found["contiguous"])}
    for path in sorted(glob.glob(f"{directory}/pages-*.so")):
        name = os.path.basename(path)[:-3]
        size = int(name.split("-")[1])
        if m % size:
            continue
        torch.manual_seed(size)
        state = torch.cuda.get_rng_state()
        paged_k, table = put_in_pages(k, length, size)
        torch.cuda.set_rng_state(state)
        paged_v, _ = put_in_pages(v, length, size)
        kept.append([q, paged_k, paged_v, table, lengths, scale])
        found[name] = torch.empty_like(q)
        variants[name] = Kernel(path, "pages", kept[-1], found[name])
    times = {name: statistics.median(list_) * 1000 for name, list_ in measure(variants, 11, 0.005).items()}
    wanted = attend(q, k, v, length)
    for name, result in found.items():
        error = float((result.double() - wanted).norm() / wanted.norm())
        print(f"| {b}, {h}/{g}, {n}, {length} of {m} | {name} | {times[name]:.1f} | "
              f"{times['contiguous'] / times[name]:.2f} | {error:.1e} |", flush=True)
        first = result.clone()
        for _ in range(100):
            result.zero_()
            variants[name]()
            if not torch.equal(result, first):
                sys.exit(f"{name}: two runs differ")


def main():
    torch.manual_seed(0)
    print("| B, H/G, N, keys | keys in | µs | contiguous / own | error |")
    print("|---|---|---:|---:|---:|")
    for case in CASES:
        compare(sys.argv[1], case)
    print("100 runs have equal bits.")


if __name__ == "__main__":
    main()
