"""Rules that earlier work on adaptive precision and rank of attention uses, run as what they are, beside the estimate.

    python3 benchmarks/accuracy/earlier_rules.py [--N 1024] [--D 128] [--bound 6e-2] [--compiled]

- *Precision by dynamic range*: max |s| / min |s| over the scores above 1e4 takes f32, above 1e2 16 bits, else 8 bits.
- *Rank by entropy*: the exponential of the entropy of the weights is taken for their rank; below a quarter of the keys the head is
  treated as of low rank.
- *Fixed projection*: there Q and K are projected to that many channels, at most D, by the first columns of a fixed random
  orthogonal matrix. This still computes N M scores.

With --compiled, what a kernel that the compiler makes for this processor decides for the same heads, and its error: the plan of 8 bits
where its sample allows it, else the kernel as it is written. build/bin has to be there.

None checks the error of what it does or returns to the exact computation, and the first two need all N M scores to decide.
"""
import argparse

import numpy as np

import estimate
import families
import formats
import reference

EIGHT, SIXTEEN = "e4m3", "bf16"


def scores_and_weights(head):
    scores = head.scale * head.q.astype(float) @ head.k.T.astype(float)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return scores, weights / weights.sum(1, keepdims=True)


def range_rule(scores):
    """The format that the dynamic range of the scores asks for, and that range; scores of 0 are left out."""
    magnitude = np.abs(scores)
    nonzero = magnitude[magnitude > 0]
    ratio = float(nonzero.max() / nonzero.min()) if nonzero.size else 1.0
    return ("f32" if ratio > 1e4 else SIXTEEN if ratio > 1e2 else EIGHT), ratio


def entropy_rank(weights):
    """exp of the mean entropy of the rows."""
    logs = np.log(np.where(weights > 0, weights, 1))
    return float(np.exp(-np.sum(weights * logs, axis=1).mean()))


def projected(head, rank, seed=0):
    """The output with Q and K projected to `rank` channels of a fixed orthogonal matrix."""
    width = head.q.shape[1]
    matrix = families.Source(seed).orthogonal("fixed projection", width)[:, :rank]
    return reference.exact_rows(head.q @ matrix, head.k @ matrix, head.v, head.scale)[0]


def error_of(head, kind):
    return 0.0 if kind == "f32" else head.errors(formats.BY_NAME[kind])[0]


BOTH = ("kmean", "rotate")
CANDIDATES = (("e4m3", ()), ("int8 row, e4m3 PV", ()), ("int8 row, e4m3 PV", BOTH), ("int8 row QK", ()), ("int8 row QK", BOTH), ("f16", ()))


def estimated(head, bound, margin=1.5):
    """The cheapest of the candidates whose estimate, times a margin, meets the bound, and its error."""
    for key, laws in CANDIDATES:
        choice = formats.BY_NAME[key]
        if margin * estimate.estimate(head.q, head.k, head.v, head.scale, choice, laws) <= bound:
            return key + (" with " + formats.law_name(laws) if laws else ""), head.errors(choice, laws)[0]
    return "f32", 0.0


def compiled(heads, bound):
    """The decisions of one launch with all heads, and the errors of what it delivers."""
    import delivered
    mt = delivered.mt
    rows, width = heads[0].q.shape
    specification = delivered.SPECIFICATION.replace("D = 16", f"D = {width}") % f"{bound} relative sampled"
    q, k, v = (np.stack([np.asarray(getattr(head, name), np.float32) for head in heads]) for name in "qkv")
    q *= np.array([head.scale for head in heads], np.float32)[:, None, None]
    found = mt.make_kernel(specification, flags=("--decisions",)).run(
        {"Q": q, "K": k, "V": v, "scale": 1.0}, {"O": q.shape, "O_plan": (len(q),), "O_estimate": (len(q), 1)})
    return found["O_plan"], [reference.relative_l2(o.astype(float), head.output) for o, head in zip(found["O"], heads)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--N", type=int, default=1024)
    parser.add_argument("--D", type=int, default=128)
    parser.add_argument("--bound", type=float, default=6e-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    print(f"## Rules of the earlier kind, N = M = {options.N}, D = {options.D}, bound {options.bound:g} relative\n")
    rows = []
    all_heads = [formats.Head(name, options.N, options.D, options.seed) for name in families.FAMILIES]
    plans, errors = compiled(all_heads, options.bound) if options.compiled else ((), ())
    for number, (name, head) in enumerate(zip(families.FAMILIES, all_heads)):
        scores, weights = scores_and_weights(head)
        kind, ratio = range_rule(scores)
        guess, true = entropy_rank(weights), formats.effective_rank(weights, 3e-2)
        low = guess < options.N / 4
        rank = max(1, min(round(guess), options.D))
        error = reference.relative_l2(projected(head, rank), head.output) if low else 0.0
        ours, our_error = estimated(head, options.bound)
        mark = lambda x: f"**{formats.short(x)}**" if x > options.bound else formats.short(x)
        rows.append([name, formats.short(ratio), kind, mark(error_of(head, kind)), mark(error_of(head, EIGHT)), f"{guess:.1f}", str(true),
                     f"project to {rank}" if low else "dense", mark(error), ours, mark(our_error)])
        if options.compiled:
            rows[-1] += ["8 bits" if plans[number] else "as written", mark(errors[number])]
    formats.markdown(["family", "range of scores", "range rule takes", "its error", "error of e4m3", "exp(entropy)", "rank of P (3e-2)",
                      "entropy rule", "its error", "the estimate takes", "its error"]
                     + (["the kernel takes", "its error"] if options.compiled else []), rows)


if __name__ == "__main__":
    main()
