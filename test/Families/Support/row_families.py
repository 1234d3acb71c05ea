"""Row functions: from the scores of a query to its weights."""
from math import erf

import numpy as np

from family import dots, family, log_sum_exp, normal, pairs, positions, qkv, softmax, values

KINDS = ("f64", "f32", "bf16")
# Where a row's weights do not add up to 1, one of them and the result may be a row's
# only roundings, and both the largest there are.
TWO = {"bf16": 2 ** -8}


def scores(v):
    return dots(v["Q"], v["K"]) * v.get("scale", 1.0)


def bottom_right(v, z):
    i, j = positions(z.N, z.M)
    return j <= i + z.M - z.N


def top_left(v, z):
    i, j = positions(z.N, z.M)
    return j <= i


def per_query(x):
    """Numbers per query, in front of the keys."""
    return x[..., None]


def quotient(x, total):
    """x / total; rows that hold nothing are 0."""
    return x / np.where(total == 0, 1, total)


def plain(v, weights):
    return {"O": values(weights, v["V"])}


# Softmax with more in the sum.


def sink(v, z):
    """The sink is one more key, with a value of 0."""
    logit = np.broadcast_to(v["sink"][:, None, None], (z.B, z.H, z.N, 1))
    s = np.concatenate([scores(v), logit], axis=-1)
    present = np.concatenate([bottom_right(v, z), np.ones((z.N, 1), bool)], axis=-1)
    return plain(v, softmax(s, present)[..., :-1])


def softmax_one(v, z):
    s = np.concatenate([scores(v), np.zeros((z.B, z.H, z.N, 1))], axis=-1)
    return plain(v, softmax(s)[..., :-1])


family("sink", extra=lambda rng, z: {"sink": normal(rng, z.H)}, expected=sink, present=bottom_right, kinds=KINDS)
family("softmax_one", expected=softmax_one)
family("log_sum_exp", present=bottom_right, kinds=KINDS,
       expected=lambda v, z: {**plain(v, softmax(scores(v), bottom_right(v, z))),
                              "lse": log_sum_exp(scores(v), bottom_right(v, z))})

# Weights of each key alone.


def sigmoid(v, z):
    return plain(v, np.where(top_left(v, z), 1 / (1 + np.exp(-scores(v) - v["bias"])), 0))


def relu_squared(v, z):
    present = bottom_right(v, z)
    weights = np.where(present, np.maximum(scores(v), 0) ** 2, 0)
    return plain(v, weights / per_query(np.maximum(present.sum(-1), 1)))


def gelu(v, z):
    s = scores(v)
    return plain(v, s * (1 + np.vectorize(erf, otypes=[float])(s / np.sqrt(2))) / 2 / max(z.M, 1))


family("sigmoid", bounds=TWO, extra=lambda rng, z: {"bias": -3.5}, expected=sigmoid, present=top_left)
family("relu", bounds=TWO, expected=lambda v, z: plain(v, np.maximum(scores(v), 0) / max(z.M, 1)))
family("relu_squared", bounds=TWO, expected=relu_squared, present=bottom_right)
family("gelu", bounds=TWO, expected=gelu)
family("linear", bounds=TWO, expected=lambda v, z: plain(v, np.where(top_left(v, z), scores(v), 0)), present=top_left)


def decayed(v, z):
    i, j = positions(z.N, z.M)
    return np.where(j <= i, scores(v) * v["g"][:, None, None] ** np.maximum(i - j, 0), 0)


def retention(v, z):
    s = decayed(v, z)
    return plain(v, s / per_query(np.maximum(abs(s.sum(-1)), 1)))


def decays(rng, z):
    """As in the paper, a base for each head near 1."""
    return {"g": 1 - 2.0 ** (-3 - np.arange(z.H))}


family("retention", bounds=TWO, extra=decays, expected=retention, present=top_left)
family("decay", bounds=TWO, extra=decays, expected=lambda v, z: plain(v, decayed(v, z)), present=top_left)

# Features in place of exponentials.


def unscaled(rng, z):
    inputs = qkv(rng, z)
    del inputs["scale"]
    return inputs


def elu_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def feature_map(visible):
    def expected(v, z):
        s = np.where(visible(v, z), dots(elu_one(v["Q"]), elu_one(v["K"])), 0)
        return plain(v, quotient(s, per_query(s.sum(-1))))
    return expected


family("feature_map", inputs=unscaled, expected=feature_map(top_left), present=top_left)
# With no key 0 / 0 is NaN, as it says.
family("feature_map_sums", inputs=unscaled, expected=feature_map(lambda v, z: True),
       sizes=[s for s in pairs() if s["M"] and s["N"] * s["M"] < 10000])

# Factors behind softmax.

family("scaled_weights", extra=lambda rng, z: {"factor": normal(rng, z.B, z.N, z.M)},
       expected=lambda v, z: plain(v, softmax(scores(v)) * v["factor"][:, None]))
family("dropout_array", extra=lambda rng, z: {"keep": rng.random((z.B, z.H, z.N, z.M)) < 0.7, "rate": 0.3},
       expected=lambda v, z: plain(v, softmax(scores(v)) * v["keep"] / (1 - v["rate"])))


def hashed(v, z):
    """Which elements stay, in integers of 32 bits."""
    x = np.arange(z.B * z.H * z.N * z.M, dtype=np.uint64).reshape(z.B, z.H, z.N, z.M) ^ np.uint64(v["seed"])
    for _ in range(2):
        x = ((x ^ (x >> np.uint64(16))) * np.uint64(0x45D9F3B)) & np.uint64(0xFFFFFFFF)
    return ((x ^ (x >> np.uint64(16))) & np.uint64(3)) != 0


family("dropout_hash", extra=lambda rng, z: {"seed": 12345},
       expected=lambda v, z: plain(v, np.where(hashed(v, z), softmax(scores(v)) / 0.75, 0)))


def two(rng, z):
    return {"Q2": normal(rng, z.B, z.H, z.N, z.D), "K2": normal(rng, z.B, z.H, z.M, z.D),
            "weight": rng.uniform(0.2, 0.8, z.H)}


def differential(v, z):
    second = softmax(dots(v["Q2"], v["K2"]) * v["scale"])
    return plain(v, softmax(scores(v)) - v["weight"][:, None, None] * second)


family("differential", extra=two, expected=differential, kinds=KINDS)

# Scores and weights as results.


def with_scores(v, z):
    """A score that is absent is 0 in the result."""
    present = bottom_right(v, z)
    return {**plain(v, softmax(scores(v), present)), "S": np.where(present, scores(v), 0)}


def with_weights(v, z):
    weights = softmax(scores(v), bottom_right(v, z))
    return {**plain(v, weights), "P": weights}


family("scores_returned", expected=with_scores, present=bottom_right)
family("weights_returned", expected=with_weights, present=bottom_right)


def small_integers(rng, z):
    """Scores that every type computes exactly, so that equal ones are equal."""
    return {"Q": rng.integers(-1, 2, (z.B, z.H, z.N, z.D)), "K": rng.integers(-1, 2, (z.B, z.H, z.M, z.D)),
            "V": normal(rng, z.B, z.H, z.M, z.D), "scale": 0.125}


def hard(v, z):
    present = np.broadcast_to(top_left(v, z), (z.B, z.H, z.N, z.M))
    s = np.where(present, scores(v), -np.inf)
    largest = present & (s == s.max(-1, keepdims=True, initial=-np.inf))
    return plain(v, quotient(largest, per_query(largest.sum(-1))))


family("hard", inputs=small_integers, expected=hard, present=top_left)
