"""How often a sample's estimate is below the error, for several ways to draw its rows: a model in NumPy.

    python3 benchmarks/accuracy/draws.py [--rows 2048] [--heads 12] [--draws 400]

Errors of all rows by `reference.simulate` (8-bit scores by row, sums in e4m3, the mean key taken off), for the families of coverage.py; of
each head many samples of 64 rows as Def 31 of docs/Accuracy/Bounds.md has them: the longest row of each of some groups, and of each of the
parts one of the others, drawn evenly or by its size. Nothing here runs a kernel of the compiler. `huge_key`, which no plan of 8 bits
takes, is left out.
"""
import argparse

import numpy as np

import coverage
import delivered
import reference

STUDENT = {32: 1.6955, 48: 1.6779, 56: 1.6730}        # 95 % with one degree of freedom less
TRIES, MOST = 64, 32
CHOICE = reference.Choice("8 bits", "int8", "e4m3", "e4m3", per="row")


def rows_of(kind, n, seed):
    """Of each row |error|², |result|², |q|²."""
    q, k, v = (np.asarray(a, np.float32) for a in coverage.drawn(kind, n, seed))
    exact = reference.exact_rows(q, k, v, coverage.SCALE)[0]
    found = reference.simulate(q, k, v, coverage.SCALE, CHOICE, laws=("kmean",))
    return np.sum((found - exact) ** 2, 1), np.sum(exact ** 2, 1), np.sum(q.astype(float) ** 2, 1)


def chances(squares, others, by_size):
    """Of each row of a part the probability to be picked."""
    count = others.sum()
    if not by_size:
        return others / count
    taken = np.minimum(1, squares / (MOST * squares[others].mean())) * others
    picks = 1 - (1 - taken.sum() / count) ** TRIES
    return picks * taken / taken.sum() + (1 - picks) * others / count


def ratios(error, size, squares, generator, draws, parts, groups, by_size):
    """error / estimate of many samples of one head."""
    n = len(error)
    others = np.ones(n, bool)
    for group in range(groups):
        low, high = group * n // groups, (group + 1) * n // groups
        others[low + np.argmax(squares[low:high])] = False
    picked, stands = [], []
    for part in range(parts):
        low, high = part * n // parts, (part + 1) * n // parts
        p = chances(squares[low:high], others[low:high], by_size)
        rows = generator.choice(high - low, size=draws, p=p / p.sum())
        picked.append(low + rows)
        stands.append(1 / p[rows])
    picked, stands = np.stack(picked, 1), np.stack(stands, 1)
    e, y = (x[~others].sum() + np.sum(stands * x[picked], 1) for x in (error, size))
    off = stands * (error[picked] - (e / y)[:, None] * size[picked])
    square, t = np.sum(off ** 2, 1), STUDENT[parts]
    skewness = np.maximum(np.mean(off ** 3, 1) / np.maximum(square / parts, 1e-300) ** 1.5, 0)
    margin = (t + skewness * (1 + 2 * t ** 2) / (6 * parts ** 0.5)) * np.sqrt(parts / (parts - 1) * square)
    return np.sqrt(error.sum() / size.sum() / ((e + margin) / y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    ways = {"32 longest, 32 evenly": (32, 32, False), "32 longest, 32 by size": (32, 32, True),
            "16 longest, 48 by size": (48, 16, True), "8 longest, 56 by size": (56, 8, True)}
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
