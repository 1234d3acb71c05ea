"""How often the error of all rows is above what a sample of them estimates.

    python3 benchmarks/accuracy/coverage.py [--heads 200] [--rows 512] [--type f32|bf16|f16] [--plan bits|halves] [--families NAMES]

Attention that may be off by everything, so that the first plan of `onf-adapt-precision` is taken whatever is estimated: what is stated of a sampled
tolerance is that the error of a head is above its estimate, with what the kernel is off by as it is written (Def 31 of docs/Accuracy/Bounds.md), in at
most 5 % of heads, and no tolerance is nearer to an estimate than the estimate itself. Against float64, with inputs of each head's own: families
of this folder, and some whose rows differ much. `bits` are scores in 8-bit integers and sums in e4m3, `halves` 16 bits, on a CPU with products
of bf16 or by MOA_TEST_TARGET=device.
"""
import argparse
import math

import numpy as np

import delivered
import families
import moa_testing as mt

D = 32
SCALE = D ** -0.5
ROUNDOFF = {"f32": 0.0, "bf16": 2.0 ** -8, "f16": 2.0 ** -11}


def drawn(kind, n, seed):
    """Inputs of one head: of a family, or of normal numbers that are changed."""
    rng = np.random.default_rng((seed, len(kind)))
    if kind in families.FAMILIES:
        return families.make(kind, n, n, D, seed=seed, head=0).arrays()
    q, k, v = rng.standard_normal((3, n, D))
    if kind == "offset values":
        v = 1 + 0.5 * v
    elif kind == "few large rows":
        q[::37] *= 12
    elif kind == "large scores":
        q *= 3
    elif kind == "keys of many sizes":
        k *= np.exp(0.8 * rng.standard_normal((n, 1)))
    elif kind == "heavy tails":
        v = rng.standard_t(2, (n, D))
    else:
        raise ValueError(f"there is no family '{kind}'")
    return q, k, v


CHANGED = ("offset values", "few large rows", "large scores", "keys of many sizes", "heavy tails")


def cover(kinds, heads, n, element="f32", flags=()):
    """Of each kind: heads by the first plan, those above their estimate (by more than f32 rounds), the largest error / estimate, the median of estimate / error."""
    return {kind: (len(r), sum(x > 1.005 for x in r), max(r, default=0.0), 1 / np.median(r) if r else 0.0)
            for kind, r in ratios(kinds, heads, n, element, flags).items()}


def ratios(kinds, heads, n, element="f32", flags=()):
    """Of each kind the errors of heads by the first plan, each divided by its estimate."""
    kernel = mt.make_kernel(delivered.SPECIFICATION % "1 relative sampled", flags=("--decisions", *flags), T=element, D=D)
    plans = 3 if mt.TARGET in ("device", "cuda") and not flags and element == "f32" else 1
    found = {kind: [] for kind in kinds}
    for seed in range(heads):
        q, k, v = (np.stack(arrays) for arrays in zip(*(drawn(kind, n, seed) for kind in kinds)))
        q, k, v = (mt.decode(mt.encode(a.astype(np.float32), element), element) for a in (q, k, v))
        run = kernel.run({"Q": q, "K": k, "V": v, "scale": SCALE},
                         {"O": q.shape, "O_plan": q.shape[:1], "O_estimate": (len(q), plans)})
        output = mt.decode(run["O"], element)
        for h, kind in enumerate(kinds):
            if run["O_plan"][h] != 1:
                continue
            error = delivered.error_of(output[h].astype(np.float64), *delivered.exact(q[h], k[h], v[h]), "relative")
            estimate = math.hypot(float(run["O_estimate"][h, 0]), 0.43 * math.sqrt(2) * ROUNDOFF[element])
            found[kind].append(error / max(estimate, 1e-300))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heads", type=int, default=200)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--type", choices=tuple(ROUNDOFF), default="f32")
    parser.add_argument("--plan", choices=("bits", "halves"), default="bits")
    parser.add_argument("--families", default="", help="names, in place of all")
    options = parser.parse_args()
    flags = () if options.plan == "bits" else (f"--spend={options.rows}",)
    kinds = tuple(options.families.split(",")) if options.families else tuple(delivered.STUDIED) + CHANGED
    print(f"**{options.plan}, {options.type}, {options.rows} rows**\n")
    print("| family | heads by the plan | above the estimate | largest error / estimate | median of estimate / error |")
    print("|---|---:|---:|---:|---:|")
    for kind, (taken, above, worst, room) in cover(kinds, options.heads, options.rows, options.type, flags).items():
        print(f"| {kind} | {taken} of {options.heads} | {above} ({100 * above / max(taken, 1):.1f} %) | {worst:.2f} | {room:.2f} |", flush=True)


if __name__ == "__main__":
    main()
