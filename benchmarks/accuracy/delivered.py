"""How often what kernels deliver exceeds what they may spend, over many runs with inputs of their own.

    python3 benchmarks/accuracy/delivered.py [--runs 1000] [--rows 512] [--keys 3200] [--only bits|halves|keys|bound]

Attention within 3e-2 and 6e-2 by `onf-adapt-precision` (scores in 8-bit integers, sums in e4m3), within 4e-3 and 1e-2 by the same as it is
for CPUs with instructions for bf16 (this one has to be such), and within 1e-2 by
`onf-low-rank`, with `bound` within 6e-2 and 1e-2 for every input, where a head counts that its bound shows to be within, compiled for this CPU, on families of this folder and, for the second, on keys that repeat, nearly or not.
With MOA_TEST_TARGET=record the kernels are written to MOA_GPU_KERNELS, and with cuda they run on a GPU once nvcc has made NAME.so of NAME.cu there.
A run is one head. Stated is a confidence of 95 % by the normal limit of Def 31 of docs/Accuracy/Bounds.md, so that at most 5 % of the heads that
a plan was taken for may exceed; exceeding by a factor is listed, as is the share of heads that took a plan. Errors are relative
L2 errors of all rows against float64, with `bound` the largest error of an element relative to |P|·|V|. build/bin has to be there.
"""
import argparse
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
os.environ.setdefault("MOA_SOURCE_ROOT", os.path.abspath(ROOT))
os.environ.setdefault("MOA_BINARY_ROOT", os.path.abspath(os.path.join(ROOT, "build")))
sys.path[:0] = [os.path.join(ROOT, "test", "Integration", "Support"), HERE]
import families  # noqa: E402
import moa_testing as mt  # noqa: E402

D = 16
SCALE = D ** -0.5
SPECIFICATION = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : T[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
STUDIED = ("normal", "diffuse", "peaked", "sinks", "coherent_values", "large_scores", "outlier_channels", "huge_key", "near_ties",
           "small_signal", "hidden_rows", "hidden_keys", "local_band", "clustered_keys", "low_rank_noise")


def repeated(rng, n, m, noise=0.0, strangers=0, spread=1.0):
    """Keys that repeat, `noise` around what they repeat, and some that repeat nothing; values with a mean of `spread`."""
    different = int(rng.integers(4, m // 40))
    k = rng.standard_normal((different, D))[rng.integers(0, different, m)] + noise * rng.standard_normal((m, D))
    k[rng.choice(m, strangers, False)] = 3 * rng.standard_normal((strangers, D))
    return rng.standard_normal((n, D)), k, rng.standard_normal((m, D)) + spread


KINDS = {
    "repeated": lambda rng, n, m: repeated(rng, n, m, spread=0.0),
    "near": lambda rng, n, m: repeated(rng, n, m, noise=float(rng.uniform(0, 0.02)), spread=0.0),
    "strangers": lambda rng, n, m: repeated(rng, n, m, strangers=int(rng.integers(1, 40))),
    "near strangers": lambda rng, n, m: repeated(rng, n, m, noise=0.005, strangers=3, spread=float(rng.uniform(0, 3))),
}


def exact(q, k, v):
    s = q.shape[-1] ** -0.5 * q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p @ v.astype(np.float64), p @ np.abs(v.astype(np.float64))


def error_of(found, meant, size, measure):
    if measure == "components":
        return (np.abs(found - meant) / np.maximum(size, 1e-300)).max()
    return np.linalg.norm(found - meant) / np.linalg.norm(meant)


def run(title, epsilon, flags, kinds, make, runs, is_bound=False):
    """One launch has a head of every kind."""
    within = epsilon if is_bound else f"{epsilon} relative sampled"
    kernel = mt.make_kernel(SPECIFICATION % within, flags=("--decisions", *flags))
    kernel.accepted = (mt.OK, mt.NOT_SHOWN)
    # Of inputs of f32 a GPU has plans of 16 bits behind that of 8, or instead of it, and of a bound that of the kernel as it is written.
    is_gpu = mt.TARGET in ("device", "cuda")
    plans = (3 if is_gpu else 1) if is_bound else 3 if is_gpu and not flags else 1
    estimates = "O_bound" if is_bound else "O_estimate"
    first, taken, above, worst = (dict.fromkeys(kinds, 0) for _ in range(4))
    rounds = -(-runs // len(kinds))
    for seed in range(rounds):
        heads = [make(kind, seed) for kind in kinds]
        q, k, v = (np.stack([h[i] for h in heads]).astype(np.float32) for i in range(3))
        found = kernel.run({"Q": q, "K": k, "V": v, "scale": SCALE},
                           {"O": q.shape, "O_plan": q.shape[:1], estimates: (len(q), plans)})
        for h, kind in enumerate(kinds):
            error = error_of(found["O"][h], *exact(q[h], k[h], v[h]), "components" if is_bound else "relative")
            if is_bound and found["O_plan"][h] < 0:
                continue
            taken[kind] += int(is_bound or found["O_plan"][h] > 0)
            first[kind] += int(found["O_plan"][h] == 1)
            above[kind] += int(error > epsilon)
            worst[kind] = max(worst[kind], error / epsilon)
    total = sum(taken.values())
    print(f"\n**{title}, ε = {epsilon:g}**: {rounds * len(kinds)} heads, {total} {'shown' if is_bound else 'by a plan'}, {sum(first.values())} by the first, {sum(above.values())} above ε "
          f"({100 * sum(above.values()) / max(total, 1):.2f} % of these)\n")
    print(f"| family | heads {'shown' if is_bound else 'by a plan'} | by the first | above ε | largest error / ε |")
    print("|---|---:|---:|---:|---:|")
    for kind in kinds:
        print(f"| {kind} | {taken[kind]} of {rounds} | {first[kind]} | {above[kind]} | {worst[kind]:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--keys", type=int, default=3200)
    parser.add_argument("--only", choices=("bits", "halves", "keys", "bound"), help="one of the passes")
    options = parser.parse_args()
    n, m = options.rows, options.keys

    def family(kind, seed):
        return families.make(kind, n, n, D, seed=seed, head=0).arrays()

    def keys(kind, seed):
        return KINDS[kind](np.random.default_rng((seed, list(KINDS).index(kind))), n, m)

    print("## What kernels deliver")
    if options.only in (None, "bits"):
        for epsilon in (3e-2, 6e-2):
            run("8 bits", epsilon, (), STUDIED, family, options.runs)
    if options.only == "bound":
        for epsilon in (6e-2, 1e-2):
            run("every input", epsilon, (), tuple(families.FAMILIES), family, options.runs, is_bound=True)
    if options.only == "halves":
        for epsilon in (4e-3, 1e-2):
            run("bf16", epsilon, (f"--spend={n}",), STUDIED, family, options.runs)
    if options.only in (None, "keys"):
        run("few keys", 1e-2, (f"--low-rank={min(n, m)}",), tuple(KINDS), keys, options.runs)


if __name__ == "__main__":
    main()
