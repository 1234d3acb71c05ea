"""Every number that README.md and docs/ claim, next to what is measured now: see claims.sh.

A claim quotes its document, so that it fails when the text changes and this list does not.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import moa_testing as mt
import promise

ROOT = mt.SOURCE_ROOT
CLAIMS = []


class LeftOut(Exception):
    """Why a claim cannot be measured here."""


def claim(name, document, quote, claimed):
    """The function returns what was measured as text, and whether it agrees."""
    def add(function):
        CLAIMS.append((name, document, quote, claimed, function))
        return function
    return add


def path(*parts):
    return os.path.join(ROOT, *parts)


def read(name):
    with open(path(name), encoding="utf-8") as file:
        return file.read()


def run(name, *arguments, **options):
    """The output of a tool; an error is the claim's."""
    if not os.path.exists(os.path.join(mt.TOOLS, name)):
        raise LeftOut(f"{name} is not built")
    done = mt.run_tool(name, *arguments, **options)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().split("\n")[0])
    return done.stdout + done.stderr


def words():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return set(file.read().split())


def seconds(function, rounds=3):
    """The median of some runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# Counts

@claim("families", "README.md", "errors of a hundred forms of attention", "a hundred")
def families():
    count = len([n for n in os.listdir(path("test", "Families")) if n.endswith(".moa")])
    return f"{count} specifications", count >= 100


@claim("readme", "CONTRIBUTING.md", "The README has at most 150 lines", "at most 150")
def readme():
    count = len(read("README.md").splitlines())
    return f"{count} lines", count <= 150


@claim("file-lines", "CONTRIBUTING.md", "Files stay under 1,000 lines", "under 1,000")
def file_lines():
    longest = 0, ""
    for folder in ("lib", "dialects", "include", "tools"):
        for base, _, names in os.walk(path(folder)):
            for name in names:
                if name.endswith((".cpp", ".h", ".c", ".td")):
                    with open(os.path.join(base, name), encoding="utf-8") as file:
                        longest = max(longest, (sum(1 for _ in file), os.path.relpath(os.path.join(base, name), ROOT)))
    return f"{longest[0]} lines ({longest[1]})", longest[0] < 1000


# Building and testing

@claim("build", "README.md", "The first `./build.sh test` takes some 50 minutes", "at most 22 minutes on two cores before the tests")
def build():
    """The time of all commands of the last full build, by its log."""
    log = os.path.join(mt.BINARY_ROOT, ".ninja_log")
    if not os.path.exists(log) or not os.path.exists(os.path.join(mt.BINARY_ROOT, "compile_commands.json")):
        raise LeftOut("there is no build")
    with open(os.path.join(mt.BINARY_ROOT, "compile_commands.json"), encoding="utf-8") as file:
        files = len(json.load(file))
    spent, objects = {}, set()
    with open(log, encoding="utf-8") as file:
        for line in file:
            fields = line.split("\t")
            if len(fields) == 5:
                # Outputs of one command have its hash.
                spent[fields[4]] = int(fields[1]) - int(fields[0])
                objects |= {fields[3]} if fields[3].endswith(".o") else set()
    minutes = sum(spent.values()) / 60000 / 2
    if len(objects) < 0.9 * files or minutes < 5:
        raise LeftOut(f"the build is partial, or came from a compiler cache: {len(objects)} of {files} files, {minutes:.1f} minutes")
    return f"{minutes:.0f} minutes on two cores", minutes <= 22


@claim("test", "README.md", "the tests alone 30", "27 to 33 minutes on two cores")
def test():
    results = os.path.join(mt.BINARY_ROOT, "test-results.json")
    if not os.path.exists(results):
        raise LeftOut("./build.sh test has not run")
    with open(results, encoding="utf-8") as file:
        found = json.load(file)
    minutes = sum(each["elapsed"] or 0 for each in found["tests"]) / 60 / 2
    return f"{minutes:.0f} minutes on two cores", 27 <= minutes <= 33


# Accuracy

def check_line(*arguments):
    """The relative L2 error that moa-run --check prints."""
    text = run("moa-run", *arguments, "--check")
    return float(re.search(r"relative L2 error (\S+)", text)[1])


SDPA = path("examples", "sdpa.moa")
RANDOM = ("--random", 1, "B=1", "H=4", "N=1024", "M=1024", "scale=0.088")


@claim("bounds", "docs/Tools.md", "2e-6 for f32, 4e-4 for f16, 3e-3 for bf16", "errors below 2e-6, 4e-4, 3e-3")
def bounds():
    found = {kind: check_line(SDPA, "--set", f"T={kind}", *RANDOM) for kind in ("f32", "f16", "bf16")}
    return ", ".join(f"{kind} {error:.1e}" for kind, error in found.items()), \
        found["f32"] < 2e-6 and found["f16"] < 4e-4 and found["bf16"] < 3e-3


@claim("bf16-norm", "docs/Accuracy/Bounds.md", "bf16 has 2.4·10⁻³, as measured", "about 2.4e-3")
def bf16_norm():
    error = check_line(SDPA, *RANDOM)
    return f"{error:.2e}", 1.2e-3 < error <= 2.5e-3


@claim("bits-norm", "docs/Language.md", "attention in 8 bits is off by 4 to 5 percent of a head of normal inputs", "4 to 5 %")
def bits_norm():
    """Errors of heads of normal numbers that take 8 bits."""
    import delivered
    import numpy as np
    kernel = mt.Kernel(delivered.SPECIFICATION % "6e-2 relative sampled", flags=("--decisions",))
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 8, 1024, 16)).astype(np.float32)
    made = kernel.run({"Q": q, "K": k, "V": v, "scale": 0.25}, {"O": q.shape, "O_plan": (8,), "O_estimate": (8, 1)})
    if (made["O_plan"] != 1).any():
        raise RuntimeError(f"plans {list(made['O_plan'])}")
    errors = [delivered.error_of(o.astype(np.float64), *delivered.exact(*arrays), "relative")
              for o, *arrays in zip(made["O"], q, k, v)]
    return f"{100 * min(errors):.1f} to {100 * max(errors):.1f} %", 0.035 <= min(errors) and max(errors) <= 0.05


@claim("coverage", "docs/Accuracy/Bounds.md", "512 rows, 3.5 % of 1,886 heads", "3.5 % of heads above the estimate, nominal 5 %")
def coverage():
    """Fewer heads than the claim has: it holds unless 5 % is refuted with one in a million."""
    import coverage as study
    import delivered
    found = study.ratios(delivered.STUDIED, 20, 512)
    ratios = [r for each in found.values() for r in each]
    above = sum(r > 1.005 for r in ratios)
    return f"{100 * above / len(ratios):.1f} % of {len(ratios)} heads", above <= promise.most_above(len(ratios))


# Time of the compiler

def timing(*arguments):
    with tempfile.TemporaryDirectory() as directory:
        text = run("moa-codegen", *arguments, "-o", os.path.join(directory, "out"), "--timing")
    return {stage: float(ms) for ms, stage in re.findall(r"([\d.]+) ms  (\w+)", text)}


@claim("plans-compile", "docs/Accuracy/Guide.md", "it takes ten times as long to compile", "some 10 times")
def plans_compile():
    spec = (SDPA, "--set", "T=f32", "--set", "D=64", "--within", "O=1e-2,relative,sampled")
    plain, spend, few = (min(timing(*spec, *flags)["total"] for _ in range(2)) for flags in ((), ("--spend=256",), ("--low-rank",)))
    return f"{spend / plain:.0f} times with --spend=256, {few / plain:.0f} with --low-rank", 4 <= max(spend, few) / plain <= 25


@claim("ptx-time", "docs/Architecture.md", "so that PTX takes half a second", "half a second")
def ptx_time():
    total = min(timing(SDPA, "--target=ptx")["total"] for _ in range(3)) / 1000
    return f"{total:.2f} s", total < 1


@claim("validation", "docs/Architecture.md", "a twentieth of the time to a `.cu` file", "a twentieth")
def validation():
    shares = []
    for name in ("sdpa", "gqa_causal", "softcap", "alibi", "sliding_window"):
        found = timing(path("examples", name + ".moa"), "--target=cuda")
        shares.append(found["validate"] / found["total"])
    share = statistics.median(shares)
    return f"1/{1 / share:.0f}", 1 / 40 <= share <= 1 / 10


@claim("device-time", "docs/Tools.md", "sizes of a few hundred take about a second", "about a second")
def device_time():
    words_ = ("--target=device", "--random", 1, "B=1", "H=2", "G=1", "N=150", "M=200", "scale=0.088")
    taken = seconds(lambda: run("moa-run", path("examples", "gqa_causal.moa"), *words_))
    return f"{taken:.1f} s", taken < 4


# Time of kernels on this CPU

def bench(figure):
    script = path("benchmarks", "cpu", "run.sh")
    if not os.path.exists(os.path.join(mt.TOOLS, "moa-bench-cpu")):
        raise LeftOut("moa-bench-cpu is not built (it needs OpenBLAS)")
    done = subprocess.run([script, f"--figure={figure}", "--rounds=5"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip())
    return done.stdout


@claim("cpu-unfused", "benchmarks/cpu/NOTES.md", "hence the bars 1.2 × the rival and 55 % of the peak", "1.2 × sgemm, softmax, sgemm")
def cpu_unfused():
    ratios = [float(r) for r in re.findall(r"over .*?([\d.]+) \(quartiles", bench("attention"))]
    if not ratios:
        raise RuntimeError("the benchmark printed no ratio")
    return ", ".join(f"{r:.2f}" for r in ratios), min(ratios) >= 1.2


def bf16_ratio():
    """How many times as fast attention of bf16 is with this processor's products of bf16 as f32 is."""
    have = words()
    if not ({"amx_tile", "amx_bf16"} <= have or {"AuthenticAMD", "avx512_bf16"} <= have):
        raise LeftOut("this processor has no products of bf16 that are faster than f32")
    times = {}
    for kind in ("f32", "bf16"):
        text = run("moa-run", SDPA, "--set", f"T={kind}", "--random", 1, "B=1", "H=8", "N=4096", "M=4096", "scale=0.088", "--repeat=5")
        times[kind] = float(re.search(r"median ([\d.]+) ms", text)[1])
    return times["f32"] / times["bf16"]


@claim("bf16-dots", "benchmarks/cpu/NOTES.md", "| sdpa (1, 8, 4096, 128) | 52.7 | 53.4 | 19.3 | 2.73 |", "2.4 to 2.7 with AMX, 1.7 on Zen 5")
def bf16_dots():
    ratio = bf16_ratio()
    return f"{ratio:.2f}", ratio >= (2.2 if "amx_bf16" in words() else 1.6)


# A GPU

def committed():
    lines = [line.split("\t") for line in read("benchmarks/gpu/FIGURES.tsv").rstrip("\n").split("\n")[1:]]
    return {line[0]: line[1:] for line in lines}


def from_table(name, smallest, largest):
    date, machine, low, high, _ = committed()[name]
    return f"{low} to {high} ({machine}, {date}, committed)", (low, high) == (smallest, largest)


for name_, document_, quote_, low_, high_ in (
        ("cudnn-8192", "README.md", "at 8,192 keys runs at 1.05 to 1.20 times cuDNN's speed", "1.05", "1.20"),
        ("cudnn-short", "README.md", "slower than cuDNN, at 0.50 to 0.98 of its speed", "0.50", "0.98"),
        ("fa4-8192", "README.md", "our kernels run at 0.90 to 0.98 of its speed", "0.90", "0.98"),
        ("cudnn-decode", "README.md", "query row at 0.79 to 0.94", "0.79", "0.94"),
        ("bits-32768", "docs/Accuracy/Guide.md", "1.43 to 1.50 times the speed at 32,768 keys", "1.43", "1.50")):
    claim(name_, document_, quote_, f"{low_} to {high_}")(
        lambda name=name_, low=low_, high=high_: from_table(name, low, high))


def fresh_gpu():
    """The benchmark of the GPU as it prints it, where there is one."""
    try:
        import torch
        there = torch.cuda.is_available()
    except ImportError:
        there = False
    if not there:
        print("\nNo GPU answers here: its figures are those of the committed table.")
        return
    with tempfile.TemporaryDirectory() as directory:
        script = path("benchmarks", "gpu", "run.sh")
        print("\nA fresh run of benchmarks/gpu/run.sh:", flush=True)
        subprocess.run([script, "emit", directory], check=True)
        subprocess.run([script, "run", directory], check=True)


def flat(text):
    return re.sub(r"\s+", " ", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    chosen = [c for c in CLAIMS if not options.names or c[0] in options.names]
    unknown = set(options.names) - {c[0] for c in CLAIMS}
    if unknown:
        parser.error(f"there is no claim {', '.join(sorted(unknown))}; --list names them")
    if options.list:
        print("\n".join(f"{name}: {document}, '{flat(quote)}'" for name, document, quote, _, _ in chosen))
        return 0
    differs = [f"{document} no longer says '{flat(quote)}' ({name})" for name, document, quote, _, _ in chosen
               if flat(quote) not in flat(read(document))]
    print("\n".join(differs) or f"{len(chosen)} claims stand in their documents")
    if options.check:
        return bool(differs)
    print("\n| claim | document | claimed | measured | |\n|---|---|---|---|---|", flush=True)
    for name, document, _, claimed, function in chosen:
        try:
            measured, agrees = function()
            verdict = "ok" if agrees else "differs"
        except LeftOut as reason:
            measured, verdict = "", f"left out: {reason}"
        except Exception as error:  # a claim that cannot be measured differs
            measured, verdict = f"{type(error).__name__}: {error}", "differs"
        if verdict == "differs":
            differs.append(name)
        print(f"| {name} | {document} | {claimed} | {measured} | {verdict} |", flush=True)
    if not options.names or any("gpu" in n or n in committed() for n in options.names):
        fresh_gpu()
    return bool(differs)


if __name__ == "__main__":
    sys.exit(main())
