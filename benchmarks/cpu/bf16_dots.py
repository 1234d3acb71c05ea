"""Times attention of bf16 on a CPU by what the processor has for products of bf16, beside code for processors that have
nothing, and f32, and prints how far each is from NumPy in float64; then attention of f32 with a tolerance, as it is
written and with --spend, where the tolerance allows bf16 and where it does not. Run with the environment of the Python tests:

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


SPENT = ((1, 8, 2048, 128), (1, 8, 4096, 128), (1, 8, 8192, 128))
TOLERANT = """kernel tolerant[B, H, N, M; D = 128](Q : f32[B, H, N, D], K : f32[B, H, M, D], V : f32[B, H, M, D], scale : f32)
    -> O : f32[B, H, N, D] within %s relative sampled
{
  O = softmax((Q +.* transpose(K)) * scale) +.* V
}
"""
TOLERANCES = ("1e-2", "1e-3")  # bf16 is near enough, and it is not


def read(name):
    with open(os.path.join(mt.SOURCE_ROOT, "examples", name + ".moa"), encoding="utf-8") as file:
        return file.read()


def time_all(kernels, inputs, shape, runs, make):
    """Medians in ms of interleaved runs, and results, of the kernels that this processor runs."""
    if make:
        return {}
    bound, times = {}, {}
    for which, kernel in kernels.items():
        values, outputs = kernel.bind(dict(inputs, scale=shape[-1] ** -0.5), {"O": shape})
        workspace = mt.aligned(kernel.workspace_bytes(values))
        if kernel.launch(values, workspace) == mt.PROCESSOR:
            print(f"{which[0]}: not this processor")
            continue
        bound[which], times[which] = (kernel, values, workspace, outputs), []
    for _ in range(runs):
        for which, (kernel, values, workspace, _) in bound.items():
            start = time.perf_counter()
            assert kernel.launch(values, workspace) == mt.OK
            times[which].append(time.perf_counter() - start)
    return {which: (1e3 * statistics.median(times[which]), mt.decode(outputs["O"], kernel.by_name["O"].kind))
            for which, (kernel, _, _, outputs) in bound.items()}


def attention(inputs, is_causal):
    """Of the last head, in float64."""
    q, k, v = (inputs[name].astype(np.float64)[-1, -1] for name in "QKV")
    scores = q @ k.T * q.shape[-1] ** -0.5
    if is_causal:
        scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def report(title, found, inputs, is_causal):
    if not found:
        return
    print(title)
    exact = attention(inputs, is_causal)
    for which, (time_of, result) in found.items():
        error = np.linalg.norm(result[-1, -1] - exact) / np.linalg.norm(exact)
        print(f"  {which[0]:16} {which[1]:14} {time_of:8.2f} ms  error {error:.1e}")


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
        rng = np.random.default_rng(0)
        inputs = {name: mt.from_bf16(mt.to_bf16(rng.standard_normal(shape).astype(np.float32))) for name in "QKV"}
        report(f"{example} {shape}", time_all(kernels, inputs, shape, args.runs, args.make), inputs, example == "causal")
    for shape in SPENT:
        kernels = {}
        for processor in names:
            for epsilon in TOLERANCES:
                for flags in ((), ("--spend",)):
                    kernels[processor, f"{epsilon} {' '.join(flags)}"] = mt.Kernel(
                        TOLERANT % epsilon, flags=flags, processor=None if processor == "native" else processor)
        rng = np.random.default_rng(0)
        inputs = {name: rng.standard_normal(shape).astype(np.float32) for name in "QKV"}
        report(f"tolerant {shape}", time_all(kernels, inputs, shape, args.runs, args.make), inputs, False)


if __name__ == "__main__":
    main()
