"""Times what statistics of the weights cost in the pass of attention (moments.moa):

    moa-codegen benchmarks/gpu/moments.moa --target=cuda -o DIRECTORY/moments.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/moments.cu -o DIRECTORY/moments.so -lcuda
    python3 benchmarks/gpu/moments.py DIRECTORY/moments.so

Medians of interleaved launches, and errors against PyTorch in f32 on 64 rows.
"""
import ctypes
import statistics
import sys

import torch

from timing import Kernel, describe, measure


class Statistics(Kernel):
    """An entry point with two outputs."""

    def __init__(self, path, name, inputs, outputs):
        super().__init__(path, name, inputs, outputs[0])
        if len(outputs) == 1:
            return
        self.kept.append(describe(outputs[1]))
        position = len(inputs) + 1
        self.arguments = self.arguments[:position] + [ctypes.byref(self.kept[-1])]
        needed = getattr(ctypes.CDLL(path), name + "_workspace")
        needed.restype = ctypes.c_int64
        self.workspace = torch.empty(max(needed(*self.arguments), 0), dtype=torch.uint8, device="cuda")
        self.arguments += [ctypes.c_void_p(self.workspace.data_ptr()),
                           ctypes.c_size_t(self.workspace.numel())]


def expected(q, k, rows, scale):
    s = q[:, :, rows].float() @ k.float().transpose(-1, -2) * scale
    p = s.softmax(-1)
    mean = (p * s).sum(-1, keepdim=True)
    return {"with_entropy": torch.special.entr(p).sum(-1), "with_variance": (p * (s - mean) ** 2).sum(-1)}


def main():
    torch.manual_seed(0)
    for b, h, n, d in ((2, 16, 8192, 128), (2, 16, 2048, 128)):
        q, k, v = (torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        scale, variants, results = d ** -0.5, {}, {}
        for name in ("attention", "with_entropy", "with_variance"):
            outputs = [torch.empty_like(q)]
            if name != "attention":
                results[name] = torch.empty(b, h, n, device="cuda")
                outputs.append(results[name])
            inputs = [q, k, v, ctypes.c_float(scale)]
            variants[name] = Statistics(sys.argv[1], name, inputs, outputs)
        times = measure(variants, 40, 0.02)
        base = times["attention"]
        rows = torch.arange(0, n, n // 64, device="cuda")
        wanted = expected(q, k, rows, scale)
        for name, values in times.items():
            ratio = statistics.median(x / y for x, y in zip(values, base))
            error = ""
            if name in results:
                difference = (results[name][:, :, rows] - wanted[name]).abs().max()
                error = f", largest error {float(difference):.1e} of {float(wanted[name].abs().max()):.2f}"
            print(f"({b}, {h}, {n}, {d}) {name}: {statistics.median(values):.3f} ms, {ratio:.3f} x attention{error}")


if __name__ == "__main__":
    main()
