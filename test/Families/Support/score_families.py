"""Score functions."""
import math

import numpy as np

from family import dots, extending, family, lone, normal, pairs, positions, qkv, softmax, values


def each(z):
    """i and j of every pair of a query and a key."""
    return positions(z.N, z.M)


def quiet(rng, z):
    """Inputs whose scores need no scale."""
    inputs = qkv(rng, z)
    del inputs["scale"]
    return {**inputs, "Q": inputs["Q"] / 8}


family("identity", inputs=quiet)
family("scaled")
family("squared", score=lambda s, v, z: s ** 2)
family("difference", largest=lambda z: z.N + z.M,
       score=lambda s, v, z: s + (each(z)[0] - each(z)[1]))
family("distance", largest=lambda z: z.N + z.M,
       score=lambda s, v, z: s + np.abs(each(z)[0] - each(z)[1]))
family("capped_distance", largest=lambda z: 256, sizes=pairs() + [{"B": 1, "H": 1, "N": 20, "M": 600}],
       score=lambda s, v, z: s + np.minimum(np.abs(each(z)[0] - each(z)[1]), 256))
family("alibi", largest=lambda z: (z.N + z.M) / 2,
       extra=lambda rng, z: {"slope": 2.0 ** -np.arange(1, z.H + 1)},
       score=lambda s, v, z: s + v["slope"][:, None, None] * (each(z)[1] - each(z)[0]))
family("softcap", extra=lambda rng, z: {"cap": 1.5},
       score=lambda s, v, z: v["cap"] * np.tanh(s / v["cap"]))
family("head_scale", extra=lambda rng, z: {"head": normal(rng, z.H)},
       score=lambda s, v, z: s * v["head"][:, None, None])

EXTENT = {"b": "B", "h": "H", "i": "N", "j": "M"}
for axes in ("b", "h", "i", "j", "bi", "bhi", "ij", "bij", "bhij"):
    # One type each in the tests, all in the tables.
    family("bias_" + axes, kinds=("f32",) if len(axes) < 2 else ("bf16",),
           extra=lambda rng, z, of=axes: {"bias": normal(rng, *(getattr(z, EXTENT[a]) for a in of))},
           score=lambda s, v, z, of=axes: np.einsum(f"bhij,{of}->bhij", np.ones_like(s), v["bias"]) + s)

# Relative positions.

family("relative", extra=lambda rng, z: {"rel": normal(rng, z.N + z.M)},
       score=lambda s, v, z: s + v["rel"][each(z)[0] - each(z)[1] + z.M])
family("relative_clipped", settings={"D": 64, "C": 16},
       extra=lambda rng, z: {"rel": normal(rng, z.H, 33)},
       score=lambda s, v, z: s + v["rel"][:, np.clip(each(z)[0] - each(z)[1], -16, 16) + 16])


def t5_bucket(i, j):
    """As the paper says it, in integers: behind 8, bucket 8 + k begins at 8·2^(k/2)."""
    distance = abs(i - j)
    bucket = distance
    if distance >= 8:
        bucket = 8
        while bucket < 15 and distance ** 2 >= 64 * 2 ** (bucket - 7):
            bucket += 1
    return bucket + (16 if j > i else 0)


def t5(s, v, z):
    buckets = [[t5_bucket(i, j) for j in range(z.M)] for i in range(z.N)]
    bucket = np.array(buckets, int).reshape(z.N, z.M)
    return s + np.moveaxis(v["rel"][bucket], -1, 0)


family("relative_t5", extra=lambda rng, z: {"rel": normal(rng, 32, z.H)}, score=t5)


def grid_inputs(rng, z):
    m = z.U * z.W
    return {"Q": normal(rng, z.B, z.H, z.N, z.D), "K": normal(rng, z.B, z.H, m, z.D),
            "V": normal(rng, z.B, z.H, m, z.D), "scale": z.D ** -0.5,
            "rel_h": normal(rng, z.B, z.H, z.N, z.U), "rel_w": normal(rng, z.B, z.H, z.N, z.W)}


def grid_scores(s, v, z):
    by_row = np.repeat(v["rel_h"], z.W, axis=3)
    by_column = np.tile(v["rel_w"], (1, 1, 1, z.U))
    return s + by_row + by_column


family("relative_2d", inputs=grid_inputs, score=grid_scores,
       sizes=[{"B": b, "H": 2, "N": n, "U": u, "W": w} for b, n, u, w in
              ((2, 1, 1, 1), (2, 7, 5, 3), (2, 35, 5, 7), (2, 113, 14, 14), (1, 64, 8, 16), (1, 3, 4, 0), (1, 0, 3, 4),
               (0, 5, 2, 3))])

family("indirect_bias", sizes=pairs(R=11),
       extra=lambda rng, z: {"t": normal(rng, z.R), "idx": rng.integers(0, z.R, (z.B, z.N, z.M))},
       score=lambda s, v, z: s + v["t"][v["idx"]][:, None])
family("floor_quotient", largest=lambda z: z.N,
       score=lambda s, v, z: s - each(z)[0] // (1 + each(z)[1]))
family("local_boost", score=lambda s, v, z: np.where(abs(each(z)[0] - each(z)[1]) <= 8, 2 * s, s))


def rbf(s, v, z):
    distance = np.sqrt(((v["X"][:, :, None] - v["Y"][:, None]) ** 2).sum(-1))
    for k in range(z.R):
        bump = np.exp(-v["gamma"][k] * (distance - v["mu"][k]) ** 2)
        s = s + v["w"][:, k, None, None] * bump[:, None]
    return s


family("rbf_bias", settings={"D": 64, "R": 8}, score=rbf,
       extra=lambda rng, z: {"X": normal(rng, z.B, z.N, 3), "Y": normal(rng, z.B, z.M, 3),
                             "mu": np.linspace(0, 4, z.R), "gamma": rng.uniform(0.5, 2, z.R),
                             "w": normal(rng, z.H, z.R)})


def graphormer_inputs(rng, z):
    return {**qkv(rng, z), "spatial": normal(rng, z.H, z.S), "length": rng.integers(0, z.S, (z.B, z.N, z.N)),
            "weight": normal(rng, z.H, z.L, z.E), "edge": rng.integers(0, z.E, (z.B, z.N, z.N, z.L))}


def graphormer(s, v, z):
    s = s + np.moveaxis(v["spatial"][:, v["length"]], 1, 0)
    for step in range(z.L):
        s = s + np.moveaxis(v["weight"][:, step][:, v["edge"][..., step]], 1, 0) / z.L
    return s


family("graphormer", settings={"D": 64, "L": 5}, sizes=lone(S=7, E=4), inputs=graphormer_inputs,
       score=graphormer, small=[{"B": 1, "H": 2, "N": 9, "S": 3, "E": 4}])

# A second inner product; rotated queries and keys.


def mla_inputs(rng, z):
    return {"Q": normal(rng, z.B, z.H, z.N, z.C), "Qr": normal(rng, z.B, z.H, z.N, z.R),
            "L": normal(rng, z.B, z.M, z.C), "Kr": normal(rng, z.B, z.M, z.R), "scale": (z.C + z.R) ** -0.5}


def mla(v, z):
    i, j = each(z)
    s = np.einsum("bhic,bjc->bhij", v["Q"], v["L"]) + np.einsum("bhir,bjr->bhij", v["Qr"], v["Kr"])
    p = softmax(v["scale"] * s, j <= i + z.M - z.N)
    return {"O": np.einsum("bhij,bjc->bhic", p, v["L"])}


family("mla", settings={"C": 64, "R": 32}, inputs=mla_inputs, expected=mla)
family("mla_heads", settings={"D": 64, "R": 32},
       extra=lambda rng, z: {"Qr": normal(rng, z.B, z.H, z.N, z.R), "Kr": normal(rng, z.B, z.M, z.R)},
       score=lambda s, v, z: s + v["scale"] * np.einsum("bhir,bjr->bhij", v["Qr"], v["Kr"]))


def angles(positions_of_rows, d):
    return np.outer(positions_of_rows, 10000.0 ** (-2 * np.arange(d // 2) / d))


def tables(rng, z):
    turn = angles(np.arange(z.M), z.D)
    return {"cosine": np.cos(turn), "sine": np.sin(turn)}


def turned(x, cosine, sine, interleaved):
    """Pairs of elements as complex numbers, times cos + i sin."""
    d = x.shape[-1]
    if interleaved:
        pairs_of = x[..., 0::2] + 1j * x[..., 1::2]
    else:
        pairs_of = x[..., :d // 2] + 1j * x[..., d // 2:]
    pairs_of = pairs_of * (cosine + 1j * sine)
    result = np.empty_like(x)
    if interleaved:
        result[..., 0::2], result[..., 1::2] = pairs_of.real, pairs_of.imag
    else:
        result[..., :d // 2], result[..., d // 2:] = pairs_of.real, pairs_of.imag
    return result


def rotary(interleaved):
    def expected(v, z):
        i, j = each(z)
        last = slice(z.M - z.N, z.M)
        q = turned(v["Q"], v["cosine"][last], v["sine"][last], interleaved)
        k = turned(v["K"], v["cosine"], v["sine"], interleaved)
        return {"O": values(softmax(dots(q, k) * v["scale"], j <= i + z.M - z.N), v["V"])}
    return expected


def rotary_computed(v, z):
    def turn(x):
        angle = angles(np.arange(x.shape[2]), z.D)
        return turned(x, np.cos(angle), np.sin(angle), False)
    return {"O": values(softmax(dots(turn(v["Q"]), turn(v["K"])) * v["scale"]), v["V"])}


KINDS = ("f64", "f32", "bf16")
family("rotary", sizes=extending(), extra=tables, expected=rotary(False), kinds=KINDS)
family("rotary_interleaved", sizes=extending(), extra=tables, expected=rotary(True))
# Angles of up to N + M are rounded before their cosine is taken. No table says how exact
# turned queries and keys have to be, so they are rounded to T, as weights and results are.
family("rotary_computed", expected=rotary_computed, largest=lambda z: z.N + z.M, kinds=KINDS, bounds={"bf16": 5e-3})


def arithmetic(s, v, z):
    i, j = each(z)
    f = np.exp(-np.abs(s)) + np.log1p(s * s) + np.tanh(s) * np.sin(i / 8) + np.sqrt(np.abs(s)) * np.cos(j / 8)
    g = np.minimum(s, 1.5) - np.maximum(s, -0.5) + 1.25 ** s

    def u(i, j):
        """In Python's integers, which floor and have the divisor's sign too."""
        return ((i ^ j) % 7 + ((i & 12) >> 2) - math.floor(((j | 3) << 1) / 64) - (~j & 1) + (i - j) // 5 % 3)

    integers = np.array([[u(a, b) for b in range(z.M)] for a in range(z.N)], float).reshape(z.N, z.M)
    return f + g + integers / 4


family("arithmetic", score=arithmetic, kinds=KINDS)
