"""Inputs of attention-like folds with a known structure, deterministic for a seed.

Every family gives Q [N, D], K [N, D] and V [N, D] in float32, rounded to bf16 as a kernel would
read them; scores are q·k/sqrt(D). V is normal with mean 0, the hard case: nothing of an error
in the weights cancels in the weighted mean.

`FAMILIES` maps a name to a `Family`. `must_stay_dense` says that nothing with fewer keys or rows is
near at an error of 1e-2, so that a decision has to be dense. In the hidden families a wrong
decision is one that leaves the rows wrong which few samples contain. `rank_of(N)` is the number of different keys or rows where
a family is made of such, else None.
"""
from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np


def bf16(x):
    """Rounds to bf16, to nearest even, and keeps the values in float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


@dataclass
class Family:
    """One kind of input: how it is made and what is known of it."""
    make: Callable  # (rng, N, D) -> (Q, K)
    must_stay_dense: bool = False
    rank_of: Optional[Callable] = None
    note: str = ""


FAMILIES = {}


def family(name, **known):
    def register(make):
        FAMILIES[name] = Family(make, note=make.__doc__, **known)
        return make
    return register


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def subspace(rng, D, d):
    """An orthonormal basis of a d-dimensional subspace, as rows."""
    return np.linalg.qr(normal(rng, D, d))[0].T.astype(np.float32)


def direction(rng, D):
    u = normal(rng, D)
    return u / np.linalg.norm(u)


@family("normal", must_stay_dense=True)
def _(rng, N, D):
    """Q and K normal: scores of standard deviation 1 and no structure."""
    return normal(rng, N, D), normal(rng, N, D)


@family("clusters", rank_of=lambda N: N // 64)
def _(rng, N, D):
    """N/64 clusters of keys in random order, 0.004 around their centres in each coordinate."""
    centres = normal(rng, N // 64, D)
    return normal(rng, N, D), centres[rng.integers(0, N // 64, N)] + 0.004 * normal(rng, N, D)


@family("wide-clusters", must_stay_dense=True)
def _(rng, N, D):
    """64 clusters of keys with 0.1 around their centres: low rank plus too much noise."""
    return normal(rng, N, D), normal(rng, 64, D)[rng.integers(0, 64, N)] + 0.1 * normal(rng, N, D)


@family("known-rank", rank_of=lambda N: N // 64)
def _(rng, N, D):
    """N/64 different keys: the exponentials have exactly this rank."""
    return normal(rng, N, D), normal(rng, N // 64, D)[rng.integers(0, N // 64, N)]


@family("repeated-rows", rank_of=lambda N: N // 64)
def _(rng, N, D):
    """N/64 different rows over normal keys: the same rank from the other side."""
    return normal(rng, N // 64, D)[rng.integers(0, N // 64, N)], normal(rng, N, D)


@family("decay")
def _(rng, N, D):
    """512 different keys whose frequencies fall geometrically to 1/1000 of the first."""
    weight = 1000.0 ** (-np.arange(512) / 511)
    return normal(rng, N, D), normal(rng, 512, D)[rng.choice(512, N, p=weight / weight.sum())]


@family("smooth-2")
def _(rng, N, D):
    """Q and K in one plane, scores of standard deviation 1: singular values fall fast."""
    basis = subspace(rng, D, 2) * (D / 2) ** 0.25
    return normal(rng, N, 2) @ basis, normal(rng, N, 2) @ basis


@family("smooth-4")
def _(rng, N, D):
    """Q and K in a subspace of dimension 4, scores of standard deviation 1."""
    basis = subspace(rng, D, 4) * (D / 4) ** 0.25
    return normal(rng, N, 4) @ basis, normal(rng, N, 4) @ basis


@family("narrow-rows")
def _(rng, N, D):
    """Q in a subspace of dimension 3, K normal in all of them."""
    basis = subspace(rng, D, 3) * (D / 3) ** 0.5
    return normal(rng, N, 3) @ basis, normal(rng, N, D)


@family("uniform", rank_of=lambda N: 1)
def _(rng, N, D):
    """All keys are equal: every weight is 1/N."""
    return normal(rng, N, D), np.repeat(normal(rng, 1, D), N, 0)


@family("diffuse")
def _(rng, N, D):
    """Normal inputs with scores of standard deviation 0.1."""
    return 0.1 * normal(rng, N, D), normal(rng, N, D)


@family("low-rank-plus-noise")
def _(rng, N, D):
    """smooth-2 with noise of 0.003 in the scores."""
    Q, K = FAMILIES["smooth-2"].make(rng, N, D)
    return Q + 0.003 * normal(rng, N, D), K + 0.003 * normal(rng, N, D)


@family("sinks")
def _(rng, N, D):
    """Four keys that every row attends to with about 0.97 of its weight, beside normal ones."""
    u, K = direction(rng, D), normal(rng, N, D)
    K[rng.choice(N, 4, False)] += np.log(N) * 1.3 * u
    return normal(rng, N, D) + D ** 0.5 * u, K


@family("huge-key")
def _(rng, N, D):
    """One key of 100 times the norm among keys with nearly constant scores."""
    K = 0.05 * normal(rng, N, D)
    K[rng.integers(N)] = 5 * normal(rng, D)
    return normal(rng, N, D), K


@family("diagonal", must_stay_dense=True)
def _(rng, N, D):
    """q_i = 2·k_i: every row sees mostly its own key."""
    K = normal(rng, N, D)
    return 2 * K, K


@family("peaked", must_stay_dense=True)
def _(rng, N, D):
    """Normal inputs with scores of standard deviation 8: a few keys of each row count."""
    return 8 * normal(rng, N, D), normal(rng, N, D)


@family("local")
def _(rng, N, D):
    """Positions on a slow curve: rows see their neighbours, and consecutive keys are alike."""
    t = np.arange(N)[:, None] / 64
    phase = 2 * np.pi * rng.random(D // 2)
    speed = rng.standard_normal(D // 2)
    curve = np.concatenate([np.cos(t * speed + phase), np.sin(t * speed + phase)], 1)
    curve = 4 * curve.astype(np.float32)
    return curve, curve + 0.02 * normal(rng, N, D)


def hidden(rng, N, D, row_strength, key_spread):
    """64 clusters of keys that are points but for a spread along u; 1 row in 1000 looks along u."""
    u = direction(rng, D)
    keys = normal(rng, 64, D)[rng.integers(0, 64, N)]
    keys += np.outer(key_spread * normal(rng, N) - keys @ u, u)
    rows = normal(rng, N, D)
    rows -= np.outer(rows @ u, u)
    rows[rng.choice(N, max(N // 1000, 1), False)] = row_strength * D ** 0.5 * u
    return rows, keys


@family("hidden-far")
def _(rng, N, D):
    """A residual that 1 row in 1000 sees; these rows have 8 times the norm of the others."""
    return hidden(rng, N, D, 8, 1)


@family("hidden-near")
def _(rng, N, D):
    """The same with rows of the common norm and keys that are spread more."""
    return hidden(rng, N, D, 1, 8)


def inputs(name, N, D, seed=1):
    """Q, K, V of a family, in bf16 values."""
    rng = np.random.default_rng([seed, sum(name.encode()), N, D])
    Q, K = FAMILIES[name].make(rng, N, D)
    return bf16(Q), bf16(K), bf16(normal(rng, N, D))
