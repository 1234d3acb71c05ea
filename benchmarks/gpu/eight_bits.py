"""Times attention with scores of 8-bit integers beside that of bf16 (eight_bits.moa):

    moa-codegen benchmarks/gpu/eight_bits.moa --target=cuda -o DIRECTORY/eight_bits.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/eight_bits.cu -o DIRECTORY/eight_bits.so -lcuda
    python3 benchmarks/gpu/eight_bits.py DIRECTORY/eight_bits.so

Queries and keys are normal numbers; integers are these divided by a scale, of all of them or
of each row, so that the largest becomes 127. Printed are medians of interleaved launches, of
their ratios per round, and errors: of the kernel against float64 on what it reads, and against
float64 on the numbers before they were rounded to bf16 or integers, both on 64 rows per head.
"""
import ctypes
import statistics
import sys

import torch

from timing import Kernel, measure

SHAPES = ((2, 16, 8192, 128), (1, 16, 16384, 128))


def quantise(x, axes):
    """Integers of 8 bits and their scale: of everything, or along the last axis."""
    size = x.abs().amax(axes, keepdim=True) / 127
    return (x / size).round().to(torch.int8), size


def attention(q, k, v, rows, scale):
    """Softmax attention of some rows in float64, one head after the other."""
    heads = []
    for x, y, z in zip(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)):
        scores = x[rows].double() @ y.double().transpose(0, 1) * scale
        heads.append(scores.softmax(-1) @ z.double())
    return torch.stack(heads)


def error(output, rows, expected):
    found = output.flatten(0, 1)[:, rows].double()
    return float((found - expected).norm() / expected.norm())


def main():
    torch.manual_seed(0)
    for b, h, n, d in SHAPES:
        q, k, v = (torch.randn(b, h, n, d, device="cuda") for _ in range(3))
        v = v.bfloat16()
        scale = d ** -0.5
        everything, last = (0, 1, 2, 3), (3,)
        (qa, sqa), (ka, ska) = quantise(q, everything), quantise(k, everything)
        (qr, sqr), (kr, skr) = quantise(q, last), quantise(k, last)
        whole = ctypes.c_float(scale * float(sqa) * float(ska))
        inputs = {
            "halves": [q.bfloat16(), k.bfloat16(), v, ctypes.c_float(scale)],
            "integers": [qa, ka, v, whole],
            "scaled_integers": [qr, kr, v, sqr[..., 0].contiguous(), skr[..., 0].contiguous(),
                                ctypes.c_float(scale)]}
        read = {"halves": (q.bfloat16(), k.bfloat16()), "integers": (qa * sqa, ka * ska),
                "scaled_integers": (qr * sqr, kr * skr)}
        outputs = {name: torch.empty_like(v) for name in inputs}
        variants = {name: Kernel(sys.argv[1], name, arguments, outputs[name])
                    for name, arguments in inputs.items()}
        times = measure(variants, 60, 0.05)
        rows = torch.arange(0, n, n // 64, device="cuda")
        meant = attention(q, k, v, rows, scale)
        for name, values in times.items():
            ratio = statistics.median(x / y for x, y in zip(times["halves"], values))
            rate = 4 * b * h * n * n * d / (statistics.median(values) * 1e9)
            own = error(outputs[name], rows, attention(*read[name], v, rows, scale))
            print(f"({b}, {h}, {n}, {d}) {name}: {statistics.median(values):.3f} ms, {rate:.0f} TFLOP/s, "
                  f"{ratio:.3f} x the speed of halves, error {own:.1e} of what it reads, "
                  f"{error(outputs[name], rows, meant):.1e} of what was meant")


if __name__ == "__main__":
    main()
