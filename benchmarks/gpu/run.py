"""Times emitted kernels beside cuDNN, FlashAttention 2 and FlexAttention.

Launches of all variants go in shuffled round-robin order, each after an L2 flush
and an idle gap, so that clock and cache are the same for all of them; printed are
medians of the times and of the per-round ratios to cuDNN, with quartiles.
"""
import argparse
import ctypes
import os
import random
import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES = [("sdpa", 2, 16, 8192, 128), ("causal", 2, 16, 8192, 128),
         ("sdpa", 2, 32, 8192, 64), ("causal", 2, 32, 8192, 64),
         ("sdpa", 2, 8, 8192, 256), ("causal", 2, 8, 8192, 256)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def describe(tensor):
    """DLPack's descriptor of a tensor on the current device."""
    n = tensor.dim()
    code = {torch.bfloat16: 4}.get(tensor.dtype, 2)
    return DLTensor(tensor.data_ptr(), 2, tensor.device.index or 0, n, code,
                    8 * tensor.element_size(), 1, (ctypes.c_int64 * n)(*tensor.shape),
                    (ctypes.c_int64 * n)(*tensor.stride()), 0)


class Kernel:
    def __init__(self, directory, form, width):
        self.library = ctypes.CDLL(os.path.join(directory, f"{form}-{width}.so"))
        self.function = getattr(self.library, form)

    def __call__(self, q, k, v, scale, o):
        tensors = [describe(x) for x in (q, k, v, o)]
        refs = [ctypes.byref(t) for t in tensors]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = self.function(*refs[:3], ctypes.c_float(scale), refs[3], None,
                             ctypes.c_size_t(0), stream)
        if code:
            raise RuntimeError(f"the kernel refused: code {code}")


def backend(which, causal):
    def run(q, k, v, scale, o):
        with sdpa_kernel(which):
            return F.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=causal)
    return run


def reference(q, k, v, scale, causal, rows):
    """Some query rows in float64."""
    s = (q[:, :, rows].double() @ k.double().transpose(-1, -2)) * scale
    if causal:
        i = torch.tensor(rows, device=q.device)[:, None]
        s.masked_fill_(torch.arange(k.shape[2], device=q.device)[None] > i, float("-inf"))
    return torch.softmax(s, -1) @ v.double()


def measure(variants, arguments, rounds, gap):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in variants}
    for run in variants.values():
        run(*arguments)
    torch.cuda.synchronize()
    for _ in range(rounds):
        order = list(variants)
        random.shuffle(order)
        for name in order:
            flush.zero_()
            torch.cuda.synchronize()
            time.sleep(gap)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            variants[name](*arguments)
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--gap", type=float, default=0.05)
    options = parser.parse_args()
    torch.manual_seed(1)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "cuDNN",
          torch.backends.cudnn.version())
    for form, b, h, n, d in CASES:
        q, k, v = (torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16)
                   for _ in range(3))
        o = torch.full_like(q, float("nan"))
        scale, causal = d ** -0.5, form == "causal"
        kernel = Kernel(options.directory, form, d)
        kernel(q, k, v, scale, o)
        torch.cuda.synchronize()
        rows = sorted(random.sample(range(n), 32))
        want = reference(q, k, v, scale, causal, rows)
        error = ((o[:, :, rows].double() - want).norm() / want.norm()).item()
        variants = {"ours": kernel,
                    "cuDNN": backend(SDPBackend.CUDNN_ATTENTION, causal),
                    "FA2": backend(SDPBackend.FLASH_ATTENTION, causal)}
        times = measure(variants, (q, k, v, scale, o), options.rounds, options.gap)
        flops = 4 * b * h * d * n * n / (2 if causal else 1)
        print(f"{form} bf16 ({b}, {h}, {n}, {d}): error {error:.2e}")
        for name, values in times.items():
            ratio = sorted(c / t for c, t in zip(times["cuDNN"], values))
            q1, q2, q3 = statistics.quantiles(ratio, n=4)
            median = statistics.median(values)
            print(f"  {name:6} {median:8.3f} ms {flops / median * 1e-9:7.1f} TFLOP/s   "
                  f"{q2:.3f} x cuDNN (quartiles {q1:.3f} .. {q3:.3f})")


if __name__ == "__main__":
    main()
