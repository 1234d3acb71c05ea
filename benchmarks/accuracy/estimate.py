"""Predicts the error of a format from O(N D) statistics of a head, and compares with what is measured.

    python3 benchmarks/accuracy/estimate.py [--seeds 1000] [--N 128] [--M 512] [--D 64] [--family NAME …]

Prints, for each family, the predicted error over the measured one, how often the prediction is too low, and the sound bound.

The estimate looks at the 8 longest keys one by one and at the others by moments, one pass over K and V and one over Q.
With s the scale, c = log M, and mean and Var over the other keys of the head, of row i:

    variance of scores     tau_i = s^2 sum_d q_id^2 Var[k_d]
    keys in effect         n_i   = max(1, M exp(-tau_i))
    weights                p_ij of the long keys by their scores, r_i of all others, whose sum of exponentials is
                           exp(log M + s q_i . mean k + tau_i / 2), or exp(s q_i . mean k + sqrt(2 tau_i c)) where tau_i > 2 c
    tilt                   t_id  = Var[k_d] min(s^2 q_id^2 Var[k_d], 2 c)
    error of a score       sigma_i^2 = rho^2 s^2 sum_d q_id^2 (Var[k_d] + mean[k_d^2] + 2 t_id)        floats
                                     = s^2 (a_i^2 sum_d (Var[k_d] + t_id) + |q_i|^2 mean[b_j^2]) / 12  integers, steps a_i and b_j
                           sigma_ij^2 = 2 rho^2 s^2 sum_d q_id^2 k_jd^2 or s^2 (a_i^2 |k_j|^2 + b_j^2 |q_i|^2) / 12 of a long key
    mean output            c_i = sum over long keys of p_ij v_j + r_i mean v
    output                 o_i = max(|c_i|^2 - r_i^2 W / M, 0) + r_i^2 W / n_i,   W = sum_d Var[v_d]
    error                  e_i = r_i^2 g(sigma_i) W / n_i + sum_j p_ij^2 g(sigma_ij) (|v_j - c_i|^2 + r_i^2 W / n_i)      scores
                               + rho_P^2 (r_i^2 mean |v|^2 / n_i + sum_j p_ij^2 |v_j|^2)                                  weights
                               + r_i^2 sum_d R_d / n_i + sum_j p_ij^2 R_j + C                                             values
    relative L2            sqrt(sum_i e_i / sum_i o_i), the larger of this with 8 and with no long keys

g(x) = min(exp(x^2) - 1, 2). The tilt is what the keys that a row sees are larger by in channel d than keys are: weights
exp(s q_d k_d) move the mean of normal k_d by s q_d Var[k_d], up to the largest of M. The square of the mean of V loses what the
mean of M independent rows has by chance. R_d is the mean square of the rounding of channel d of V, rho^2 mean[v_d^2] or
step^2 / 12, and C what of it does not average: the same of (mean v)^2 in channels whose deviation is below half a step, where all
keys round alike. Weights in int8 have the error of a 127th of the largest weight, for each of M keys.
"""
import argparse
import sys
import time

import numpy as np

import families
import reference
from formats import BY_NAME, markdown, short

# The rms relative error of rounding: a step of 2^-f over values distributed as 1 / x in a binade.
RHO = {"f32": 0.2123 * 2.0 ** -23, "f16": 0.2123 * 2.0 ** -10, "bf16": 0.2123 * 2.0 ** -7, "e4m3": 0.2123 * 2.0 ** -3}
# Half a step, relative: no rounding of a normal number is further away.
HALF = {"f32": 2.0 ** -24, "f16": 2.0 ** -11, "bf16": 2.0 ** -8, "e4m3": 2.0 ** -4}


def steps(x, per):
    """The steps of int8 for x, squared, by row (and one for all rows but for `row` and `tile`)."""
    return np.broadcast_to(reference.scales(x, "int8", per), (len(x), 1))[:, 0].astype(float) ** 2


LONGEST = 8    # keys that are looked at one by one


def rounding_of_channels(v, kind, per):
    """R_d, by channel."""
    if kind == "int8":
        step = np.broadcast_to(reference.scales(v, "int8", per), v.shape)
        return np.mean(step.astype(float) ** 2, 0) / 12
    return RHO[kind] ** 2 * np.mean(v * v, 0)


def common_rounding(v, kind, rounding):
    """C: the part that all keys share."""
    mean, deviation = v.mean(0), v.std(0)
    if kind == "int8":
        return np.where(deviation < np.sqrt(3 * rounding), rounding, 0).sum()
    return np.where(deviation < HALF[kind] * np.abs(mean), RHO[kind] ** 2 * mean ** 2, 0).sum()


def spread_error(variance):
    """E (e^d - 1)^2 nearly, for d of this variance; two unit vectors are no further apart than 2."""
    return np.minimum(np.expm1(np.minimum(variance, 50)), 2)


class Moments:
    """What one pass over K and V leaves: moments of most keys, and the longest ones themselves."""

    def __init__(self, k, v, choice, longest):
        length = np.sum(k * k, 1)
        count = min(longest, len(k) - 1)
        order = np.argpartition(length, len(k) - count - 1)
        self.long, rest = order[len(k) - count:], order[:len(k) - count]
        self.count, self.log = len(rest), np.log(len(k))
        self.key, self.value = k[self.long], v[self.long]
        k_rest, v_rest = k[rest], v[rest]
        self.mean, self.variance = k_rest.mean(0), k_rest.var(0)
        self.v_mean, self.v_spread = v_rest.mean(0), v_rest.var(0).sum()
        self.v_square = np.mean(np.sum(v_rest * v_rest, 1))
        self.rounding = rounding_of_channels(v, choice.values, choice.values_per)
        self.common = common_rounding(v, choice.values, self.rounding)
        self.steps = steps(k, choice.per) if choice.scores == "int8" else None
        self.rest = rest


def score_errors(q, moments, scale, choice):
    """sigma_i^2 for most keys [N], and sigma_ij^2 for the longest [N, 8]."""
    m = moments
    tilt = m.variance * np.minimum(scale ** 2 * q * q * m.variance, 2 * m.log)
    if choice.scores == "int8":
        a, size = steps(q, choice.per), np.sum(q * q, 1)
        most = a * (m.variance + tilt).sum(1) + size * m.steps[m.rest].mean()
        longest = np.outer(a, np.sum(m.key ** 2, 1)) + np.outer(size, m.steps[m.long])
        return scale ** 2 / 12 * most, scale ** 2 / 12 * longest
    factor = (RHO[choice.scores] * scale) ** 2
    most = np.sum(q * q * (2 * m.variance + m.mean ** 2 + 2 * tilt), 1)
    return factor * most, 2 * factor * (q * q) @ (m.key ** 2).T


def shares(q, moments, scale, tau):
    """p_ij [N, 8], r_i [N], and the largest weight of a row."""
    m = moments
    middle = scale * q @ m.mean
    reach = np.minimum(np.sqrt(2 * tau * m.log), tau + m.log)
    total = np.where(tau > 2 * m.log, middle + np.sqrt(2 * tau * m.log), np.log(m.count) + middle + tau / 2)
    scores = scale * q @ m.key.T
    whole = np.logaddexp(total, np.logaddexp.reduce(scores, 1))
    p = np.exp(scores - whole[:, None])
    largest = np.maximum(p.max(1, initial=0), np.exp(np.minimum(middle + reach - whole, 0)))
    return p, np.exp(total - whole), largest


def weight_errors(kind, p, r, largest, effect, moments):
    m = moments
    size = np.sum(m.value ** 2, 1)
    squares = r ** 2 * m.v_square / effect + p ** 2 @ size
    if kind == "int8":      # no more than the weights themselves
        return np.minimum(largest ** 2 / (12 * 127 ** 2) * (m.count * m.v_square + size.sum()), squares)
    return RHO[kind] ** 2 * squares


def estimate(q, k, v, scale, choice, laws=()):
    """The relative L2 error that a choice is expected to have on a head."""
    both = row_estimates(q, k, v, scale, choice, laws)
    return float(max(np.sqrt(error.sum() / output.sum()) for error, output in both))


def row_estimates(q, k, v, scale, choice, laws=()):
    """e_i and o_i of all rows, without and with keys that are looked at one by one."""
    q, k, v = (np.asarray(x, float) for x in (q, k, v))
    centre = v.mean(0) if "vmean" in laws else np.zeros(v.shape[1])
    v = v - centre
    if "kmean" in laws:
        k = k - k.mean(0)
    if "rotate" in laws:
        turn = reference.rotation(q.shape[1]).astype(float)
        q, k = q @ turn, k @ turn
    return [by_moments(q, k, v, centre, scale, choice, longest) for longest in (0, LONGEST)]


def by_moments(q, k, v, centre, scale, choice, longest):
    m = Moments(k, v, choice, longest)
    tau = scale ** 2 * ((q * q) @ m.variance)
    effect = np.maximum(1, m.count * np.exp(-np.minimum(tau, 700)))
    most, of_long = score_errors(q, m, scale, choice)
    p, r, largest = shares(q, m, scale, tau)
    middle = p @ m.value + np.outer(r, m.v_mean)
    own = r ** 2 * m.v_spread / effect
    distance = (np.sum(middle ** 2, 1)[:, None] - 2 * middle @ m.value.T + np.sum(m.value ** 2, 1)) + own[:, None]
    values = r ** 2 * m.rounding.sum() / effect + m.common
    if choice.values == "int8":
        values = values + np.sum(p * p, 1) * m.rounding.sum()
    else:
        values = values + RHO[choice.values] ** 2 * (p * p) @ np.sum(m.value ** 2, 1)
    error = (spread_error(most) * own + np.sum(p ** 2 * spread_error(of_long) * distance, 1)
             + weight_errors(choice.weights, p, r, largest, effect, m) + values)
    output = np.maximum(np.sum((middle + centre) ** 2, 1) - r ** 2 * m.v_spread / m.count, 0) + own
    return error, output


def flat_estimate(q, k, v, scale, choice):
    """The same from five numbers of the head: sqrt(mean sigma^2 + rho_P^2 + rho_V^2), no rows, no long keys, no mean of V."""
    q, k, v = (np.asarray(x, float) for x in (q, k, v))
    variance = k.var(0)
    if choice.scores == "int8":
        sigma = scale ** 2 / 12 * (steps(q, choice.per).mean() * variance.sum()
                                   + np.mean(np.sum(q * q, 1)) * steps(k, choice.per).mean())
    else:
        sigma = (RHO[choice.scores] * scale) ** 2 * np.mean(q * q, 0) @ (variance + np.mean(k * k, 0))
    rounding = rounding_of_channels(v, choice.values, choice.values_per)
    weights = RHO.get(choice.weights, 1 / (127 * 12 ** 0.5)) ** 2
    return float(np.sqrt(spread_error(sigma) + weights + rounding.sum() / np.mean(np.sum(v * v, 1))))


def sound_bound(q, k, scale, choice):
    """A bound of the component-wise error that holds for every input within the range of normal numbers; V in a float format.

    |ds_ij| <= Delta for all pairs gives weights within exp(2 Delta), as numerator and denominator move by exp(Delta) each.
    """
    norm = lambda x: float(np.linalg.norm(np.asarray(x, float), axis=1).max(initial=0))
    if choice.scores == "int8":
        one = lambda x: float(np.abs(np.asarray(x, float)).sum(1).max(initial=0))
        a, b = (float(np.sqrt(steps(x, choice.per).max())) / 2 for x in (q, k))
        delta = scale * (a * one(k) + b * one(q) + a * b * q.shape[1])
    else:
        u = HALF[choice.scores]
        delta = scale * (2 * u + u * u) * norm(q) * norm(k)
    rounded = (1 + HALF.get(choice.weights, np.inf)) * (1 + HALF.get(choice.values, np.inf))
    return float(np.exp(min(2 * delta, 700)) * rounded - 1)


STUDIED = ("e4m3", "int8 row QK", "int8 row, int8 PV", "bf16")
MARGINS = (1.0, 1.25, 1.5, 2.0)


def one(name, seed, options):
    """For each studied choice: measured, estimated, flat, measured component-wise, sound bound."""
    head = families.make(name, options.N, options.M, options.D, seed=1000 + seed)
    q, k, v = head.arrays()
    output, magnitude, _ = reference.exact_rows(q, k, v, head.scale)
    rows = []
    for key in STUDIED:
        choice = BY_NAME[key]
        made = reference.simulate(q, k, v, head.scale, choice)
        rows.append((reference.relative_l2(made, output), estimate(q, k, v, head.scale, choice),
                     flat_estimate(q, k, v, head.scale, choice),
                     reference.componentwise(made, output, magnitude), sound_bound(q, k, head.scale, choice)))
    return rows


def study(options):
    """{family: array [choice, quantity, seed]}, of as many seeds as there is time for."""
    end = time.monotonic() + 60 * options.minutes
    found = {name: [] for name in options.family}
    for seed in range(options.seeds):
        if time.monotonic() > end:
            break
        for name in options.family:
            found[name].append(one(name, seed, options))
        if seed % 50 == 49:
            print(f"{seed + 1} seeds", file=sys.stderr, flush=True)
    return {name: np.array(rows).transpose(1, 2, 0) for name, rows in found.items()}


def print_study(key, studies):
    print(f"### {key}: estimate over measured relative L2 error\n")
    rows = []
    for name, found in studies.items():
        measured, estimates, flat, component, bounds = found[STUDIED.index(key)]
        ratio, level = estimates / measured, flat / measured
        rows.append([name, short(np.median(measured)), f"{np.median(ratio):.2f}", f"{ratio.min():.2f} … {ratio.max():.2f}"]
                    + [f"{100 * np.mean(ratio * margin < 1):.1f} %" for margin in MARGINS]
                    + [f"{np.median(level):.2f}", f"{level.min():.2f}", short(np.median(component)), short(np.median(bounds)),
                       str(int(np.sum(bounds < component)))])
    markdown(["family", "measured", "estimate / measured", "range"] + [f"too low, times {m:g}" for m in MARGINS]
             + ["flat / measured", "least", "component-wise", "bound", "bound too low"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", 1000), ("N", 128), ("M", 512), ("D", 64)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--minutes", type=float, default=60, help="begin no further seed after this time")
    parser.add_argument("--family", nargs="+", default=list(families.FAMILIES), choices=list(families.FAMILIES))
    options = parser.parse_args()
    studies = study(options)
    count = studies[options.family[0]].shape[2]
    print(f"## The estimate over {count} seeds, N = {options.N}, M = {options.M}, D = {options.D}\n")
    for key in STUDIED:
        print_study(key, studies)


if __name__ == "__main__":
    main()
