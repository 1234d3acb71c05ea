#!/usr/bin/env python3
"""What the validation of a compilation costs: the share of the stage `validate` in the time to
CUDA C++ and to an object, over all specifications of examples/ and test/Families.

    benchmarks/cpu/validation.py [--runs 5] [--build build] [--target cuda|cpu]

Shares are medians of the runs of one specification. A specification that a target does not take is
counted and left out.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def times(build, target, spec, output):
    """Milliseconds by stage, or None."""
    command = [build / "bin/moa-codegen", spec, f"--target={target}", "-o", output, "--timing"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return None
    return {stage: float(ms) for ms, stage in re.findall(r"([\d.]+) ms  (\w+)", run.stderr)}


def measure(build, target, runs, directory):
    rows, refused = [], []
    for spec in sorted([*ROOT.glob("examples/*.moa"), *ROOT.glob("test/Families/*.moa")]):
        found = [times(build, target, spec, pathlib.Path(directory) / "out") for _ in range(runs)]
        if None in found:
            refused.append(spec.stem)
            continue
        share = statistics.median(t["validate"] / t["total"] for t in found)
        rows.append((share, statistics.median(t["validate"] for t in found),
                     statistics.median(t["total"] for t in found), spec.stem))
    return sorted(rows), refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--target", choices=["cuda", "cpu"])
    options = parser.parse_args()
    worst = 0
    for target in [options.target] if options.target else ["cuda", "cpu"]:
        with tempfile.TemporaryDirectory() as directory:
            rows, refused = measure(options.build, target, options.runs, directory)
        shares = [row[0] for row in rows]
        print(f"{target}: {len(rows)} specifications, {len(refused)} not taken; share of validation: "
              f"median {statistics.median(shares):.1%}, largest {max(shares):.1%}")
        print("| specification | validation, ms | total, ms | share |\n|---|---|---|---|")
        for share, validate, total, name in reversed(rows[-8:]):
            print(f"| {name} | {validate:.1f} | {total:.1f} | {share:.1%} |")
        worst = max(worst, max(shares))
    return worst > 0.2


if __name__ == "__main__":
    sys.exit(main())
