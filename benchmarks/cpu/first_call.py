"""Times the first call of a new causal attention from Python on the CPU, and calls of a small kernel:

    python3 benchmarks/cpu/first_call.py [--rounds 5] [--phases] [--without-torch]

It needs the package moa and NumPy. With PyTorch and a C++ compiler it also times FlexAttention, compiled by
Inductor, and scaled_dot_product_attention. Every first call is made in a process of its own, in which NumPy or
PyTorch is imported and the inputs exist. The clock runs from the text of the specification, or from PyTorch's
functions, until the result is there. Caches of MoA and Inductor are empty, unless a line says so. Rounds are
interleaved. Prints medians and ranges, and the median of the processor time of the process and its children, which
depends less on other work on the machine. --phases also prints the parts of MoA's first call.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = """
kernel causal[B, H, N, M; T : float = f32, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32) -> (O : T[B, H, N, D])
{
  S = mask([_, _, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
}
"""
HEADS, ROWS, WIDTH = 8, 512, 64
SCALE = WIDTH**-0.5
HEAD = " | median, s | range, s | processor time, s |\n|---|---:|---:|---:|"


def make_inputs(rows=ROWS, heads=HEADS):
    import numpy as np
    return np.random.default_rng(0).standard_normal((3, 1, heads, rows, WIDTH), np.float32)


def check(result, inputs):
    import numpy as np
    q, k, v = inputs.astype(np.float64)
    scores = q @ k.swapaxes(-1, -2) * SCALE
    scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = powers @ v / powers.sum(-1, keepdims=True)
    error = np.linalg.norm(result - wanted) / np.linalg.norm(wanted)
    assert error < 2e-6, error


def clock():
    """Returns the time and the processor time, of this process and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(usage.ru_utime + usage.ru_stime for usage in used)


def since(start):
    return [end - begin for begin, end in zip(start, clock())]


def first_moa():
    import moa
    inputs = make_inputs()
    start = clock()
    result = moa.compile(SOURCE)(*inputs, scale=SCALE)
    taken = since(start)
    check(result, inputs)
    return taken


def first_torch(kind):
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    inputs = make_inputs()
    q, k, v = (torch.from_numpy(array) for array in inputs)
    (q @ k.transpose(-1, -2)).sum().item()  # starts the threads
    start = clock()
    if kind == "flex":
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, ROWS, ROWS, device="cpu")
        result = torch.compile(flex_attention)(q, k, v, block_mask=mask)
    else:
        result = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    taken = since(start)
    check(result.numpy(), inputs)
    return taken


def phases():
    """Returns the times of the parts of the first call, by name."""
    inputs = make_inputs()
    marks = [("", clock())]

    def done(name):
        marks.append((name, clock()))

    import moa
    done("import moa")
    moa.compile
    done("the extension module and the run-time library")
    from moa import _compiler, _kernel
    _compiler.library()
    done("libmoa-c.so")
    source = _kernel._Source(SOURCE, "causal.moa", "cpu", {}, moa.Options())
    unit = source.compilation(loads=True)
    done("front end")
    code = unit.object()
    done("lowering and LLVM")
    facts = {"kernels": unit.kernels(), "manifest": unit.get("manifest"), "warnings": []}
    done("interface and manifest")
    program = _kernel._load(source, facts, code)
    kernel = _kernel.Kernel(source, program, facts["kernels"][0], facts["manifest"])
    done("loading")
    result = kernel(*inputs, scale=SCALE)
    done("first run")
    kernel(*inputs, scale=SCALE)
    done("second run, not in the sum")
    check(result, inputs)
    return {name: [b - a for a, b in zip(begin, end)] for (_, begin), (name, end) in zip(marks, marks[1:])}


def call_times():
    """Prints the time in µs of calls of a kernel of one row and one key."""
    import moa
    import numpy as np
    q, k, v = arrays = make_inputs(1, 1)
    kernel, out = moa.compile(SOURCE), np.empty_like(q)
    calls = {"kernel(q, k, v)": lambda: kernel(q, k, v, SCALE),
             "kernel(…, out=)": lambda: kernel(q, k, v, SCALE, out=out)}
    try:
        import torch
        tq, tk, tv = (torch.from_numpy(array) for array in arrays)
        calls["scaled_dot_product_attention"] = lambda: torch.nn.functional.scaled_dot_product_attention(
            tq, tk, tv, is_causal=True)
        import moa.torch as moa_torch
        operator = moa_torch.operator(kernel)
        calls["moa.torch.operator"] = lambda: operator(tq, tk, tv, SCALE)
    except ImportError:
        pass
    for name, call in calls.items():
        for _ in range(200):
            call()
        times = []
        for _ in range(100):
            start = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - start) / 100)
        print(f"| {name} | {1e6 * statistics.median(times):.2f} | {1e6 * min(times):.2f} |", flush=True)


def child(arguments, folder):
    caches = {name: os.path.join(folder, name) for name in ("MOA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    environment = {**os.environ, **caches}
    for name in ("MOA_CACHE", "PYTHONDONTWRITEBYTECODE"):  # modules of Python are compiled before, as they are for users
        environment.pop(name, None)
    return subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()[-1]


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def line(name, values):
    """Prints a row; a value is the time and the processor time."""
    taken, worked = zip(*values)
    print(f"| {name} | {statistics.median(taken):.3f} | {min(taken):.3f} .. {max(taken):.3f} "
          f"| {statistics.median(worked):.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "calls":
        return call_times()
    if options.child == "phases":
        return print(json.dumps(phases()))
    if options.child:
        return print(json.dumps(first_moa() if options.child == "moa" else first_torch(options.child)))

    torch = None if options.without_torch else version("torch")
    versions = [f"{name} {found}" for name, found in (("numpy", version("numpy")), ("torch", torch)) if found]
    print(f"{datetime.date.today()}; {processor()}, {len(os.sched_getaffinity(0))} cores, "
          f"load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, {', '.join(versions)}; "
          f"f32, {HEADS} heads, {ROWS} rows and keys, D = {WIDTH}; {options.rounds} rounds\n")
    kinds = ["moa", "moa, from the cache"]
    compiler = next((name for name in (os.environ.get("CXX"), "g++", "clang++") if name and shutil.which(name)), None)
    if torch:
        kinds += (["flex"] if compiler else []) + ["sdpa"]
    missing = [name for name, there in (("PyTorch", torch), ("a C++ compiler", compiler)) if not there]
    if missing:
        print(f"Not there: {', '.join(missing)}\n")
    print("| first call" + HEAD)
    times = {kind: [] for kind in kinds}
    child(["-c", "import numpy, moa; moa.compile; print()"], "")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for kind in kinds:  # the second kind reads the entry that the first one has written
                times[kind].append(json.loads(child([__file__, "--child", kind.split(",")[0]], folder)))
    for kind, values in times.items():
        line(kind, values)
    for name in ("moa", "numpy", *(["torch"] if torch else [])):
        command = (f"import time; start = time.perf_counter(), time.process_time(); import {name}; "
                   "print([time.perf_counter() - start[0], time.process_time() - start[1]])")
        line(f"import {name}", [json.loads(child(["-c", command], "")) for _ in range(options.rounds)])
    if options.phases:
        print("\n| part of the first call" + HEAD)
        found = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                found.append(json.loads(child([__file__, "--child", "phases"], folder)))
        for name in found[0]:
            line(name, [parts[name] for parts in found])
        for parts in found:
            del parts["second run, not in the sum"]
        line("sum", [[sum(part) for part in zip(*parts.values())] for parts in found])
    print("\n| call of a small kernel | median, µs | smallest, µs |\n|---|---:|---:|", flush=True)
    subprocess.run([sys.executable, __file__, "--child", "calls"], check=True)


if __name__ == "__main__":
    main()
