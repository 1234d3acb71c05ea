#!/usr/bin/env python3
"""Compares the emitted code of two builds: golden.py record|compare BUILD FILE.

`record` compiles every specification of examples, test/Families and benchmarks with the tools of
BUILD, for each target and some options, and writes one line per compilation to FILE: its name, and
a hash of the emitted text, the messages and the exit code, without the paths of the checkout. `compare` does the same, prints the
compilations whose hash differs from FILE, and exits with 1 if there are any. For example, after a
change that must not change code:

    test/Support/golden.py record  ../before/build /tmp/golden.tsv
    test/Support/golden.py compare build           /tmp/golden.tsv

Code for CPUs is compared as LLVM IR for one processor, so two machines give the same hashes.
"""
import concurrent.futures
import glob
import hashlib
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CPU = ["--target=cpu", "--emit=llvm", "--mcpu=sapphirerapids"]
TARGETS = {"cuda": ["--target=cuda"], "ptx": ["--target=ptx"], "cpu": CPU}
EXAMPLE_VARIANTS = {
    "d64": ["--set", "D=64"], "d256": ["--set", "D=256"], "f16": ["--set", "T=f16"],
    "f32": ["--set", "T=f32"], "one": ["--set", "N=1"], "spend": ["--spend"],
    "low-rank": ["--low-rank"], "tvm-ffi": ["--binding=tvm-ffi"]}


def specifications():
    for folder in ("examples", "test/Families", "benchmarks/*"):
        yield from sorted(glob.glob(os.path.join(ROOT, folder, "*.moa")))


def compilations():
    """Yields (name, arguments) of each compilation."""
    for path in specifications():
        name = os.path.relpath(path, ROOT)
        for target, options in TARGETS.items():
            yield f"{name} {target}", [path, *options]
            if name.startswith("examples/"):
                for variant, more in EXAMPLE_VARIANTS.items():
                    if target != "cpu" or variant != "tvm-ffi":
                        yield f"{name} {target} {variant}", [path, *options, *more]


def digest(build, arguments):
    """Returns the hash of a compilation's standard output, messages and exit code."""
    done = subprocess.run([os.path.join(build, "bin", "moa-codegen"), *arguments, "-o", "-"],
                          capture_output=True, cwd=ROOT, check=False)
    if done.returncode < 0:
        print(f"signal {-done.returncode}: {' '.join(arguments)}", file=sys.stderr)
    sha = hashlib.sha256()
    for part in (done.stdout, done.stderr, str(done.returncode).encode()):
        part = part.replace(ROOT.encode(), b"")
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.hexdigest()


def hashes(build):
    names, arguments = zip(*compilations())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(lambda a: digest(build, a), arguments)))


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("record", "compare"):
        print(__doc__, file=sys.stderr)
        return 2
    action, build, file = arguments
    found = hashes(os.path.abspath(build))
    if action == "record":
        with open(file, "w", encoding="utf-8") as stream:
            stream.writelines(f"{name}\t{value}\n" for name, value in found.items())
        print(f"{len(found)} compilations recorded")
        return 0
    with open(file, encoding="utf-8") as stream:
        before = dict(line.rstrip("\n").split("\t") for line in stream)
    different = [name for name in {**before, **found} if before.get(name) != found.get(name)]
    for name in different:
        print("differs:", name)
    print(f"{len(found)} compilations, {len(different)} differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
