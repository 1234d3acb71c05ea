"""All families in all element types, as a table.

    table.py emit DIRECTORY          writes the kernels for a GPU, in both texts
    table.py run TARGET FILE         runs the families on cpu, device, cuda or ptx, and
                                     writes a section; MOA_GPU_KERNELS has the kernels
    table.py row TARGET FAMILY       runs one
    table.py join RESULTS FILE...    puts sections into the page in place of older ones

run.sh drives it. The exit code is not 0 if something fails that is not expected to.
"""
import concurrent.futures
import datetime
import json
import os
import platform
import re
import subprocess
import sys

import numpy as np

import gpu
import moa_testing as mt
import runner

KINDS = ("f64", "f32", "bf16")
HEAD = """# Families of attention: measured errors

The tables compare every specification of this folder with its meaning in NumPy and float64
(Support/).
A cell has the relative L2 error that comes nearest to its bound, over all sizes.
Before each run, outputs are full of NaN, and so are keys and values that no query sees.
The largest size also runs with other strides.
`run.sh` writes this page.
"""


def answer(*words):
    """The first line that a program prints, if it is there."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ""
    return (done.stdout.strip().splitlines() or [""])[0]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else platform.machine()


def versions(target):
    """Date, machine and versions."""
    words = [datetime.date.today().isoformat()]
    if target in ("cuda", "ptx"):
        words.append(answer("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"))
        release = subprocess.run(["nvcc", "--version"], stdout=subprocess.PIPE, text=True).stdout
        words.append("CUDA " + re.search(r"release ([\d.]+)", release).group(1))
    else:
        words.append(processor())
        words.append(answer(os.path.join(mt.TOOLS, "moa-codegen"), "--version"))
    commit = answer("git", "-C", mt.SOURCE_ROOT, "rev-parse", "--short", "HEAD")
    words += [f"NumPy {np.__version__}", os.environ.get("MOA_COMMIT") or commit]
    return ", ".join(w for w in words if w)


# Kernels for a GPU.


def emit(directory):
    """What cannot be written is there as an error, for the table."""
    os.makedirs(directory, exist_ok=True)
    os.environ["MOA_GPU_KERNELS"] = directory
    failed = count = 0
    for family in runner.FAMILIES.values():
        for kind in KINDS:
            settings, base = {"T": kind, **family.settings}, runner.stored(family, kind)
            if os.path.exists(base + ".error"):
                os.remove(base + ".error")
            try:
                gpu.emit(family.spec, base, settings)
                emit_ptx(family, base, settings)
                count += 1
            except RuntimeError as error:
                print(error)
                with open(base + ".error", "w", encoding="utf-8") as file:
                    file.write(str(error).replace(mt.SOURCE_ROOT + os.sep, ""))
                record = runner.Record(family, kind, "cuda", {})
                record.problems.append(str(error))
                failed += not record.holds()
    print(f"{count} kernels in {directory}")
    return failed


def emit_ptx(family, base, settings):
    """Only the launcher in C stays, which holds the PTX."""
    sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
    made = mt.tool("moa-codegen", family.spec, *sets, "--target=ptx", "-o", base + ".ptx")
    if made.returncode:
        raise RuntimeError(f"moa-codegen {family.spec}: {made.stderr}")
    os.remove(base + ".ptx")
    os.remove(base + ".json")


# Tables.


def cores(family, target, kind):
    """Whether a kernel's products run on the tensor cores."""
    if target not in ("cuda", "ptx"):
        return ""
    try:
        with open(runner.stored(family, kind) + ".cu", encoding="utf-8") as file:
            return "tensor cores" if "wgmma" in file.read() else "threads"
    except OSError:
        return "-"


def cell(records):
    """The error of one element type that comes nearest to its bound, or that some fail."""
    wrong = [r for r in records if r.problems]
    if not wrong:
        return f"{max(records, key=lambda r: r.error / r.bound).error:.1e}"
    return "expected failure" if all(r.holds() for r in wrong) else "**fails**"


def row(family, target):
    """One line of the table, the lines of what is wrong, and how much of it is not expected."""
    cells, remarks = [], []
    every = []
    for kind in KINDS:
        records = list(runner.run(family, kind, target))
        every += records
        cells.append(cell(records))
        wrong = [r for r in records if r.problems or not r.holds()]
        remarks += [f"- {r.line()}" for r in (wrong if len(wrong) < 4 else wrong[:3])]
    largest = max(runner.sizes_of(family, target), key=lambda s: np.prod(list(s.values())))
    sizes = " ".join(f"{k}={v}" for k, v in largest.items())
    count = len(runner.sizes_of(family, target))
    wide = max((r.bound / mt.BOUNDS[r.kind] for r in every if r.kind == "f32"), default=1)
    words = [family.name, f"{count}, up to {sizes}", *cells, f"{wide:.1f}"]
    if target in ("cuda", "ptx"):
        words.append(cores(family, target, "bf16"))
    return "| " + " | ".join(words) + " |", remarks, sum(not r.holds() for r in every)


def row_apart(target, name):
    """The row, from a process of its own: what ends it ends no other."""
    try:
        done = subprocess.run([sys.executable, __file__, "row", target, name], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
        if done.returncode == 0:
            return json.loads(done.stdout)
        what = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        what = "900 s were not enough"
    return f"| {name} | | **fails** |", [f"- {name} {target}: {what}"], 1


def run(target, path):
    head = ["family", "sizes", *KINDS, "bound / 2e-6 in f32"]
    if target in ("cuda", "ptx"):
        head.append("bf16 on")
    lines, remarks, failed = [], [], 0
    # A GPU has room for several.
    at_once = 4 if target in ("cuda", "ptx") else 1
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for line, more, unexpected in pool.map(lambda name: row_apart(target, name), sorted(runner.FAMILIES)):
            lines.append(line)
            remarks += more
            failed += unexpected
            print(line, *more, sep="\n", flush=True)
    bounds = ", ".join(f"{k} {mt.BOUNDS[k]:g}" for k in KINDS)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"## {target}\n\n{versions(target)}.\n{len(lines)} families, {failed} runs fail.\n"
                   f"Bounds: {bounds}.\n"
                   "They are wider if scores are large or more is rounded; Support/ has the reasons.\n\n")
        file.write(f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
        file.write("\n".join(lines) + "\n")
        if remarks:
            file.write("\n" + "\n".join(remarks) + "\n")
    print(f"{len(lines)} families on {target}, {failed} runs fail")
    return failed


def join(page, *paths):
    """The page with these sections new, the others as they were."""
    text = HEAD
    if os.path.exists(page):
        with open(page, encoding="utf-8") as file:
            text = file.read()
    sections = {}
    for path in [None, *paths]:
        if path:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        for part in re.split(r"^(?=## )", text, flags=re.M):
            if part.startswith("## "):
                sections[part.split()[1]] = part.strip() + "\n"
    order = [t for t in ("cpu", "device", "cuda", "ptx") if t in sections]
    with open(page, "w", encoding="utf-8") as file:
        file.write("\n".join([HEAD] + [sections[t] for t in order]))
    return 0


def show(target, name):
    print(json.dumps(row(runner.FAMILIES[name], target)))
    return 0


if __name__ == "__main__":
    sys.exit(min({"emit": emit, "run": run, "row": show, "join": join}[sys.argv[1]](*sys.argv[2:]), 1))
