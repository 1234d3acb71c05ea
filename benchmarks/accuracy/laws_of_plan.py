"""What laws gain in the plan that the compiler has on GPUs: scores in 8-bit integers with one scale for all rows and one for
all keys, weights and values in e4m3, the mean key and the mean value taken off. Beside it: a rotation of queries and keys,
and scales that are powers of two.

    python3 benchmarks/accuracy/laws_of_plan.py [--N 2048] [--D 128]

Prints relative L2 errors as Markdown: of the plan, of its scores alone, and of both with each further law.
"""
import argparse

import families
import formats
from reference import Choice

PLAN = Choice("int8 head, e4m3 PV", "int8", "e4m3", "e4m3", "head", "channel")
SCORES = Choice("int8 head QK", "int8", "f16", "f16", "head")
OWN = ("kmean", "vmean")
MORE = {"none": (), "rotation": ("rotate",), "powers of two": ("pow2",)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--N", type=int, default=2048)
    parser.add_argument("--D", type=int, default=128)
    options = parser.parse_args()
    rows = []
    for name in families.FAMILIES:
        head = formats.Head(name, options.N, options.D, seed=0, kind="bf16")
        cells = [formats.short(head.errors(choice, OWN + laws)[0]) for choice in (PLAN, SCORES) for laws in MORE.values()]
        rows.append([name] + cells)
    formats.markdown(["family"] + [f"{choice}, {law}" for choice in ("plan", "scores") for law in MORE], rows)


if __name__ == "__main__":
    main()
