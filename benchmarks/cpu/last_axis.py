"""Times results whose last axis has a run-time size on a CPU, against the same with that size set, and prints medians of
interleaved runs and their ratio. Run with the environment of the Python tests:

    MOA_SOURCE_ROOT=. MOA_BINARY_ROOT=build PYTHONPATH=test/Integration/Support python3 benchmarks/cpu/last_axis.py
"""
import argparse
import statistics
import time

import numpy as np

import moa_testing as mt

PRODUCT = """kernel mm[N, M, K](A : f32[N, K], B : f32[K, M]) -> C : f32[N, M]
{
  C = A +.* B
}
"""
WEIGHTS = """kernel weights[H, N, M; D = 64](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> (O : f32[H, N, D], P : f32[H, N, M])
{
  P = softmax((Q +.* transpose(K)) * scale)
  O = P +.* V
}
"""


def cases(size):
    rng = np.random.default_rng(size)
    def values(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    yield "mm", PRODUCT, {"A": values(size, size), "B": values(size, size)}, {"C": (size, size)}
    yield ("weights", WEIGHTS, {"Q": values(8, size, 64), "K": values(8, size, 64), "V": values(8, size, 64), "scale": 0.125},
           {"O": (8, size, 64), "P": (8, size, size)})


def compare(text, inputs, shapes, size, runs):
    bound = []
    for settings in ({}, {"M": size}):
        kernel = mt.Kernel(text, **settings)
        values, outputs = kernel.bind(inputs, shapes)
        bound.append((kernel, values, outputs, mt.aligned(max(kernel.workspace_bytes(values), 64))))
    times = [[], []]
    for _ in range(runs + 1):
        for k, (kernel, values, _, workspace) in enumerate(bound):
            start = time.perf_counter()
            assert kernel.launch(values, workspace) == mt.OK
            times[k].append(1e3 * (time.perf_counter() - start))
    for name in shapes:
        x, y = (mt.decode(outputs[name], "f32").astype(float) for _, _, outputs, _ in bound)
        distance = np.linalg.norm(x - y) / np.linalg.norm(y)
        if not distance < 1e-6:
            raise SystemExit(f"{name} differs by {distance:.1e} (relative L2) between the two kernels")
    return [statistics.median(of[1:]) for of in times]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="1024,1000")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    print("| kernel | size | M at run time, ms | M set, ms | ratio |\n|---|---:|---:|---:|---:|")
    for size in map(int, options.sizes.split(",")):
        for name, text, inputs, shapes in cases(size):
            free, known = compare(text, inputs, shapes, size, options.runs)
            print(f"| {name} | {size:,} | {free:.1f} | {known:.1f} | {free / known:.2f} |", flush=True)


if __name__ == "__main__":
    main()
