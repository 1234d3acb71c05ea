"""Whether calls whose heads take other plans, one behind the other, have the bits that each has alone:

    moa-codegen benchmarks/gpu/precision.moa --target=cuda --spend=256 --pilot -o DIRECTORY/precision.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/precision.cu -o DIRECTORY/precision.so -lcuda
    python3 benchmarks/gpu/alternate.py DIRECTORY/precision.so [--calls 600]

Launches of a call overlap, and those without work end before others in front of them have, by flags in the workspace. So
calls of some families of benchmarks/accuracy, of which all heads take fewer bits, some or none, are made in random order in
one workspace, with a copy of the result or with nothing in between, and replayed as a graph. The exit code is not 0 if one
element of a result differs from that of the call alone, in a workspace of its own that holds ones.
"""
import argparse
import ctypes
import os
import random
import sys

import torch

from timing import Kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "accuracy"))
import families  # noqa: E402

FAMILIES = ("sinks", "coherent_values", "normal", "outlier_channels", "peaked")
KERNELS = ("within_3", "within_6")
SHAPES = ((1, 1, 2304, 128), (1, 2, 8192, 128), (1, 3, 4112, 128), (2, 8, 4096, 128))


class Call:
    """A kernel on inputs of one family, and its result alone."""

    def __init__(self, library, name, inputs, shared):
        self.output = torch.empty_like(inputs[2])
        self.kernel = Kernel(library, name, [*inputs, ctypes.c_float(inputs[0].shape[-1] ** -0.5)], self.output)
        self.inputs = inputs
        self.kernel.workspace.fill_(255)
        torch.cuda.synchronize()
        self.kernel()
        torch.cuda.synchronize()
        self.alone = self.output.clone()
        needed = self.kernel.workspace.numel()
        if shared.numel() < needed:
            raise RuntimeError(f"a workspace of {shared.numel()} bytes, but {needed} are needed")
        self.kernel.arguments[-2:] = [ctypes.c_void_p(shared.data_ptr()), ctypes.c_size_t(shared.numel())]

    def result(self):
        self.kernel()
        return self.output.clone()


def count_wrong(calls, count, generator):
    wrong = 0
    for _ in range(count // 100):
        made = [(call, call.result()) for call in generator.choices(calls, k=100)]
        wrong += sum(not torch.equal(result, call.alone) for call, result in made)
    for first, second in zip(generator.choices(calls, k=count), generator.choices(calls, k=count)):
        first.kernel()
        wrong += not torch.equal(second.result(), second.alone)
    graph = torch.cuda.CUDAGraph()
    pair = generator.sample(calls, 2)
    with torch.cuda.graph(graph):
        results = [call.result() for call in pair]
    for _ in range(50):
        graph.replay()
    torch.cuda.synchronize()
    return wrong + sum(not torch.equal(result, call.alone) for call, result in zip(pair, results))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object")
    parser.add_argument("--calls", type=int, default=600)
    options = parser.parse_args()
    generator, total = random.Random(1), 0
    for b, h, n, d in SHAPES:
        calls = []
        shared = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        for entries, family in enumerate(FAMILIES, 1):
            arrays = families.Heads(family, entries, h, n, d=d).arrays()
            inputs = [torch.from_numpy(x).cuda().repeat(b, 1, 1, 1).bfloat16().contiguous() for x in arrays]
            exact = Call(options.object, "exact", inputs, shared)
            for name in KERNELS:
                calls.append(Call(options.object, name, inputs, shared))
                differing = int((calls[-1].alone != exact.alone).flatten(2).any(2).sum())
                shape = tuple(inputs[0].shape)
                print(f"{shape} {family:16} {name}: {differing} of {shape[0] * shape[1]} heads in fewer bits")
        wrong = count_wrong(calls, options.calls, generator)
        total += wrong
        print(f"{(b, h, n, d)} {3 * options.calls} calls and a graph: {wrong} results differ", flush=True)
    return total != 0


if __name__ == "__main__":
    sys.exit(main())
