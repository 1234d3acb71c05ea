"""Masks: which keys a query sees."""
import numpy as np

from family import dots, extending, family, lone, normal, positions, softmax, values


def each(z):
    return positions(z.N, getattr(z, "M", z.N))


def index(predicate, **how):
    """A mask that is a predicate on i and j and the inputs."""
    return {"present": lambda v, z: predicate(*each(z), v, z), **how}


def integers(**ranges):
    """Scalars or arrays of integers: name -> value, or (axes, low, high)."""
    def extra(rng, z):
        made = {}
        for name, value in ranges.items():
            if isinstance(value, tuple):
                axes, low, high = value
                value = rng.integers(low, high, [getattr(z, a) for a in axes])
            made[name] = value
        return made
    return extra


KINDS = ("f64", "f32", "bf16")
family("causal_top_left", **index(lambda i, j, v, z: j <= i))
family("causal_bottom_right", **index(lambda i, j, v, z: j <= i + (z.M - z.N)))
family("offset_scalar", **index(lambda i, j, v, z: j <= i + v["c"]), extra=integers(c=-20))
family("offset_batch", extra=integers(c=("B", -9, 90)),
       **index(lambda i, j, v, z: j <= i + v["c"][:, None, None, None]))
family("inverse_causal", **index(lambda i, j, v, z: j >= i))
family("window_left", **index(lambda i, j, v, z: i - j <= v["w"]), extra=integers(w=23))
family("sliding_window", **index(lambda i, j, v, z: (j <= i) & (i - j <= v["w"])), extra=integers(w=40))
family("window_symmetric", **index(lambda i, j, v, z: abs(i - j) <= v["w"]), extra=integers(w=31))
family("window_left_right", extra=integers(left=37, right=5),
       **index(lambda i, j, v, z: (j >= i + z.M - z.N - v["left"]) & (j <= i + z.M - z.N + v["right"])))
family("window_per_query", **index(lambda i, j, v, z: abs(i - j) <= v["w"][:, None]), extra=integers(w=("N", -2, 60)))
family("dilated", **index(lambda i, j, v, z: (i - j) % v["k"] == 0), extra=integers(k=5))
family("prefix_lm", extra=integers(P=("B", 0, 150)),
       **index(lambda i, j, v, z: (j < v["P"][:, None, None, None]) | (i >= j)))


def documents(rng, z):
    """Documents of a few tokens, one behind the other."""
    starts = rng.random((z.B, z.N)) < 0.07
    return {"doc": np.cumsum(starts, axis=1)}


def same(a, b):
    return (a[:, :, None] == b[:, None, :])[:, None]


family("document", sizes=lone(), extra=documents, present=lambda v, z: same(v["doc"], v["doc"]))
family("document_causal", extra=integers(docq=("BN", 0, 3), dock=("BM", 0, 4)),
       present=lambda v, z: same(v["docq"], v["dock"]) & (each(z)[1] <= each(z)[0] + z.M - z.N))
# One entry of the batch sees no key at all.
family("lengths", **index(lambda i, j, v, z: j < v["len"][:, None, None, None]), kinds=KINDS,
       extra=lambda rng, z: {"len": np.array([(z.M * 2 + 1) // 3, 0])[:z.B]})
family("block_diagonal", **index(lambda i, j, v, z: i // v["k"] == j // v["k"]), extra=integers(k=24))
family("block_causal", **index(lambda i, j, v, z: j // v["k"] <= i // v["k"]), extra=integers(k=24))


def global_tokens(v, z):
    i, j = each(z)
    g = v["g"]
    return (g[:, :, None] | g[:, None, :])[:, None] | (abs(i - j) <= v["w"])


family("longformer", sizes=lone(), present=global_tokens,
       extra=lambda rng, z: {"g": rng.random((z.B, z.N)) < 0.04, "w": 12})


def neighbours(size, window):
    """[size, size]: the window of a point is the `window` points around it that exist."""
    seen = np.zeros((size, size), bool)
    for i in range(size):
        first = min(max(i - window // 2, 0), max(size - window, 0))
        seen[i, first:first + window] = True
    return seen


# A window has an odd number of points and is no longer than the line.
family("natten_1d", sizes=[s for s in lone() if s["N"] == 0 or s["N"] >= 13], extra=integers(w=13),
       present=lambda v, z: neighbours(z.N, 13))


def image(rng, z):
    shape = (z.B, z.H, z.R, z.W, z.D)
    return {"Q": normal(rng, *shape), "K": normal(rng, *shape), "V": normal(rng, *shape), "scale": z.D ** -0.5}


def natten_2d(v, z):
    flat = {k: v[k].reshape(z.B, z.H, z.R * z.W, z.D) for k in "QKV"}
    rows, columns = neighbours(z.R, 7), neighbours(z.W, 7)
    present = (rows[:, None, :, None] & columns[None, :, None, :]).reshape(z.R * z.W, z.R * z.W)
    out = values(softmax(dots(flat["Q"], flat["K"]) * v["scale"], present), flat["V"])
    return {"O": out.reshape(v["Q"].shape)}


# Reshapes stay in the addresses of every element, which is slow: no large sizes yet.
family("natten_2d", inputs=image, expected=natten_2d, small=[{"B": 1, "H": 1, "R": 7, "W": 7}],
       sizes=[{"B": b, "H": 2, "R": r, "W": w} for b, r, w in ((2, 7, 7), (1, 9, 12), (0, 8, 8))])


def tile_of(position, extents, tiles):
    """The tile of a position on a grid, its number along every axis."""
    number = []
    for extent, tile in zip(reversed(extents), reversed(tiles)):
        number.append(position % extent // tile)
        position //= extent
    return number


def tiled(extents, tiles):
    def present(v, z):
        i, j = each(z)
        seen = np.ones((z.N, z.M), bool)
        for a, b in zip(tile_of(i, extents, tiles), tile_of(j, extents, tiles)):
            seen &= abs(a - b) <= 1
        return seen
    return present


# The first axis is as long as the rows need.
family("tiled_window_2d", settings={"D": 64, "W": 24}, present=tiled((10 ** 6, 24), (4, 8)))
family("tiled_window_3d", settings={"D": 64, "U": 8, "W": 12}, present=tiled((10 ** 6, 8, 12), (2, 4, 4)))


def tree(rng, z):
    """Token i of the draft follows a random earlier one, or the past."""
    ancestors = np.eye(z.N, dtype=bool)
    for i in range(1, z.N):
        parent = rng.integers(-1, i)
        if parent >= 0:
            ancestors[i] |= ancestors[parent]
    return {"A": ancestors}


def in_tree(v, z):
    past = np.ones((z.N, z.M - z.N), bool)
    return np.concatenate([past, v["A"]], axis=1)


family("tree_ancestors", sizes=extending(), extra=tree, present=in_tree)
family("threshold", **index(lambda i, j, v, z: j >= v["t"]),
       extra=lambda rng, z: {"t": np.arange(z.M) + rng.integers(-2, 2, z.M)})


def groups(rng, z):
    """Blocks of queries belong to a group, to none (-1), or to one far outside."""
    of_block = rng.choice([-1, 0, 1, 2, 1000000007], (z.B, z.N // 16 + 1))
    return {"group": np.repeat(of_block, 16, 1)[:, :z.N], "limit": np.array([z.M // 3, z.M, 5])}


def in_limit(values, z):
    limit = np.concatenate([values["limit"], [0]])
    of_query = limit[np.where((values["group"] < 0) | (values["group"] > 2), 3, values["group"])]
    return (np.arange(z.M) < of_query[..., None])[:, None]


family("limit_of_group", extra=groups, present=in_limit)


def spans(rng, z):
    first = rng.integers(0, z.N + 1, (z.B, z.M))
    return {"first": first, "last": first + rng.integers(0, 60, (z.B, z.M))}


family("flashmask", extra=spans,
       **index(lambda i, j, v, z: ((v["first"][:, None] <= i) & (i < v["last"][:, None]))[:, None]))

# Mask arrays; every seventh query sees nothing, nobody sees some keys.


def keep(rng, shape):
    kept = rng.random(shape) < 0.4
    if shape[-2] > 1:
        kept[..., ::7, :] = False
    kept[..., 3::11] = False
    return kept


def add(rng, shape):
    values_of = normal(rng, *shape)
    values_of[~keep(rng, shape)] = -np.inf
    return values_of


SHAPES = {"ij": "NM", "bij": "BNM", "bhij": "BHNM", "b1ij": "B1NM", "b11j": "B11M"}
for axes, shape in SHAPES.items():
    def extents(z, shape=shape):
        return [1 if a == "1" else getattr(z, a) for a in shape]

    def spread(array, axes=axes):
        """The array with four axes, of one element where it has none of its own."""
        return array[:, None] if axes == "bij" else array

    # One type each in the tests, all in the tables.
    family("mask_" + axes, kinds=("bf16",), extra=lambda rng, z, e=extents: {"keep": keep(rng, e(z))},
           present=lambda v, z, s=spread: s(v["keep"]))
    family("addmask_" + axes, kinds=("f32",), extra=lambda rng, z, e=extents: {"add": add(rng, e(z))},
           score=lambda s, v, z, t=spread: s + t(v["add"]),
           present=lambda v, z, s=spread: s(v["add"]) > -np.inf)


def combined(v, z):
    i, j = each(z)
    near = ~((i - j > v["w"]) | ((j > i) & ~v["g"][:, None, None, :]))
    return near & (j < v["len"][:, None, None, None])


family("combined", present=combined, kinds=KINDS,
       extra=lambda rng, z: {"g": rng.random((z.B, z.M)) < 0.1, "w": 30, "len": rng.integers(0, z.M + 1, z.B)})
