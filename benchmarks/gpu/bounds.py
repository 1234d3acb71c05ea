"""What it takes a GPU to find bounds on the errors of results with tolerances for every input (bounds.moa), and to read them:

    moa-codegen benchmarks/gpu/bounds.moa --target=cuda -o DIRECTORY/with.cu
    moa-codegen benchmarks/gpu/bounds.moa --target=cuda --no-tolerance-check -o DIRECTORY/without.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/X.cu -o DIRECTORY/X.so -lcuda
    python3 benchmarks/gpu/bounds.py DIRECTORY

Medians of interleaved launches in ms, the median of the quotients of one round, what NAME_shown takes on the host behind kernels that
have run, in µs, and what it returns: 0 of scores that are small enough for the bound, 15 of large ones.
"""
import ctypes
import statistics
import sys
import time

import torch

from timing import Kernel, measure

FORMS = (("sixteen", torch.bfloat16), ("sixteen_causal", torch.bfloat16), ("single", torch.float32))


class Shown(Kernel):
    """Also what NAME_shown says."""

    def __init__(self, path, name, inputs, output):
        super().__init__(path, name, inputs, output)
        self.read = getattr(ctypes.CDLL(path), name + "_shown")

    def shown(self):
        text = ctypes.create_string_buffer(1024)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        start = time.perf_counter()
        code = self.read(*self.arguments, stream, text, ctypes.c_size_t(1024))
        return code, text.value.decode(), 1e6 * (time.perf_counter() - start)


def main():
    torch.manual_seed(0)
    directory = sys.argv[1]
    print("| kernel | B, H, N, D | without, ms | with, ms | with / without | NAME_shown, µs | small scores | large scores |")
    print("|---|---|---:|---:|---:|---:|---|---|")
    for name, kind in FORMS:
        for b, h, n in ((1, 4, 2048), (1, 16, 16384), (2, 16, 8192)) if kind != torch.float32 else ((1, 4, 2048), (2, 16, 8192)):
            q, k, v = (torch.randn(b, h, n, 128, device="cuda").to(kind) for _ in range(3))
            output = torch.empty(b, h, n, 128, device="cuda", dtype=torch.float32)
            codes, times, reads = [], {}, []
            for scale in (0.01 * 128 ** -0.5, 1e4 * 128 ** -0.5):
                inputs = [q, k, v, ctypes.c_float(scale)]
                checked = Shown(f"{directory}/with.so", name, inputs, output)
                plain = Kernel(f"{directory}/without.so", name, inputs, output)
                if not times:
                    times = measure({"with": checked, "without": plain}, 15, 0.01)
                checked()
                torch.cuda.synchronize()
                found = [checked.shown() for _ in range(20)]
                reads.append(statistics.median(x[2] for x in found))
                codes.append(f"{found[0][0]} {found[0][1]}")
            quotient = statistics.median(x / y for x, y in zip(times["with"], times["without"]))
            print(f"| {name} | {(b, h, n, 128)} | " + " | ".join(f"{statistics.median(times[x]):.3f}" for x in ("without", "with")) +
                  f" | {quotient:.3f} | {statistics.median(reads):.0f} | {codes[0]} | {codes[1]} |", flush=True)


if __name__ == "__main__":
    main()
