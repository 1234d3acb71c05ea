"""Scores of 8 bits on this CPU beside f32: processor time and time on the clock of attention as written, with integer
scores, with the plan of --spend from few rows on and its decisions, and with --spend alone, interleaved.

    PYTHONPATH=test/Integration/Support MOA_SOURCE_ROOT=$PWD MOA_BINARY_ROOT=$PWD/build \\
        python3 benchmarks/cpu/bytes.py --heads 1,4 --sizes 4096,8192 [--rounds 3] [--width 128] [--flags=--mcpu=NAME]
"""
import argparse
import resource
import time

import numpy as np

import moa_testing as mt

INTEGERS = """kernel bytes[B, H, N, M; D = 128](
    Q : i8[B, H, N, D], K : i8[B, H, M, D], V : f32[B, H, M, D], scale : f32) -> O : f32[B, H, N, D]
{ O = softmax(f32(Q +.* transpose(K)) * scale) +.* V }
"""
ALLOWED = ("--within", "O=3e-2,relative,sampled")
SPENDS = ALLOWED + ("--spend=256", "--decisions")


def prepare(kernel, inputs, shapes):
    """What launches the kernel on these arrays, and its outputs."""
    values, outputs = kernel.bind(inputs, shapes)
    workspace = mt.aligned(max(kernel.workspace_bytes(values), 0))

    def launch():
        code = kernel.launch(values, workspace)
        if code:
            raise RuntimeError(f"{kernel.name} returned {code}")
    return launch, outputs


def processor_time():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def interleave(launches, rounds):
    """Lists of (processor time, time) in ms by name."""
    times = {name: [] for name in launches}
    for launch in launches.values():
        launch()
    for _ in range(rounds):
        for name, launch in launches.items():
            used, start = processor_time(), time.perf_counter()
            launch()
            times[name].append((1e3 * (processor_time() - used), 1e3 * (time.perf_counter() - start)))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", default="1,4")
    parser.add_argument("--sizes", default="4096,8192")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--scale", type=float, default=0.088, help="of scores of f32; a large one refuses the plan")
    parser.add_argument("--flags", default="", help="for moa-codegen, separated by spaces")
    options = parser.parse_args()
    width, flags = options.width, tuple(options.flags.split())
    sdpa = mt.example("sdpa")
    kernels = {"f32": mt.Kernel(sdpa, flags=flags, T="f32", D=width), "i8": mt.Kernel(INTEGERS, flags=flags, D=width),
               "plan": mt.Kernel(sdpa, flags=SPENDS + flags, T="f32", D=width),
               "spend": mt.Kernel(sdpa, flags=ALLOWED + ("--spend",) + flags, T="f32", D=width)}
    print("heads  rows  kernel  processors ms (median)     clock ms   f32 / this")
    for size in map(int, options.sizes.split(",")):
        for heads in map(int, options.heads.split(",")):
            shape = (1, heads, size, width)
            rng = np.random.default_rng(0)
            floats = {name: rng.standard_normal(shape, np.float32) for name in "QKV"} | {"scale": options.scale}
            integers = floats | {name: rng.integers(-128, 128, shape).astype(np.int8) for name in "QK"}
            integers["scale"] = 1e-5
            shapes = {"O": shape, "O_plan": shape[:2], "O_estimate": shape[:2] + (1,)}
            made = {name: prepare(kernel, integers if name == "i8" else floats, shapes)
                    for name, kernel in kernels.items()}
            times = interleave({name: launch for name, (launch, _) in made.items()}, options.rounds)
            best = {name: min(used for used, _ in rounds) for name, rounds in times.items()}
            for name, rounds in times.items():
                median, clock = np.median([used for used, _ in rounds]), min(clock for _, clock in rounds)
                print(f"{heads:5} {size:5}  {name:6} {best[name]:9.1f} ({median:9.1f})    {clock:9.1f}   "
                      f"{best['f32'] / best[name]:9.2f}", flush=True)
            plans, estimates = made["plan"][1]["O_plan"], made["plan"][1]["O_estimate"]
            print(f"             plan 1 at {int((plans == 1).sum())} of {heads} heads, estimated errors "
                  f"{estimates.min():.2e} to {estimates.max():.2e}")


if __name__ == "__main__":
    main()
