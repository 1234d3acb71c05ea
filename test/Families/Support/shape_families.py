"""Shapes: heads, layouts, caches, packed and paged arrays."""
import numpy as np

from family import ON_GPU, dots, family, log_sum_exp, lone, normal, per_head, positions, qkv, softmax, values

KINDS = ("f64", "f32", "bf16")


def bottom_right(n, m):
    i, j = positions(n, m)
    return j <= i + m - n


def attend(q, k, v, scale, present=True):
    """Softmax attention of arrays with the heads in front, and its log-sum-exp."""
    s = dots(q, k) * scale
    return values(softmax(s, present), v), log_sum_exp(s, present)


def arrays(rng, z, **shapes):
    """Random arrays: name -> the letters or numbers of its shape."""
    made = {}
    for name, axes in shapes.items():
        made[name] = normal(rng, *(getattr(z, a) if isinstance(a, str) else a for a in axes))
    return {**made, "scale": z.D ** -0.5}


def sizes_with(names, *rows):
    return [dict(zip(names, row)) for row in rows]


# Heads that share keys and values.

GROUPED = sizes_with("BHGNM", (2, 4, 2, 1, 1), (2, 6, 2, 1, 65), (1, 4, 4, 64, 128), (2, 6, 3, 113, 203),
                     (1, 8, 1, 203, 113), (2, 4, 2, 5, 0), (2, 4, 2, 0, 5), (0, 4, 2, 3, 4),
                     *([(2, 4, 2, 300, 1031)] if ON_GPU else ()))


def grouped(v, z):
    k, w = per_head(v["K"], z.H), per_head(v["V"], z.H)
    out, lse = attend(v["Q"], k, w, v["scale"], bottom_right(z.N, z.M))
    return {"O": out, "lse": lse}


family("grouped_query", sizes=GROUPED, expected=grouped, kinds=KINDS,
       inputs=lambda rng, z: arrays(rng, z, Q="BHND", K="BGMD", V="BGMD"))


def ragged(v, z):
    rows, keys = (np.arange(n) < v[length][:, None] for n, length in ((z.N, "qlen"), (z.M, "klen")))
    present = (rows[:, :, None] & keys[:, None, :])[:, None]
    return {"O": attend(v["Q"], per_head(v["K"], z.H), per_head(v["V"], z.H), v["scale"], present)[0]}


family("ragged", sizes=GROUPED, expected=ragged,
       inputs=lambda rng, z: {**arrays(rng, z, Q="BHND", K="BGMD", V="BGMD"),
                              "qlen": np.array([z.N, z.N // 2])[:z.B], "klen": np.array([(z.M * 2 + 1) // 3, z.M])[:z.B]})
family("multi_query", inputs=lambda rng, z: arrays(rng, z, Q="BHND", K="BMD", V="BMD"),
       expected=lambda v, z: {"O": attend(v["Q"], np.repeat(v["K"][:, None], z.H, 1),
                                          np.repeat(v["V"][:, None], z.H, 1), v["scale"])[0]})
family("value_width", settings={"D": 64, "E": 128},
       inputs=lambda rng, z: arrays(rng, z, Q="BHND", K="BHMD", V="BHME"),
       expected=lambda v, z: {"O": attend(v["Q"], v["K"], v["V"], v["scale"], bottom_right(z.N, z.M))[0]})

# Layouts.


def behind_rows(v, z):
    q, k, w = (np.swapaxes(v[name], 1, 2) for name in "QKV")
    out, _ = attend(q, per_head(k, z.H), per_head(w, z.H), v["scale"], bottom_right(z.N, z.M))
    return {"O": np.swapaxes(out, 1, 2)}


family("heads_behind_rows", sizes=GROUPED, expected=behind_rows,
       inputs=lambda rng, z: arrays(rng, z, Q="BNHD", K="BMGD", V="BMGD"))


def last_axis(v, z):
    out = np.zeros((z.B, z.N, z.H * z.D))
    i, j = positions(z.N, z.M)
    for h in range(z.H):
        part = slice(h * z.D, (h + 1) * z.D)
        s = np.einsum("bid,bjd->bij", v["Q"][..., part], v["K"][..., part]) * v["scale"]
        out[..., part] = np.einsum("bij,bjd->bid", softmax(s + v["slope"][h] * (j - i)), v["V"][..., part])
    return {"O": out}


def side_by_side(rng, z):
    shape = {"Q": (z.B, z.N, z.H * z.D), "K": (z.B, z.M, z.H * z.D), "V": (z.B, z.M, z.H * z.D)}
    return {**{k: normal(rng, *s) for k, s in shape.items()}, "scale": z.D ** -0.5,
            "slope": 0.25 ** np.arange(1, z.H + 1)}


# The reshapes stay in the addresses of every element, which is slow: no large sizes yet.
FEW = sizes_with("BHNM", (1, 2, 1, 1), (2, 3, 1, 65), (2, 2, 7, 20), (1, 2, 33, 40), (2, 2, 0, 5), (2, 2, 5, 0),
                 (0, 2, 3, 4))
for name in ("heads_in_last_axis", "heads_by_index"):
    family(name, inputs=side_by_side, expected=last_axis, sizes=FEW, largest=lambda z: (z.N + z.M) / 4)


def one_array(v, z):
    q, k, w = (np.swapaxes(v["X"][:, :, n], 1, 2) for n in range(3))
    i, j = positions(z.N, z.N)
    return {"O": np.swapaxes(attend(q, k, w, v["scale"], j <= i)[0], 1, 2)}


family("one_array", sizes=lone(), expected=one_array,
       inputs=lambda rng, z: arrays(rng, z, X=("B", "N", 3, "H", "D")))


def single_head(v, z):
    return {"O": np.einsum("ij,jd->id", softmax(np.einsum("id,jd->ij", v["Q"], v["K"]) * v["scale"]), v["V"])}


family("single_head", expected=single_head, inputs=lambda rng, z: arrays(rng, z, Q="ND", K="MD", V="MD"),
       sizes=sizes_with("NM", (1, 1), (1, 65), (64, 128), (113, 203), (239, 1), (0, 5), (5, 0)))

# Packed sequences.


def packed_sequences(v, z):
    """Every sequence alone."""
    out = np.zeros((z.S, z.H, z.D))
    ends = list(v["start"][1:]) + [z.S]
    for first, last in zip(v["start"], ends):
        q, k, w = (np.swapaxes(v[name][first:last], 0, 1)[None] for name in "QKV")
        i, j = positions(last - first, last - first)
        out[first:last] = np.swapaxes(attend(q, k, w, v["scale"], j <= i)[0][0], 0, 1)
    return {"O": out}


def with_starts(rng, z):
    """The first sequence begins at 0; some are empty."""
    inner = np.sort(rng.integers(0, z.S + 1, z.C - 1))
    return {**arrays(rng, z, Q="SHD", K="SHD", V="SHD"), "start": np.concatenate([[0], inner])}


family("packed_sequences", inputs=with_starts, expected=packed_sequences, kinds=KINDS,
       sizes=sizes_with("SHC", (1, 2, 1), (17, 2, 3), (64, 2, 1), (203, 2, 5), (130, 1, 9), (0, 2, 2)))


def packed_bounds(v, z):
    q, k, w = (np.swapaxes(v[name], 0, 1)[None] for name in "QKV")
    j = np.arange(z.U)
    present = (v["first"][:, None] <= j) & (j < v["last"][:, None])
    out, lse = attend(q, k, w, v["scale"], present)
    return {"O": np.swapaxes(out[0], 0, 1), "lse": lse[0]}


def with_bounds(rng, z):
    first = np.sort(rng.integers(0, z.U + 1, z.S))
    last = np.minimum(first + rng.integers(0, 70, z.S), z.U)
    return {**arrays(rng, z, Q="SHD", K="UHD", V="UHD"), "first": first, "last": last}


def not_in_bounds(v, z):
    j = np.arange(z.U)
    seen = ((v["first"][:, None] <= j) & (j < v["last"][:, None])).any(0)
    return {"K": ~seen, "V": ~seen}


family("packed_bounds", inputs=with_bounds, expected=packed_bounds, unseen=not_in_bounds,
       sizes=sizes_with("SUH", (1, 1, 2), (1, 65, 2), (64, 128, 2), (113, 203, 2), (203, 113, 1),
                        (0, 5, 2), (5, 0, 2)))


def packed_padded(v, z):
    out = np.zeros((z.B, z.H, z.N, z.D))
    for b in range(z.B):
        keys = slice(v["start"][b], v["start"][b + 1])
        k, w = (np.swapaxes(v[name][keys], 0, 1)[None] for name in "KV")
        out[b] = attend(v["Q"][b:b + 1], k, w, v["scale"])[0][0]
    return {"O": out}


def with_offsets(rng, z):
    """The array may be longer than what the entries use."""
    return {**arrays(rng, z, Q="BHND", K="SHD", V="SHD"), "start": np.sort(rng.integers(0, z.S + 1, z.B + 1))}


def not_in_offsets(v, z):
    j = np.arange(z.S)
    unused = (j < v["start"][0]) | (j >= v["start"][-1])
    return {"K": unused, "V": unused}


family("packed_padded", inputs=with_offsets, expected=packed_padded, unseen=not_in_offsets,
       sizes=sizes_with("BHNS", (1, 2, 1, 1), (3, 2, 1, 65), (2, 2, 64, 128), (3, 2, 113, 203),
                        (2, 2, 5, 0), (2, 2, 0, 5), (0, 2, 3, 4)))

# Caches.


def decode(v, z):
    k, w = per_head(v["K"], z.H), per_head(v["V"], z.H)
    present = (np.arange(z.M) < v["len"][:, None])[:, None, None]
    out, lse = attend(v["Q"][:, :, None], k, w, v["scale"], present)
    return {"O": out[:, :, 0], "lse": lse[:, :, 0]}


def behind_lengths(v, z):
    unused = np.broadcast_to(np.arange(z.M) >= v["len"][:, None, None], (z.B, z.G, z.M))
    return {"K": unused, "V": unused}


family("decode", expected=decode, unseen=behind_lengths, kinds=KINDS,
       small=sizes_with("BHGM", (2, 4, 2, 33), (2, 2, 1, 0)),
       inputs=lambda rng, z: {**arrays(rng, z, Q="BHD", K="BGMD", V="BGMD"),
                              "len": np.array([z.M, (z.M + 1) // 2, 0])[:z.B]},
       sizes=sizes_with("BHGM", (1, 1, 1, 1), (3, 8, 2, 203), (2, 4, 4, 64), (2, 6, 1, 700), (2, 2, 2, 0),
                        (0, 4, 2, 9)))

PASTS = sizes_with("BHNP", (2, 2, 1, 0), (2, 2, 1, 64), (2, 2, 64, 64), (2, 2, 90, 113), (1, 2, 203, 5), (2, 2, 5, 0),
                   (2, 2, 0, 5), (0, 2, 3, 4), *([(2, 2, 300, 731)] if ON_GPU else ()))


def past_present(v, z):
    k, w = (np.concatenate([v[name + "p"], v[name]], axis=2) for name in "KV")
    return {"O": attend(v["Q"], k, w, v["scale"], bottom_right(z.N, z.P + z.N))[0]}


PAST = {"Q": "BHND", "Kp": "BHPD", "Vp": "BHPD", "K": "BHND", "V": "BHND"}
family("past_present", sizes=PASTS, inputs=lambda rng, z: arrays(rng, z, **PAST), expected=past_present, kinds=KINDS)


family("past_present_cat", sizes=PASTS, inputs=lambda rng, z: arrays(rng, z, **PAST), expected=past_present)


def past_returned(v, z):
    k, w = (np.concatenate([v[name + "p"], v[name]], axis=2) for name in "KV")
    return {"O": attend(v["Q"], k, w, v["scale"])[0], "Kc": k, "Vc": w}


family("past_present_returned", sizes=PASTS, inputs=lambda rng, z: arrays(rng, z, **PAST), expected=past_returned)


def past_lengths(v, z):
    """Every entry of the batch with a past cut to its length."""
    out = np.zeros_like(v["Q"])
    for b in range(z.B):
        used = slice(0, v["len"][b])
        k, w = (np.concatenate([v[n + "p"][b, :, used], v[n][b]], axis=1)[None] for n in "KV")
        out[b] = attend(v["Q"][b:b + 1], k, w, v["scale"], bottom_right(z.N, k.shape[2]))[0][0]
    return {"O": out}


def cut(v, z):
    unused = np.broadcast_to(np.arange(z.P) >= v["len"][:, None, None], (z.B, z.H, z.P))
    return {"Kp": unused, "Vp": unused} if z.N else {}


family("past_lengths", sizes=PASTS, expected=past_lengths, unseen=cut,
       inputs=lambda rng, z: {**arrays(rng, z, **PAST), "len": rng.integers(0, z.P + 1, z.B)})


def shared_prefix(v, z):
    k, w = (np.concatenate([np.repeat(v[n + "p"][None], z.B, 0), v[n]], axis=2) for n in "KV")
    return {"O": attend(v["Q"], k, w, v["scale"], bottom_right(z.N, z.P + z.N))[0]}


family("shared_prefix", sizes=PASTS, expected=shared_prefix,
       inputs=lambda rng, z: arrays(rng, z, **{**PAST, "Kp": "HPD", "Vp": "HPD"}))

# Pages and lists of keys.


def with_pages(rng, z):
    """Pages in any order, none used twice; every entry holds its queries' keys at least."""
    page = rng.permutation(z.P)[:z.B * z.L].reshape(z.B, z.L)
    return {**arrays(rng, z, Q="BHND", K=("P", 16, "H", "D"), V=("P", 16, "H", "D")), "page": page,
            "len": rng.integers(z.N, 16 * z.L + 1, z.B)}


def paged(v, z):
    out = np.zeros((z.B, z.H, z.N, z.D))
    for b in range(z.B):
        length = v["len"][b]
        k, w = (np.moveaxis(v[n][v["page"][b]].reshape(-1, z.H, z.D)[:length], 0, 1)[None] for n in "KV")
        out[b] = attend(v["Q"][b:b + 1], k, w, v["scale"], bottom_right(z.N, length))[0][0]
    return {"O": out}


def not_in_pages(v, z):
    seen = np.zeros((z.P, 16), bool)
    for b in range(z.B):
        for j in range(v["len"][b] if z.N else 0):
            seen[v["page"][b, j // 16], j % 16] = True
    return {"K": ~seen, "V": ~seen}


family("paged", inputs=with_pages, expected=paged, unseen=not_in_pages, kinds=KINDS,
       small=sizes_with("BHNPL", (1, 2, 1, 1, 1), (2, 2, 3, 5, 2)),
       sizes=sizes_with("BHNPL", (1, 2, 1, 1, 1), (3, 2, 1, 40, 13), (2, 2, 20, 31, 7), (2, 2, 113, 33, 13),
                        (2, 2, 0, 4, 2),
                        (0, 2, 3, 4, 2)))


def with_slots(rng, z):
    length = rng.integers(0, z.M + 1, z.B)
    length[:1] = z.M
    return {**arrays(rng, z, Q="BHND", K="PHD", V="PHD"), "len": length,
            "slot": rng.integers(0, z.P, (z.B, z.M)) if z.P else np.zeros((z.B, z.M), int)}


def paged_tokens(v, z):
    k, w = (np.moveaxis(v[n][v["slot"]], 2, 1) for n in "KV")
    return {"O": attend(v["Q"], k, w, v["scale"], (np.arange(z.M) < v["len"][:, None])[:, None, None])[0]}


def not_in_slots(v, z):
    seen = np.zeros(z.P, bool)
    for b in range(z.B):
        seen[v["slot"][b, :v["len"][b]]] = True
    return {"K": ~seen, "V": ~seen} if z.N else {}


family("paged_tokens", inputs=with_slots, expected=paged_tokens, unseen=not_in_slots,
       sizes=sizes_with("BHNPM", (1, 2, 1, 1, 1), (2, 2, 1, 90, 65), (2, 2, 113, 400, 203), (2, 2, 5, 3, 0),
                        (2, 2, 0, 7, 5),
                        (0, 2, 3, 4, 2)))


def with_list(rng, z):
    return {**qkv(rng, z), "list": rng.integers(0, max(z.M, 1), (z.B, z.N, z.L))}


def sparse_keys(v, z):
    out = np.zeros((z.B, z.H, z.N, z.D))
    for b in range(z.B):
        for i in range(z.N):
            keys = v["list"][b, i]
            out[b, :, i:i + 1] = attend(v["Q"][b:b + 1, :, i:i + 1], v["K"][b:b + 1][:, :, keys],
                                        v["V"][b:b + 1][:, :, keys], v["scale"])[0][0]
    return {"O": out}


def not_listed(v, z):
    unused = np.ones((z.B, z.H, z.M), bool)
    for b in range(z.B):
        unused[b, :, v["list"][b].reshape(-1)] = False
    return {"K": unused, "V": unused}


family("sparse_keys", inputs=with_list, expected=sparse_keys, unseen=not_listed,
       sizes=sizes_with("BHNML", (1, 2, 1, 1, 1), (2, 2, 1, 65, 20), (2, 2, 113, 203, 33), (2, 2, 5, 7, 0),
                        (2, 2, 0, 5, 3), (0, 2, 3, 4, 2)))
