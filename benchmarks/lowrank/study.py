"""Compares the methods of methods.py and adaptive.py on the inputs of families.py.

    python3 study.py compare [FAMILY ...]      every method on every family, N = 2048, D = 64
    python3 study.py decide N [FAMILY ...]     the decision at N keys, errors on sampled rows
    python3 study.py ingredients               what the fitted centres owe to each of their parts
    python3 study.py ranks                     numerical ranks of the matrices of weights
    python3 study.py model                     modelled times, detection and growth; runs nothing

Each prints one table in Markdown; RESULTS.md holds those of the last run. Deterministic: inputs and
samples follow from seeds and hashes. Errors are relative L2 over all rows of a head against
float64; modelled times are of methods.Cost, as parts of the dense fold's.
"""
import sys
import time

import numpy as np

from adaptive import Adaptive
from families import FAMILIES, inputs
from methods import (CertifiedTiles, CrossApproximation, Dense, FittedCentres, KeySummaries, Nystrom,
                     RandomFeatures, RangeFinder, RowSummaries, dense_cost, reference,
                     relative_error, scale_of)

EPSILON = 1e-2
RANKS = (32, 64, 128, 512)

METHODS = {
    "ACA": CrossApproximation,
    "Nyström, far": Nystrom,
    "Nyström, k-means": lambda r: Nystrom(r, "k-means"),
    "Nyström, uniform": lambda r: Nystrom(r, "uniform"),
    "Nyström, leverage": lambda r: Nystrom(r, "leverage"),
    "range finder": RangeFinder,
    "range, sampled": lambda r: RangeFinder(r, True),
    "FAVOR+": lambda r: RandomFeatures(2 * r),
    "keys, order 0": KeySummaries,
    "keys, order 1": lambda r: KeySummaries(max(r // 32, 1), 1),
    "tiles, certified": CertifiedTiles,
    "tiles, in order": lambda r: CertifiedTiles(r, sort=False),
    "rows": RowSummaries,
    "fitted": FittedCentres,
}


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def head(*cells):
    row(*cells)
    row(*("---" for _ in cells))


def short(error):
    return "> 1" if not error < 1 else f"{error:.4f}" if error < 0.1 else f"{error:.2f}"


def scaled(name, make, rank, N, measured=2048):
    """The method at N keys with the rank that it needed at `measured` keys, which grows where the family's does."""
    known = FAMILIES[name].rank_of
    return make(rank * N // measured if known and known(2 * N) > known(N) else rank)


def measure(make, name, Q, K, V, wanted):
    """Error at rank 128, the first of RANKS that reaches EPSILON, and the modelled times with it."""
    errors, needed, shares = {}, None, {}
    for rank in RANKS:
        if needed and rank > 128:
            break
        method = make(rank)
        with np.errstate(all="ignore"):
            errors[rank] = relative_error(method(Q, K, V), wanted)
        shares[rank] = getattr(method, "share_near", None)
        if errors[rank] <= EPSILON and not needed:
            needed = rank
    times = []
    for N in (32768, 131072):
        if needed:
            method = scaled(name, make, needed, N)
            method.share_near = shares[needed]
            times.append(method.cost(N, N, 128).milliseconds() / dense_cost(N, N, 128).milliseconds())
    return errors[128], needed, times


def compare(names, N=2048, D=64):
    """Two tables of family × method: the error at rank 128, and what it takes to reach EPSILON."""
    found = {}
    for name in names:
        Q, K, V = inputs(name, N, D)
        wanted = reference(Q, K, V)
        for label, make in METHODS.items():
            found[name, label] = measure(make, name, Q, K, V, wanted)
        print(name, file=sys.stderr)
    print_comparison(names, found)


def print_comparison(names, found):
    """Cells of the second table are: rank; time over dense at N = 32768 and at 131072 with it."""
    head("error at rank 128", *METHODS)
    for name in names:
        row(name, *(short(found[name, label][0]) for label in METHODS))
    print()
    head(f"rank; time / dense for {EPSILON:g}", *METHODS)
    for name in names:
        cells = (found[name, label][1:] for label in METHODS)
        row(name, *(f"{rank}; {times[0]:.3f}, {times[1]:.3f}" if rank else "–" for rank, times in cells))


def decide(names, N, D=64, rows=512):
    """What Adaptive decides, its estimate, and the error on rows that it has not seen."""
    head("family", "must stay dense", "expansion", "key classes", "row classes", "pilot error", "candidate",
         "estimate", "accepted", "measured error", "time / dense")
    for name in names:
        Q, K, V = inputs(name, N, D)
        started, a = time.time(), Adaptive(EPSILON)
        with np.errstate(all="ignore"):
            a.fit(Q, K, V)
            sample = np.unique(np.linspace(0, N - 1, rows).astype(int))
            found = a.apply(Q)[sample] if a.plan[0] == "RowSummaries" else a.apply(Q[sample])
            error = relative_error(found, reference(Q[sample], K, V))
        ratio = a.cost(N, N, 128).milliseconds() / dense_cost(N, N, 128).milliseconds()
        estimate = "–" if a.estimate is None else short(a.estimate)
        candidate = "–" if a.estimate is None else f"{type(a.tried).__name__} {a.tried.rank}"
        row(name, "yes" if FAMILIES[name].must_stay_dense else "", *(f"{a.found[k]:.3g}" for k in a.found),
            candidate, estimate, "no" if a.plan[0] == "Dense" else "yes", short(error), f"{ratio:.3f}")
        print(f"{name}: {time.time() - started:.0f} s", file=sys.stderr)


class EqualWeights(FittedCentres):
    """Seeds drawn by distances alone."""

    def choose_centres(self, Q, K, V, C):
        KeySummaries.fit(self, Q, K, V)
        self.bias = np.maximum(self.bias, np.float32(-1e30))


class EvenRows(FittedCentres):
    """Rows of the fit without those that are far from others."""

    def pick_rows(self, Q, K, count):
        return np.arange(count) * len(Q) // count


INGREDIENTS = {
    "as chosen, 30 steps": lambda r: FittedCentres(r),
    "10 steps": lambda r: FittedCentres(r, steps=10),
    "100 steps": lambda r: FittedCentres(r, steps=100),
    "ridge 1e-2": lambda r: FittedCentres(r, steps=100, ridge=1e-2),
    "ridge 1e-4": lambda r: FittedCentres(r, steps=100, ridge=1e-4),
    "seeds without weights of keys": EqualWeights,
    "even rows only": EvenRows,
    "rows as many as centres": lambda r: FittedCentres(r, rows=r),
    "no fit (order 0)": KeySummaries,
}


def ingredients(N=2048, D=64, rank=256):
    names = ("smooth-2", "smooth-4", "narrow-rows", "repeated-rows", "diffuse", "sinks", "huge-key", "clusters")
    head("variant of the fitted centres, rank 256", *names)
    made = {name: inputs(name, N, D) for name in names}
    wanted = {name: reference(*made[name]) for name in names}
    for label, make in INGREDIENTS.items():
        with np.errstate(all="ignore"):
            row(label, *(short(relative_error(make(rank)(*made[name]), wanted[name])) for name in names))


def ranks(sizes=(512, 1024), D=64):
    """The least rank of a matrix within EPSILON of the weights, in the Frobenius norm. It does not
    depend on N where the inputs' distribution has it, and grows with N elsewhere."""
    head("family", *(f"rank of the weights, N = {N}" for N in sizes))
    for name in FAMILIES:
        cells = []
        for N in sizes:
            Q, K, _ = inputs(name, N, D)
            S = Q @ K.T * scale_of(Q)
            P = np.exp(S - S.max(1, keepdims=True))
            squares = np.linalg.svd(P / P.sum(1, keepdims=True), compute_uv=False).astype(np.float64) ** 2
            left = np.sqrt(np.cumsum(squares[::-1])[::-1] / squares.sum())
            cells.append(int(np.count_nonzero(left > EPSILON)))
        row(name, *cells)


def model():
    """Modelled times of one head in ms, 16 heads at a time."""
    head("N", "D", "dense", "detection", "share of dense", "keys, C = 512", "fitted, C = 512", "keys, C = N/32", "fitted, C = N/64")
    for D in (64, 128):
        for N in (4096, 8192, 16384, 32768, 65536, 131072, 262144):
            dense = dense_cost(N, N, D).milliseconds()
            looked = Adaptive.detection_cost(N, N, D).milliseconds()
            of = [m.cost(N, N, D).milliseconds() for m in (KeySummaries(512), FittedCentres(512),
                                                           KeySummaries(N // 32), FittedCentres(N // 64))]
            row(N, D, f"{dense:.4f}", f"{looked:.4f}", f"{100 * looked / dense:.1f} %", *(f"{t + looked:.4f}" for t in of))


def main(arguments):
    command, rest = (arguments + ["model"])[0], arguments[1:]
    if command == "compare":
        compare(rest or FAMILIES)
    elif command == "decide":
        decide(rest[1:] or FAMILIES, int(rest[0]))
    elif command == "ingredients":
        ingredients()
    elif command == "ranks":
        ranks()
    elif command == "model":
        model()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
