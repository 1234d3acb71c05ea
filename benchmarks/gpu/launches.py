"""What each launch of a call that may spend accuracy adds to its time, and what finding out where it may takes of the whole:

    moa-codegen benchmarks/gpu/precision.moa --target=cuda --spend=256 --pilot -o DIRECTORY/precision.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/precision.cu -o DIRECTORY/precision.so -lcuda
    python3 benchmarks/gpu/launches.py DIRECTORY/precision.so [--kernel within_6] [--shape 2,16,8192,128] [--families normal,sinks]

The text stands beside the object and says by its kernels' parameters what a launch is for:

    sums          writes the result
    rounding      writes an array of which sums read tiles
    scales        writes numbers, not decisions, that one of these reads
    finding out   everything else: a pilot, a sample, decisions, copies of rows and cleared counters

A launch with work of two kinds is of the first one above. Launches of a call overlap, so that times in which they run say
little: added is how much later the call ends by a launch than by those in front of it, in µs, the median of calls one
behind the other (PyTorch's profiler, which makes each call some µs longer).
"""
import argparse
import ctypes
import os
import re
import statistics
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from timing import Kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "accuracy"))
import families  # noqa: E402

KINDS = ("scales", "finding out", "rounding", "sums")


class Launch:
    """A kernel of a text, by the arrays among its parameters."""

    def __init__(self, parameters):
        self.tiles, self.reads, self.writes, self.decides = set(), set(), set(), set()
        for parameter in parameters.split(","):
            name = re.search(r"(\w+)$", parameter.strip()).group(1)
            if "CUtensorMap" in parameter:
                self.tiles.add(name.removesuffix("_tiles"))
            elif "*" in parameter:
                (self.reads if "const " in parameter else self.writes).add(name)
                if "int32_t" in parameter:
                    self.decides.add(name)


def read_launches(text, kernel):
    """The launches of a kernel of a specification and the kind of each."""
    found = re.findall(r"^__global__ void __launch_bounds__\([^)]*\) (" + kernel + r"_\d+)\((.*?)\) \{$", text, re.M | re.S)
    launches = {name: Launch(parameters) for name, parameters in found}
    entry = re.search(r'extern "C" int32_t ' + kernel + r"\(([^)]*)\)", text)
    if not launches or not entry:
        sys.exit(f"the text has no kernel {kernel}: give one of precision.moa with --kernel")
    result = re.findall(r"const DLTensor \*(\w+)", entry.group(1))[-1]
    kinds = {name: "sums" for name, one in launches.items() if result in one.tiles | one.writes}
    tiles = set().union(*(launches[name].tiles for name in kinds))
    kinds |= {name: "rounding" for name, one in launches.items() if name not in kinds and one.writes & tiles}
    used = set().union(*(launches[name].reads | launches[name].tiles for name in kinds))
    for name, one in launches.items():
        if name not in kinds:
            kinds[name] = "scales" if (one.writes - one.decides) & used else "finding out"
        elif kinds[name] == "sums":
            one.writes.add(result)
    return launches, kinds


def measure(call, calls):
    """The names of a call's launches in the order in which they start, and what each adds, in µs."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as record:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    found = ((event, re.search(r"(\w+)\(", event.name)) for event in record.events()
             if event.device_type == torch.autograd.DeviceType.CUDA)
    events = sorted((event.time_range.start, event.time_range.end, name.group(1)) for event, name in found if name)
    count = len(events) // calls
    names = [event[2] for event in events[:count]]
    added = [[] for _ in names]
    for first in range(0, count * calls, count):
        if [event[2] for event in events[first:first + count]] != names:
            sys.exit("launches of the calls are in different orders: run this again")
        end = events[first][0]
        for place, event in enumerate(events[first:first + count]):
            added[place].append(max(event[1] - end, 0))
            end = max(end, event[1])
    return names, [statistics.median(times) for times in added]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object")
    parser.add_argument("--kernel", default="within_6")
    parser.add_argument("--families", default="normal,sinks", help="of benchmarks/accuracy")
    parser.add_argument("--shape", action="append", help="B,H,N,D; may be given again (default 2,16,8192,128)")
    parser.add_argument("--calls", type=int, default=15)
    options = parser.parse_args()
    with open(os.path.splitext(options.object)[0] + ".cu", encoding="utf-8") as file:
        launches, kinds = read_launches(file.read(), options.kernel)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for shape in options.shape or ["2,16,8192,128"]:
        b, h, n, d = map(int, shape.split(","))
        for family in options.families.split(","):
            # The heads of one entry, which the others repeat in another order.
            arrays = families.Heads(family, 1, min(h, 4), n, d=d).arrays()
            inputs = [torch.from_numpy(x).cuda().repeat(b, h // x.shape[1], 1, 1).bfloat16().contiguous() for x in arrays]
            output = torch.empty_like(inputs[2])
            names, added = measure(Kernel(options.object, options.kernel, [*inputs, ctypes.c_float(d ** -0.5)], output), options.calls)
            whole = sum(added)
            print(f"({b}, {h}, {n}, {d}) {family} {options.kernel}: {whole:.0f} us")
            for name, time in zip(names, added):
                print(f"  {name:14s} {kinds[name]:12s} {time:8.1f}  {', '.join(sorted(launches[name].writes))}")
            of_kind = {kind: sum(time for name, time in zip(names, added) if kinds[name] == kind) for kind in KINDS}
            print("  " + ", ".join(f"{kind} {time:.0f} us ({100 * time / whole:.1f} %)" for kind, time in of_kind.items()), flush=True)


if __name__ == "__main__":
    main()
