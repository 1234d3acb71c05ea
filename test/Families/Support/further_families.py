"""Forms that combine the others, or that today's engines have beside them."""
import numpy as np

from family import dots, family, normal, pairs, per_head, positions, qkv, softmax, values
from shape_families import GROUPED, arrays


def scores(v):
    return dots(v["Q"], v["K"]) * v["scale"]


def window(v, z, first=0):
    """The last w keys up to the own one, and the first ones."""
    i, j = positions(z.N, z.M)
    distance = i + z.M - z.N - j
    return (distance >= 0) & ((distance < v["w"]) | (j < first))


def blocks(rng, z):
    return {"block": rng.random((z.B, z.H, z.U, z.W)) < 0.5}


def in_blocks(v, z):
    """Every block's flag, on all of its elements."""
    return v["block"].repeat(64, axis=2).repeat(64, axis=3)[:, :, :z.N, :z.M]


family("block_sparse", extra=blocks, present=in_blocks,
       sizes=[{**s, "U": -(-s["N"] // 64), "W": -(-s["M"] // 64)} for s in pairs()])
family("first_and_last", extra=lambda rng, z: {"first": 4, "w": 30}, present=lambda v, z: window(v, z, v["first"]))
family("capped_window", sizes=GROUPED,
       inputs=lambda rng, z: {**arrays(rng, z, Q="BHND", K="BGMD", V="BGMD"), "cap": 2.0, "w": 50},
       expected=lambda v, z: {"O": values(softmax(
           v["cap"] * np.tanh(dots(v["Q"], per_head(v["K"], z.H)) * v["scale"] / v["cap"]), window(v, z)),
           per_head(v["V"], z.H))})


def bytes_of(rng, z):
    shape = (z.B, z.H, z.M, z.D)
    return {"Q": normal(rng, z.B, z.H, z.N, z.D), "K": rng.integers(-128, 128, shape),
            "V": rng.integers(-128, 128, shape), "k": rng.uniform(0.5, 2, shape[:3]) / 128,
            "v": rng.uniform(0.5, 2, shape[:3]) / 128, "scale": z.D ** -0.5}


def quantised(v, z):
    k, w = v["K"] * v["k"][..., None], v["V"] * v["v"][..., None]
    return {"O": values(softmax(dots(v["Q"], k) * v["scale"]), w)}


family("quantised_cache", inputs=bytes_of, expected=quantised)


def squared_distance(s, v, z):
    return -v["scale"] * ((v["Q"][:, :, :, None] - v["K"][:, :, None]) ** 2).sum(-1)


family("squared_distance", score=squared_distance)


def unscaled(rng, z):
    inputs = qkv(rng, z)
    del inputs["scale"]
    return {**inputs, "t": rng.uniform(1, 8, z.H)}


def normalised(s, v, z):
    def unit(x):
        return x / np.linalg.norm(x, axis=-1, keepdims=True)
    return dots(unit(v["Q"]), unit(v["K"])) * v["t"][:, None, None]


family("normalised_heads", inputs=unscaled, score=normalised)


def talking(v, z):
    mixed = np.einsum("hg,bgij->bhij", v["before"], scores(v))
    return {"O": values(np.einsum("hg,bgij->bhij", v["after"], softmax(mixed)), v["V"])}


# Every weight is computed for every other head anew, which is slow: no large sizes yet.
family("talking_heads", expected=talking, sizes=[s for s in pairs() if s["N"] * s["M"] < 200],
       extra=lambda rng, z: {"before": normal(rng, z.H, z.H), "after": normal(rng, z.H, z.H)})
family("gated", extra=lambda rng, z: {"gate": normal(rng, z.B, z.H, z.N, z.D)},
       expected=lambda v, z: {"O": values(softmax(scores(v)), v["V"]) / (1 + np.exp(-v["gate"]))})
