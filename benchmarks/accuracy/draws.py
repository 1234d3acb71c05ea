"""How often a sample's estimate is below the error, for several ways to draw its rows: a model in NumPy.

    python3 benchmarks/accuracy/draws.py [--rows 2048] [--heads 12] [--draws 400]

Errors of all rows by `reference.simulate` (8-bit scores by row, sums in e4m3, the mean key taken off), for the families of coverage.py; of
each head many samples as Def 31 of docs/Errors.md has them, of which one row of 32 parts is the longest and one of the others is drawn
evenly, or by its size. Nothing here runs a kernel of the compiler. `huge_key`, which no plan of 8 bits takes, is left out.
"""
import argparse

import numpy as np

import coverage
import delivered
import reference

PARTS = 32
STUDENT = 1.6955        # 95 % with 31 degrees of freedom
CHOICE = reference.Choice("8 bits", "int8", "e4m3", "e4m3", per="row")


def rows_of(kind, n, seed):
    """Of each row |error|², |result|², |q|²."""
    q, k, v = (np.asarray(a, np.float32) for a in coverage.drawn(kind, n, seed))
    exact = reference.exact_rows(q, k, v, coverage.SCALE)[0]
    found = reference.simulate(q, k, v, coverage.SCALE, CHOICE, laws=("kmean",))
    return np.sum((found - exact) ** 2, 1), np.sum(exact ** 2, 1), np.sum(q.astype(float) ** 2, 1)


def chances(squares, longest, tries, most):
    """Of each row of a part the probability to be picked."""
    others = np.arange(len(squares)) != longest
    count = len(squares) - 1
    if not tries:
        return others / count
    taken = np.minimum(1, squares / (most * squares[others].mean())) * others
    picks = 1 - (1 - taken.sum() / count) ** tries
    return picks * taken / taken.sum() + (1 - picks) * others / count


def ratios(error, size, squares, generator, draws, tries, most):
    """error / estimate of many samples of one head."""
    n = len(error)
    sums, picked, stands = np.zeros(2), [], []
    for part in range(PARTS):
        low, high = part * n // PARTS, (part + 1) * n // PARTS
        longest = int(np.argmax(squares[low:high]))
        sums += error[low + longest], size[low + longest]
        p = chances(squares[low:high], longest, tries, most)
        rows = generator.choice(high - low, size=draws, p=p)
        picked.append(low + rows)
        stands.append(1 / p[rows])
    picked, stands = np.stack(picked, 1), np.stack(stands, 1)
    e, y = sums[0] + np.sum(stands * error[picked], 1), sums[1] + np.sum(stands * size[picked], 1)
    off = stands * (error[picked] - (e / y)[:, None] * size[picked])
    square = np.sum(off ** 2, 1)
    skewness = np.maximum(np.mean(off ** 3, 1) / np.maximum(square / PARTS, 1e-300) ** 1.5, 0)
    margin = (STUDENT + skewness * (1 + 2 * STUDENT ** 2) / (6 * PARTS ** 0.5)) * np.sqrt(PARTS / (PARTS - 1) * square)
    return np.sqrt(error.sum() / size.sum() / ((e + margin) / y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    ways = {"evenly": (0, 0), "by size, 16": (64, 16), "by size, 32": (64, 32), "by size, 64": (64, 64)}
    generator = np.random.default_rng(1)
    print(f"{options.rows} rows, {options.heads} heads: above the estimate, the largest of 1,000 error / estimate, the median of estimate / error\n")
    print("| family | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
    all_of = {way: [] for way in ways}
    for kind in (*delivered.STUDIED, *coverage.CHANGED):
        if kind == "huge_key":
            continue
        heads = [rows_of(kind, options.rows, seed) for seed in range(options.heads)]
        cells = []
        for way, how in ways.items():
            found = np.concatenate([ratios(*head, generator, options.draws, *how) for head in heads])
            all_of[way].append(np.mean(found > 1.005))
            cells.append(f"{100 * all_of[way][-1]:.1f} %, {np.quantile(found, .999):.2f}, {1 / np.median(found):.2f}")
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    print("| mean | " + " | ".join(f"{100 * np.mean(shares):.1f} %" for shares in all_of.values()) + " |")


if __name__ == "__main__":
    main()
