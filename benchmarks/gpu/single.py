"""Times attention of f32 (single.moa) beside PyTorch's in f32 (its products in full precision, which is its default):

    moa-codegen benchmarks/gpu/single.moa --target=cuda -o DIRECTORY/lanes.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/lanes.cu -o DIRECTORY/lanes.so
    python3 benchmarks/gpu/single.py DIRECTORY [lanes …]

Names behind the directory are those of the libraries that are compared. Medians of interleaved launches; errors are
relative L2 against float64 on 32 rows of two heads.
"""
import ctypes
import statistics
import sys

import torch
import torch.nn.functional as F

from timing import Kernel, measure

FORMS = (("full_64", 64), ("full_128", 128), ("causal_128", 128))


def error(form, q, k, v, scale, result):
    n = q.shape[2]
    rows = torch.cat([torch.arange(16, device="cuda") * (n // 16), n - 1 - torch.arange(16, device="cuda")])
    x, y, z = (a[:, :2].double() for a in (q[:, :, rows], k, v))
    s = (x @ y.transpose(-1, -2)) * scale
    if form.startswith("causal"):
        s = s.masked_fill(torch.arange(n, device="cuda") > rows[:, None], float("-inf"))
    wanted = torch.softmax(s, -1) @ z
    return float((result[:, :2, rows].double() - wanted).norm() / wanted.norm())


def main():
    torch.manual_seed(0)
    directory, ways = sys.argv[1], sys.argv[2:] or ["lanes"]
    print("| form | B, H, N, D | " + ", ms | ".join([*ways, "PyTorch"]) + ", ms | PyTorch / " + ways[0] + " | error |")
    print("|---|---|" + "---:|" * (len(ways) + 3))
    for form, d in FORMS:
        for b, h, n in ((1, 8, 512), (2, 16, 2048), (2, 16, 8192)):
            q, k, v = (torch.randn(b, h, n, d, device="cuda") for _ in range(3))
            scale, results = d ** -0.5, {way: torch.empty_like(q) for way in ways}
            inputs = [q, k, v, ctypes.c_float(scale)]
            variants = {way: Kernel(f"{directory}/{way}.so", form, inputs, results[way]) for way in ways}
            causal = form.startswith("causal")
            variants["PyTorch"] = lambda: F.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=causal)
            times = {way: statistics.median(list_) for way, list_ in measure(variants, 3, 0.01).items()}
            print(f"| {form} | {(b, h, n, d)} | " + " | ".join(f"{time:.3f}" for time in times.values()) +
                  f" | {times['PyTorch'] / times[ways[0]]:.2f} | {error(form, q, k, v, scale, results[ways[0]]):.1e} |",
                  flush=True)


if __name__ == "__main__":
    main()
