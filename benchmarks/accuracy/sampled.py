"""What exact rows of a random sample say about the error of all rows, and how often they are right.

    python3 benchmarks/accuracy/sampled.py [--runs 1000] [--heads 5] [--rows 64 256]

Of a head with N rows let e_i = |dO_i|^2, y_i = |O_i|^2 and E = sum e / sum y the squared relative error. A sample of r rows is drawn
without replacement. Statements, each with confidence 1 - delta:

- share     at most a share f of all rows has a relative error above the largest of the sample, (1 - f)^r = delta
- Hoeffding mean e <= mean of the sample + c sqrt(log(1 / delta) / (2 r)), e_i <= c known beforehand (and the same below for y)
- Bernstein the empirical form: + sqrt(2 v log(2 / delta) / r) + 7 c log(2 / delta) / (3 (r - 1)), v the variance of the sample
- normal    mean of the sample + 1.645 deviations of the mean, of e - E y: what is usually done; no statement for every input
- capped    rows drawn with probability p_i proportional to a bound u_i of e_i, with Hoeffding for e_i / p_i: its cap is sum u / N
  in place of max u
- guided    rows drawn with a probability that is half uniform and half proportional to the error that estimate.py expects of a row;
  e_i / p_i has the same mean whatever p is, and as in `normal` 1.645 deviations of that mean are added
- output    the same with |O'_i|^2 of the result in the cheap format, which is known for all rows, in place of the expected error
- both      a third uniform, a third each of these two

The cap of a row is u_i = min(diam(V), g(Delta_i) max |v|)^2 with Delta_i the sound bound of its scores and g as in the first-order analysis.
"""
import argparse
import math

import numpy as np

import estimate
import formats
import reference

STUDIED = ("normal", "diffuse", "peaked", "sinks", "coherent_values", "hidden_rows", "hidden_aligned", "hidden_keys")


def share_above(rows, delta):
    """f with (1 - f)^rows = delta."""
    return 1 - delta ** (1 / rows)


def hoeffding(sample, cap, delta):
    return sample.mean() + cap * math.sqrt(math.log(1 / delta) / (2 * len(sample)))


def bernstein(sample, cap, delta):
    log = math.log(2 / delta)
    return sample.mean() + math.sqrt(2 * sample.var(ddof=1) * log / len(sample)) + 7 * cap * log / (3 * (len(sample) - 1))


def row_caps(head, choice):
    """A sound bound of |dO_i|^2 for every row, by O(N D) work: two points of the hull of V and its rounding, or the bound of the scores."""
    q, k, v = (np.asarray(x, float) for x in (head.q, head.k, head.v))
    u = estimate.HALF[choice.scores]
    largest = np.linalg.norm(v, axis=1).max()
    delta = head.scale * (2 * u + u * u) * np.linalg.norm(q, axis=1) * np.linalg.norm(k, axis=1).max()
    rounded = (1 + estimate.HALF[choice.weights]) * (1 + estimate.HALF[choice.values]) - 1
    moved = np.expm1(np.minimum(2 * delta, 50)) * (1 + rounded) + rounded
    return np.minimum(moved, 2 + rounded) ** 2 * largest ** 2


def upper_limits(e, y, caps, guides, rows, delta, generator):
    """The upper limits of E from one sample, and whether the share statement holds."""
    n = len(e)
    picked = generator.choice(n, rows, replace=False)
    es, ys = e[picked], y[picked]
    ratio = es.sum() / ys.sum()
    residual = es - ratio * ys
    limits = {
        "Hoeffding": hoeffding(es, caps.max(), delta) / y.mean(),
        "Bernstein": bernstein(es, caps.max(), delta) / y.mean(),
        "normal": ratio + 1.645 * residual.std(ddof=1) / math.sqrt(rows) / ys.mean(),
    }
    chance = caps / caps.sum()
    drawn = generator.choice(n, rows, p=chance)
    limits["capped"] = hoeffding(e[drawn] / (n * chance[drawn]), caps.mean(), delta) / y.mean()
    uniform = np.full(n, 1 / n)
    expected, output = (g / g.sum() for g in guides)
    for key, parts in (("guided", (uniform, expected)), ("output", (uniform, output)), ("both", (uniform, expected, output))):
        chance = np.mean(parts, 0)
        drawn = generator.choice(n, rows, p=chance)
        terms = e[drawn] / (n * chance[drawn])
        limits[key] = (terms.mean() + 1.645 * terms.std(ddof=1) / math.sqrt(rows)) / y.mean()
    relative = e / np.maximum(y, 1e-300)
    share = float(np.mean(relative > relative[picked].max()))
    return limits, share <= share_above(rows, delta)


def study(name, count, choice, options):
    """The family, its cells of the table, and its error."""
    covered, ratios, errors = {}, {}, []
    for seed in range(options.heads):
        head = formats.Head(name, options.N, options.D, seed)
        made = reference.simulate(head.q, head.k, head.v, head.scale, choice)
        e, y = np.sum((made - head.output) ** 2, 1), np.sum(head.output ** 2, 1)
        caps = row_caps(head, choice)
        if (e > caps).any():
            raise AssertionError(f"{name}: a row has a larger error than its bound")
        expected = np.max([rows for rows, _ in estimate.row_estimates(head.q, head.k, head.v, head.scale, choice)], axis=0)
        guides = (expected, np.sum(made.astype(float) ** 2, 1))
        actual = e.sum() / y.sum()
        errors.append(math.sqrt(actual))
        generator = np.random.default_rng(seed)
        for _ in range(options.runs // options.heads):
            limits, held = upper_limits(e, y, caps, guides, count, options.delta, generator)
            covered.setdefault("share", []).append(held)
            for key, limit in limits.items():
                covered.setdefault(key, []).append(limit >= actual)
                ratios.setdefault(key, []).append(math.sqrt(limit / actual))
    cells = {key: f"{100 * np.mean(values):.1f}" + (f" ({np.median(ratios[key]):.3g})" if key in ratios else "")
             for key, values in covered.items()}
    return name, cells, formats.short(np.mean(errors))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("runs", 1000), ("heads", 5), ("N", 2048), ("D", 128)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 256], help="how many rows are drawn")
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--choice", default="e4m3", choices=[c for c in formats.BY_NAME if c in ("e4m3", "bf16", "f16")])
    options = parser.parse_args()
    choice = formats.BY_NAME[options.choice]
    for count in options.rows:
        print(f"## Samples of {count} of {options.N} rows, D = {options.D}, {choice.name}, confidence {1 - options.delta:g}, "
              f"{options.runs} runs over {options.heads} heads\n")
        print("Coverage in percent (how often the limit is at least the error), and in brackets the median of the limit over the "
              "error, both as relative L2. The mean of y is taken as known.\n")
        rows = [study(name, count, choice, options) for name in STUDIED]
        formats.markdown(["family", "relative L2"] + list(rows[0][1]), [[name, error, *cells.values()] for name, cells, error in rows])


if __name__ == "__main__":
    main()
