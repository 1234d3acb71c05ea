"""Times kernels of rows (rows.moa) beside a copy of as many bytes by the driver:

    for D in 64 128 256; do
      moa-codegen benchmarks/gpu/rows.moa --set D=$D --target=cuda -o DIRECTORY/rows-$D.cu
      nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/rows-$D.cu -o DIRECTORY/rows-$D.so
    done
    python3 benchmarks/gpu/rows.py DIRECTORY

Medians of interleaved launches; bytes are those that are read once and written once; errors (largest difference
relative to the largest value) against float64 on the first rows.
"""
import statistics
import sys

import torch

from timing import Kernel, measure

SHAPES = [(2, 16, 8192, 64), (2, 16, 8192, 128), (2, 16, 8192, 256)]


class Rows(Kernel):
    """With any number of outputs."""

    def __init__(self, path, name, inputs, outputs):
        super().__init__(path, name, list(inputs) + list(outputs[:-1]), outputs[-1])


def expected(form, x, g, r):
    x = x.double()
    if form == "scales":
        return torch.floor(x * (127 / x.abs().amax(-1, keepdim=True)) + 0.5)
    if form == "rms_norm":
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g.double()
    if form == "softmax_rows":
        return torch.softmax(x, -1)
    return x * 2 if form == "doubled" else x[:, :, r.long()]


def compare(directory, form, shape):
    b, h, n, d = shape
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    g = torch.randn(d, device="cuda", dtype=torch.bfloat16)
    r = torch.randperm(n, device="cuda").int()
    y = torch.empty(shape, device="cuda", dtype=torch.int8 if form == "scales" else torch.bfloat16)
    s = torch.empty((b, h, n), device="cuda")
    inputs = [x] + ([g] if form == "rms_norm" else [r] if form == "gathered" else [])
    outputs = [y, s] if form == "scales" else [y]
    size = sum(t.numel() * t.element_size() for t in [x] + outputs)
    # A copy reads and writes half of these bytes each.
    source, target = (torch.empty(size // 2, device="cuda", dtype=torch.uint8) for _ in range(2))
    kernel = Rows(f"{directory}/rows-{d}.so", form, inputs, outputs)
    times = measure({"ours": kernel, "copy": lambda: target.copy_(source)}, 15, 0.01)
    ours, copy = (statistics.median(times[way]) for way in ("ours", "copy"))
    wanted, found = expected(form, x[:1, :1], g, r), y[:1, :1].double()
    difference = (found - wanted).abs().max() / wanted.abs().max()
    print(f"| {form} | {shape} | {ours:.4f} | {copy:.4f} | {size / ours / 1e6:.0f} | {size / copy / 1e6:.0f} | "
          f"{copy / ours:.2f} | {float(difference):.1e} |", flush=True)


def main():
    torch.manual_seed(0)
    print("| form | B, H, N, D | ours, ms | copy, ms | ours, GB/s | copy, GB/s | copy / ours | error |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for form in ("scales", "rms_norm", "softmax_rows", "doubled", "gathered"):
        for shape in SHAPES:
            compare(sys.argv[1], form, shape)


if __name__ == "__main__":
    main()
