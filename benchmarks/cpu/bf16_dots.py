"""Times attention of bf16 on a CPU by what the processor has for products of bf16, beside code for processors that have
nothing, and f32, and prints how far each is from NumPy in float64. Run with the environment of the Python tests:

    MOA_CPU_KERNELS=DIR python3 benchmarks/cpu/bf16_dots.py --processors x86-64-v4,sapphirerapids [--make]

With --make the kernels are compiled into DIR alone, for a machine without the compiler.
"""
import argparse
import os
import statistics
import time

import numpy as np

import moa_testing as mt

EXAMPLES = (("sdpa", (1, 8, 4096, 128)), ("sdpa", (2, 8, 1024, 128)), ("causal", (1, 8, 4096, 128)))


def read(name):
    with open(os.path.join(mt.SOURCE_ROOT, "examples", name + ".moa"), encoding="utf-8") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processors", default="native,x86-64-v4")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--make", action="store_true")
    args = parser.parse_args()
    names = args.processors.split(",")
    for example, shape in EXAMPLES:
        kernels = {}
        for processor in names:
            for kind in ("bf16", "f32"):
                kernels[processor, kind] = mt.Kernel(
                    read(example), processor=None if processor == "native" else processor, T=kind)
        if args.make:
            continue
        rng = np.random.default_rng(0)
        inputs = {name: mt.from_bf16(mt.to_bf16(rng.standard_normal(shape).astype(np.float32))) for name in "QKV"}
        q, k, v = (inputs[name].astype(np.float64)[-1, -1] for name in "QKV")
        scores = q @ k.T * shape[-1] ** -0.5
        if example == "causal":
            scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = weights @ v / weights.sum(-1, keepdims=True)
        bound, times = {}, {}
        for which, kernel in list(kernels.items()):
            values, outputs = kernel.bind(dict(inputs, scale=shape[-1] ** -0.5), {"O": shape})
            workspace = mt.aligned(kernel.workspace_bytes(values))
            if kernel.launch(values, workspace) == mt.PROCESSOR:
                print(f"{which[0]}: not this processor")
                continue
            bound[which], times[which] = (kernel, values, workspace, outputs), []
        for _ in range(args.runs):
            for which, (kernel, values, workspace, _) in bound.items():
                start = time.perf_counter()
                assert kernel.launch(values, workspace) == mt.OK
                times[which].append(time.perf_counter() - start)
        print(f"{example} {shape}")
        for which, (kernel, _, _, outputs) in bound.items():
            found = mt.decode(outputs["O"], which[1])[-1, -1]
            error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
            print(f"  {which[1]:5} {which[0]:16} {1e3 * statistics.median(times[which]):8.2f} ms  error {error:.1e}")


if __name__ == "__main__":
    main()
