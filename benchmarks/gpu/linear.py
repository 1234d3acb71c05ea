"""Times exact linear forms with sums over keys stored once against the dense evaluation of the same specification (linear.moa):

    for way in stored dense; do
      moa-codegen benchmarks/gpu/linear.moa --target=cuda $([ $way = dense ] && echo --disable-rule=R7) -o DIRECTORY/$way.cu
      nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/$way.cu -o DIRECTORY/$way.so -lcuda
    done
    python3 benchmarks/gpu/linear.py DIRECTORY

Medians of interleaved launches, errors (relative L2) against float64 on 32 rows of two heads, and the length from which
storing pays. The time in which a host starts kernels is not in them, as it is ahead of the device.
"""
import statistics
import sys

import torch

from timing import Kernel, measure

FORMS = ("linear", "linear_causal", "kernelised", "kernelised_causal", "decay", "retention", "linear_normed", "decay_normed",
         "first_order", "from_row")
WITH_DECAY = ("decay", "retention", "decay_normed")


def bases(heads):
    """1 - 2^(-5 - h) for head h, as in the paper on retention."""
    return 1 - 2.0 ** (-5 - torch.arange(heads, device="cuda", dtype=torch.float32))


def expected(form, q, k, v, rows):
    """Rows of the result, in float64."""
    q, k, v = (x.double() for x in (q[:, :, rows], k, v))
    s = q @ k.transpose(-1, -2)
    distance = rows[:, None] - torch.arange(k.shape[2], device="cuda")
    if form == "from_row":
        s = s.masked_fill((distance > 0) | (torch.arange(k.shape[2], device="cuda") >= k.shape[2] - 100), 0)
    if form == "first_order":
        s = s * 0.125 + 1
    if form.endswith("causal") or form in ("linear_normed", "first_order") or form in WITH_DECAY:
        s = s.masked_fill(distance < 0, 0)
    if form in WITH_DECAY:
        s = s * bases(q.shape[1]).double()[:, None, None] ** distance.clamp(min=0)
    if form == "retention":
        s = s / s.sum(-1, keepdim=True).abs().clamp(min=1)
    if form.startswith("kernelised") or form == "first_order":
        s = s / s.sum(-1, keepdim=True)
    o = s @ v
    return o / (o.square().mean(-1, keepdim=True) + 1e-6).sqrt() if form.endswith("normed") else o


def error(form, q, k, v, result):
    n = q.shape[2]
    rows = torch.cat([torch.arange(16, device="cuda") * (n // 16), n - 1 - torch.arange(16, device="cuda")])
    wanted = expected(form, q[:, :2], k[:, :2], v[:, :2], rows)
    return float((result[:, :2, rows].double() - wanted).norm() / wanted.norm())


def compare(directory, form, shape, rounds):
    b, h, n, d = shape
    q, k, v = (torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    if form.startswith("kernelised"):
        q, k = q.abs() + 0.1, k.abs() + 0.1
    if form == "first_order":
        q, k = q.abs() / 4, k.abs() / 4
    results = {way: torch.empty_like(q) for way in ("stored", "dense")}
    inputs = [q, k, v] + ([bases(h)] if form in WITH_DECAY else [])
    if form == "from_row":
        inputs.append(torch.full((b,), n - 100, device="cuda", dtype=torch.int32))
    variants = {way: Kernel(f"{directory}/{way}.so", form, inputs, results[way]) for way in results}
    times = measure(variants, rounds, 0.01)
    ratio = statistics.median(x / y for x, y in zip(times["dense"], times["stored"]))
    errors = {way: error(form, q, k, v, results[way]) for way in results}
    print(f"| {form} | {shape} | {statistics.median(times['stored']):.3f} | {statistics.median(times['dense']):.3f} | "
          f"{ratio:.2f} | {errors['stored']:.1e} | {errors['dense']:.1e} | "
          f"{variants['stored'].workspace.numel() / 2**20:.1f} |", flush=True)
    return ratio


def main():
    torch.manual_seed(0)
    print("| form | B, H, N, D | stored, ms | dense, ms | dense / stored | error stored | error dense | workspace, MiB |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for form in FORMS:
        compare(sys.argv[1], form, (1, 16, 65536, 64), 7)
    for form in sys.argv[2:] or ("linear", "linear_causal", "retention"):
        for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 131072, 262144):
            compare(sys.argv[1], form, (1, 16, n, 64) if n <= 131072 else (1, 4, n, 64), 15 if n < 65536 else 5)


if __name__ == "__main__":
    main()
