"""A family of attention: a specification, inputs, and its meaning by hand.

The meaning of a family is written in NumPy and float64 from the formula, on whole
arrays [B, H, N, M]. It shares nothing with the compiler. What most families have in
common stands here: Q [B, H, N, D], K and V [B, H, M, D], a score s = scale Q·K, a
score function, a predicate that says which keys a query sees, and softmax.
"""
import os
from types import SimpleNamespace

import numpy as np

import moa_testing as mt

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Rounding of one operation in the type that scores are computed in.
ROUNDING = {"f64": 2.0 ** -53, "f32": 2.0 ** -24, "bf16": 2.0 ** -24}

# One query, one key, no query, no key, whole tiles, sizes that no tile divides.
PAIRS = [(1, 1), (1, 65), (7, 20), (64, 128), (113, 203), (203, 113), (239, 1), (0, 5), (5, 0)]
LONE = [1, 17, 64, 113, 203, 0]
# Many tiles of keys, several blocks of rows.
ON_GPU = mt.TARGET in ("cuda", "ptx")
if ON_GPU:
    PAIRS.append((300, 1031))
    LONE.append(517)


def pairs(**more):
    """Sizes for N queries and M keys; one has no batch entry."""
    return [{"B": 2, "H": 2, "N": n, "M": m, **more} for n, m in PAIRS] + [
        {"B": 0, "H": 2, "N": 5, "M": 7, **more}]


def extending(**more):
    """Sizes with as many keys as queries or more."""
    return [s for s in pairs(**more) if s["N"] <= s["M"]]


def lone(**more):
    """Sizes where queries and keys are the same N positions."""
    return [{"B": 2, "H": 2, "N": n, **more} for n in LONE] + [{"B": 0, "H": 2, "N": 5, **more}]


def normal(rng, *shape):
    return rng.standard_normal(shape)


def qkv(rng, z):
    keys = getattr(z, "M", z.N)
    return {"Q": normal(rng, z.B, z.H, z.N, z.D), "K": normal(rng, z.B, z.H, keys, z.D),
            "V": normal(rng, z.B, z.H, keys, z.D), "scale": z.D ** -0.5}


def positions(n, m):
    """i and j, as [N, 1] and [1, M]."""
    return np.arange(n)[:, None], np.arange(m)[None, :]


def dots(q, k):
    return np.einsum("bhid,bhjd->bhij", q, k)


def softmax(s, present=True):
    """Weights over the keys that are present; rows without any are 0."""
    present = np.broadcast_to(present, s.shape)
    top = np.where(present, s, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    e = np.where(present, np.exp(np.where(present, s - np.where(top > -np.inf, top, 0), 0)), 0)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


def log_sum_exp(s, present=True):
    present = np.broadcast_to(present, s.shape)
    top = np.where(present, s, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    some = top > -np.inf
    e = np.where(present, np.exp(np.where(present, s - np.where(some, top, 0), 0)), 0)
    total = np.where(some, e.sum(-1, keepdims=True), 1)
    return np.where(some, top + np.log(total), -np.inf)[..., 0]


def values(weights, v):
    return np.einsum("bhij,bhjd->bhid", weights, v)


def per_head(kv, heads):
    """K or V of [B, G, …] with an entry per query head."""
    if not heads:
        return kv[:, :0]
    return kv[:, np.arange(heads) // (heads // kv.shape[1])]


class Family:
    """One row of the table.

    extra(rng, z)       inputs beyond Q, K, V and scale; z has the sizes
    score(s, v, z)      the score function; v has the inputs by name
    present(v, z)       which keys a query sees; broadcasts to [B, H, N, M]
    inputs, expected    in place of all that: all inputs; outputs by name
    unseen(v, z)        by input, which of its rows nobody sees; follows from `present`
    largest(z)          how large scores get, if that is much more than 10: rounding
                        one of them moves its weight by as much as this times the rounding
    fails               target or (target, element type) -> part of the message with which it
                        fails for now; another failure or none is an error
    """

    def __init__(self, name, *, sizes=None, settings=None, kinds=("f32", "bf16"), extra=None,
                 score=None, present=None, inputs=None, expected=None, unseen=None,
                 largest=None, bounds=None, fails=None, small=None):
        self.name, self.kinds = name, kinds
        self.sizes = pairs() if sizes is None else sizes
        self.settings = {"D": 64} if settings is None else settings
        self.extra, self.score, self.present = extra, score, present
        self.special_inputs, self.special_expected = inputs, expected
        self.special_unseen, self.largest = unseen, largest
        self.bounds, self.fails = bounds or {}, fails or {}
        # Sizes for an interpreter; without a choice the smallest of `sizes`.
        self.small = small

    @property
    def spec(self):
        return os.path.join(FOLDER, self.name + ".moa")

    def namespace(self, sizes):
        return SimpleNamespace(**self.settings, **sizes)

    def inputs(self, rng, z):
        if self.special_inputs:
            return self.special_inputs(rng, z)
        return {**qkv(rng, z), **(self.extra(rng, z) if self.extra else {})}

    def expected(self, v, z):
        if self.special_expected:
            return self.special_expected(v, z)
        s = dots(v["Q"], v["K"]) * v.get("scale", 1.0)
        if self.score:
            s = self.score(s, v, z)
        present = self.present(v, z) if self.present else True
        return {"O": values(softmax(s, present), v["V"])}

    def unseen(self, v, z):
        if self.special_unseen:
            return self.special_unseen(v, z)
        if not self.present:
            return {}
        keys = v["K"].shape[:3]
        seen = np.broadcast_to(self.present(v, z), keys[:2] + (z.N, keys[2])).any(axis=2)
        return {"K": ~seen, "V": ~seen}

    def bound(self, kind, output_kind, z):
        """The relative L2 error that an output may have."""
        # An output that is declared narrower than T cannot be better than it is.
        bound = max(mt.BOUNDS[kind], mt.BOUNDS[output_kind], self.bounds.get(kind, 0))
        return bound + (self.largest(z) * ROUNDING[kind] if self.largest else 0)


FAMILIES = {}


def family(name, **how):
    assert name not in FAMILIES, name
    FAMILIES[name] = Family(name, **how)
