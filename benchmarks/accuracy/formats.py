"""Families x formats x laws -> error, in both measures, as Markdown.

    python3 benchmarks/accuracy/formats.py [--N 2048] [--D 128 64] [--family NAME …] [--input bf16]

Prints, for each D: the errors without laws, what each law gains, and the cheapest choice that meets a bound.
"""
import argparse
import math
import pickle
import sys

import numpy as np

import families
import reference
from reference import Choice

CHOICES = [
    Choice("f16", "f16", "f16", "f16"),
    Choice("bf16", "bf16", "bf16", "bf16"),
    Choice("e4m3", "e4m3", "e4m3", "e4m3"),
    Choice("e4m3 row", "e4m3", "e4m3", "e4m3", "row", "channel"),
    Choice("e4m3 QK", "e4m3", "bf16", "bf16"),
    Choice("e4m3 PV", "bf16", "e4m3", "e4m3"),
    Choice("int8 row QK", "int8", "f16", "f16", "row"),
    Choice("int8 tile QK", "int8", "f16", "f16", "tile"),
    Choice("int8 head QK", "int8", "f16", "f16", "head"),
    Choice("int8 row, e4m3 PV", "int8", "e4m3", "e4m3", "row"),
    Choice("int8 row, int8 PV", "int8", "int8", "int8", "row", "channel"),
]
BY_NAME = {c.name: c for c in CHOICES}

LAW_SETS = [(), ("kmean",), ("vmean",), ("rotate",), ("norm",), ("pow2",), ("kmean", "vmean"), ("kmean", "rotate"),
            ("kmean", "vmean", "rotate", "norm"), ("kmean", "vmean", "rotate", "norm", "pow2")]
# Where a law can matter little, only none and all are tried.
FEW = {"f16", "bf16", "e4m3 row", "int8 tile QK"}
BOUNDS = (6e-2, 3e-2, 1e-2)


def law_sets(choice):
    return LAW_SETS if choice.name not in FEW else [LAW_SETS[0], LAW_SETS[-2]]


def law_name(laws):
    if len(laws) == 4:
        return "all four"
    return "+".join(laws) if len(laws) < 5 else "all five"


class Head:
    """The arrays of a head and its exact output."""

    def __init__(self, name, n, d, seed, kind="f32"):
        head = families.make(name, n, d=d, seed=seed)
        self.name, self.scale, self.family = name, head.scale, head
        self.q, self.k, self.v = (reference.ROUND[kind](x) for x in head.arrays())
        self.output, self.magnitude, self.lse = reference.exact_rows(self.q, self.k, self.v, head.scale)

    def errors(self, choice, laws=()):
        """Relative L2 and component-wise."""
        found = reference.simulate(self.q, self.k, self.v, self.scale, choice, laws)
        return (reference.relative_l2(found, self.output),
                reference.componentwise(found, self.output, self.magnitude))


def measure(names, n, d, seed, kind):
    """{family: {(choice, laws): (relative, component-wise)}}."""
    table = {}
    for name in names:
        head = Head(name, n, d, seed, kind)
        table[name] = {(c.name, laws): head.errors(c, laws) for c in CHOICES for laws in law_sets(c)}
        print(f"{name} D={d}", file=sys.stderr)
    return table


def ranks(names, d, seed, kind):
    """{family: rank of P within 3e-2 at N = M = 1024}."""
    return {name: effective_rank(weights_of(Head(name, 1024, d, seed, kind)), 3e-2) for name in names}


def markdown(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def short(x):
    return "inf" if math.isinf(x) else f"{x:.1e}".replace("e-0", "e-").replace("e+0", "e+")


def print_errors(table, which, title):
    print(f"### {title}\n")
    markdown(["family"] + [c.name for c in CHOICES],
             [[name] + [short(row[c.name, ()][which]) for c in CHOICES] for name, row in table.items()])


def print_gains(table, choice, title):
    """How many times smaller the relative error is under a law."""
    print(f"### {title}\n")
    rows = []
    for name, row in table.items():
        base = row[choice, ()][0]
        cells = []
        for laws in LAW_SETS[1:]:
            error = row[choice, laws][0]
            ratio = math.inf if error == 0 else base / error
            text = ">1000" if ratio > 1000 else f"{ratio:.2f}"
            cells.append(f"**{text}**" if ratio >= 1.2 else text)
        rows.append([name, short(base)] + cells)
    markdown(["family", "no law"] + [law_name(laws) for laws in LAW_SETS[1:]], rows)


def cheapest(row, bound, which):
    """The choice of least cost, then of fewest laws, then of least error, that meets a bound."""
    fitting = [(BY_NAME[c].cost(), len(laws), errors[which], c, laws)
               for (c, laws), errors in row.items() if errors[which] <= bound]
    if not fitting:
        return "f32"
    _, _, error, name, laws = min(fitting)
    return name + (" with " + law_name(laws) if laws else "") + f" ({short(error)})"


def print_cheapest(table, which, title):
    print(f"### {title}\n")
    markdown(["family"] + [f"{bound:g}" for bound in BOUNDS],
             [[name] + [cheapest(row, bound, which) for bound in BOUNDS] for name, row in table.items()])


def print_counts(table, which, title):
    """Of how many families each choice meets a bound under one set of laws for all."""
    print(f"### {title}\n")
    print(f"Of {len(table)} families, those that meet " + ", ".join(f"{b:g}" for b in BOUNDS) + "; cost in 16-bit products.\n")
    sets = [laws for laws in LAW_SETS if "pow2" not in laws]
    rows = []
    for choice in CHOICES:
        cells = []
        for laws in sets:
            errors = [row[choice.name, laws][which] for row in table.values() if (choice.name, laws) in row]
            cells.append(", ".join(str(sum(e <= b for e in errors)) for b in BOUNDS) if errors else "")
        rows.append([choice.name, f"{choice.cost():g}"] + cells)
    markdown(["choice", "cost"] + [law_name(laws) if laws else "no law" for laws in sets], rows)


def effective_rank(matrix, bound):
    """The least rank of a matrix within `bound` of this one, Frobenius, relative."""
    squares = np.linalg.svd(matrix, compute_uv=False) ** 2
    tail = np.cumsum(squares[::-1])[::-1]
    return int(np.sum(tail > bound ** 2 * tail[0]))


def weights_of(head):
    scores = head.scale * head.q.astype(float) @ head.k.T.astype(float)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def print_expectations(table, rank_of):
    """What families promise beside what was found."""
    print("### Expectations of the families and what was found\n")
    print("e4m3 without laws at 6e-2, and the rank of P within 3e-2 at N = M = 1024 against 40; a bold entry is "
          "not what the family expects.\n")
    rows = []
    for name, row in table.items():
        expects = families.FAMILIES[name].expects
        error = row["e4m3", ()][0]
        rank = rank_of[name]
        found = {"eight_bits": error <= 6e-2, "low_rank": rank <= 40}
        mark = lambda key, text: text if found[key] == expects[key] else f"**{text}**"
        rows.append([name, "yes" if expects["eight_bits"] else "no", mark("eight_bits", short(error)),
                     "yes" if expects["low_rank"] else "no", mark("low_rank", str(rank)),
                     "yes" if expects["dense"] else "no"])
    markdown(["family", "8 bits expected", "error of e4m3", "low rank expected", "rank of P", "must stay dense"], rows)


def print_all(table, rank_of):
    print_expectations(table, rank_of)
    print_errors(table, 0, "Relative L2 error of the head, no law")
    print_errors(table, 1, "Component-wise error, no law")
    print_gains(table, "e4m3", "Gain of laws with e4m3 (error without over error with)")
    print_gains(table, "int8 row QK", "Gain of laws with int8 scores, a scale per row, P and V in f16")
    print_gains(table, "int8 row, int8 PV", "Gain of laws with int8 for all, scales per row and per channel of V")
    print_cheapest(table, 0, "Cheapest choice for a relative L2 error of")
    print_cheapest(table, 1, "Cheapest choice for a component-wise error of")
    print_counts(table, 0, "How far one choice reaches, relative L2")
    print_counts(table, 1, "How far one choice reaches, component-wise")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--N", type=int, default=2048)
    parser.add_argument("--D", type=int, nargs="+", default=[128, 64])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", nargs="+", default=list(families.FAMILIES), choices=list(families.FAMILIES))
    parser.add_argument("--input", default="f32", choices=["f32", "bf16", "f16"], help="what the inputs are stored in")
    parser.add_argument("--save", metavar="FILE", help="also write the numbers, with pickle")
    parser.add_argument("--load", metavar="FILE", nargs="+", default=[], help="print numbers that were written, measure nothing")
    options = parser.parse_args()
    runs = [pickle.load(open(path, "rb")) for path in options.load]
    if not runs:
        for d in options.D:
            run = {"n": options.N, "d": d, "input": options.input, "seed": options.seed,
                   "table": measure(options.family, options.N, d, options.seed, options.input),
                   "ranks": ranks(options.family, d, options.seed, options.input)}
            runs.append(run)
            if options.save:
                with open(options.save.replace("%d", str(d)), "wb") as file:
                    pickle.dump(run, file)
    for run in runs:
        print(f"## N = M = {run['n']}, D = {run['d']}, inputs in {run['input']}, seed {run['seed']}\n")
        print_all(run["table"], run["ranks"])


if __name__ == "__main__":
    main()
