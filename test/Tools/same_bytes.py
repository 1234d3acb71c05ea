# RUN: %python %s
"""Two runs of the compiler write equal bytes, wherever memory lies and whatever freed memory holds.

same_bytes.py [--times=N] [--all]: every run is a process of its own, with random addresses, another fill of freed
memory (glibc's MALLOC_PERTURB_) and another threshold between heap and mapped memory. By default three runs of the
texts that have had most kinds of nests, for a GPU, and the normal forms and the report of some; with --all every
example and family, for every target. `same_bytes.py --all --times=20` takes some minutes.
"""
import argparse
import glob
import hashlib
import os
import subprocess
import sys

ROOT = os.environ.get("MOA_SOURCE_ROOT", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
# Sums with and without weights, states beside others, lists of tiles, tables, cascades, integers.
SOME = ["linear", "gated", "feature_map_sums", "retention", "document", "tree_ancestors", "hard", "weights_returned",
        "quantised_cache", "sink", "talking_heads", "squared_distance"]
TARGETS = {
    "cuda": ["--target=cuda", "-o", "-"],
    "ptx": ["--target=ptx", "-o", "-"],
    "lifted": ["--emit=lifted", "-o", "-"],
    "report": ["--report", "--explain", "-o", os.devnull],
}


def specifications(everything):
    examples = sorted(glob.glob(os.path.join(ROOT, "examples/*.moa")))
    families = sorted(glob.glob(os.path.join(ROOT, "test/Families/*.moa")))
    if everything:
        return [(path, list(TARGETS)) for path in examples + families]
    chosen = [path for path in families if os.path.basename(path)[:-4] in SOME]
    assert len(chosen) == len(SOME), "a family has another name now"
    return ([(path, ["cuda"]) for path in examples + chosen] +
            [(path, ["lifted", "report"]) for path in chosen[::4]] + [(chosen[0], ["ptx"])])


def emit(path, words, run):
    memory = {"MALLOC_PERTURB_": str(1 + 37 * run % 255), "MALLOC_MMAP_THRESHOLD_": str(1 << (14 + run % 8))}
    made = subprocess.run(["moa-codegen", path, *words], env={**os.environ, **memory}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return made.stdout + made.stderr + str(made.returncode).encode()


def compare(path, target, times):
    """The first two runs that differ, as a message; nothing where all are equal."""
    first = emit(path, TARGETS[target], 0)
    for run in range(1, times):
        other = emit(path, TARGETS[target], run)
        if hashlib.sha256(other).digest() == hashlib.sha256(first).digest():
            continue
        lines = zip(first.decode().splitlines(), other.decode().splitlines())
        for number, (x, y) in enumerate(lines, 1):
            if x != y:
                return f"{path} for {target}: runs 0 and {run} differ in line {number}:\n  {x}\n  {y}"
        return f"{path} for {target}: runs 0 and {run} differ in length"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    texts, differences = 0, []
    for path, targets in specifications(options.all):
        for target in targets:
            texts += 1
            found = compare(path, target, options.times)
            if found:
                differences.append(found)
                print(found, flush=True)
    print(f"{texts} texts, {options.times} times each: {len(differences)} differ")
    assert texts > 0
    return len(differences) != 0


if __name__ == "__main__":
    sys.exit(main())
