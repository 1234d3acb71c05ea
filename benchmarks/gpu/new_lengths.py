"""Times one query of attention at numbers of keys that were not seen before, as a model that generates text has:

    python3 benchmarks/gpu/new_lengths.py [--lengths 40]

It needs the package moa and PyTorch on a machine with the GPU. Each length is called twice, and the host waits for both
calls. So the times hold the host's work: building a plan, tracing, launching. Prints medians in ms.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import moa.torch


def within(backend):
    def call(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v)
    return call


FORMS = {
    "PyTorch, its choice": F.scaled_dot_product_attention,
    "PyTorch, cuDNN": within(SDPBackend.CUDNN_ATTENTION),
    "PyTorch, flash": within(SDPBackend.FLASH_ATTENTION),
    "PyTorch, efficient": within(SDPBackend.EFFICIENT_ATTENTION),
    "moa.torch": moa.torch.scaled_dot_product_attention,
}


def timed(call, arrays):
    begin = time.perf_counter()
    call(*arrays)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, default=40)
    count = parser.parse_args().lengths
    print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}; bf16, 1 query, 8 heads, D = 64")
    print("| attention | new length, ms | the same length again, ms |\n|---|---:|---:|")
    for number, (name, call) in enumerate(FORMS.items()):
        times = []
        for length in range(-5, count):  # the first five warm up
            keys = 301 + length + number * (count + 10)
            q, k, v = (torch.randn(1, 8, n, 64, dtype=torch.bfloat16, device="cuda") for n in (1, keys, keys))
            times.append((timed(call, (q, k, v)), timed(call, (q, k, v))))
        first, second = (statistics.median(column) for column in zip(*times[5:]))
        print(f"| {name} | {first:.3f} | {second:.3f} |")


if __name__ == "__main__":
    main()
