# RUN: %python %s %moa_source_root/docs/Recipes.md
"""Every recipe of the page computes its formula, written here in NumPy and float64.

Each `moa` block is one kernel. It runs on this CPU in f32 and bf16, and moa-codegen
writes it as CUDA C++ too.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np

import moa_testing as mt

PAGE = pathlib.Path(sys.argv.pop(1))
BLOCKS = re.findall(r"^```moa\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
TEXTS = {re.search(r"^kernel (\w+)", block, re.M).group(1): block for block in BLOCKS}

B, H, G, N, M, D = 2, 4, 2, 37, 90, 32
SCALE = D ** -0.5
I, J = np.arange(N)[:, None], np.arange(M)[None, :]
CAUSAL = J <= I + (M - N)


def attention(q, k, v, seen=True, change=lambda s: s):
    """O and lse over the keys that are seen; rows without any have 0 and -inf."""
    s = change(np.einsum("...id,...jd->...ij", q, k) * np.float64(np.float32(SCALE)))
    seen = np.broadcast_to(seen, s.shape)
    e = np.where(seen, np.exp(s), 0)
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total)[..., 0]
    return e / np.where(total > 0, total, 1) @ v, lse


def heads(x):
    """Keys or values with one entry per query head."""
    return np.repeat(x, H // G, axis=1)


def by_head(*arrays):
    """Arrays [token, head, d] as [head, token, d]."""
    return [x.transpose(1, 0, 2) for x in arrays]


def arrays(rng, **shapes):
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()} | {"scale": SCALE}


def plain(rng, keys=H):
    return arrays(rng, Q=(B, H, N, D), K=(B, keys, M, D), V=(B, keys, M, D))


RECIPES = {}


def recipe(function):
    """A recipe returns its inputs, and a function from these, as stored, to its results."""
    RECIPES[function.__name__] = function
    return function


@recipe
def grouped(rng):
    def meaning(x, kind):
        o, lse = attention(x["Q"], heads(x["K"]), heads(x["V"]), CAUSAL)
        return {"O": o, "lse": lse}
    return plain(rng, G), meaning


@recipe
def window(rng):
    def meaning(x, kind):
        at = I + (M - N)
        return {"O": attention(x["Q"], x["K"], x["V"], (at - 20 <= J) & (J <= at + 3))[0]}
    return {**plain(rng), "left": 20, "right": 3}, meaning


@recipe
def lengths(rng):
    qlen, klen = np.array([N - 7, N]), np.array([M, 11])

    def meaning(x, kind):
        seen = (I < qlen[:, None, None, None]) & (J < klen[:, None, None, None])
        return {"O": attention(x["Q"], x["K"], x["V"], seen)[0]}

    made = plain(rng)
    made["Q"][0, :, N - 7:] = np.nan
    made["K"][1, :, 11:] = made["V"][1, :, 11:] = np.inf

    def finite(x, kind):
        return meaning({name: np.nan_to_num(value, posinf=0) for name, value in x.items()}, kind)
    return {**made, "qlen": qlen, "klen": klen}, finite


@recipe
def packed(rng):
    first, last = np.sort(rng.integers(0, M, (2, N)), axis=0)

    def meaning(x, kind):
        q, k, v = by_head(x["Q"], x["K"], x["V"])
        o = attention(q, k, v, (first[:, None] <= J) & (J < last[:, None]))[0]
        return {"O": o.transpose(1, 0, 2)}
    return {**arrays(rng, Q=(N, H, D), K=(M, H, D), V=(M, H, D)), "first": first, "last": last}, meaning


@recipe
def packed_offsets(rng):
    start = np.array([0, 20, 21, 60, M])

    def meaning(x, kind):
        own = np.repeat(np.arange(4), np.diff(start))
        t = np.arange(M)
        q, k, v = by_head(x["Q"], x["K"], x["V"])
        o = attention(q, k, v, (own[:, None] == own) & (t <= t[:, None]))[0]
        return {"O": o.transpose(1, 0, 2)}
    return {**arrays(rng, Q=(M, H, D), K=(M, H, D), V=(M, H, D)), "start": start}, meaning


@recipe
def decode(rng):
    length = np.array([M, 41])

    def meaning(x, kind):
        at = I[:1] + length[:, None, None, None] - 1
        seen = (J < length[:, None, None, None]) & (J <= at)
        return {"O": attention(x["Q"], heads(x["K"]), heads(x["V"]), seen)[0]}
    made = arrays(rng, Q=(B, H, 1, D), K=(B, G, M, D), V=(B, G, M, D))
    return {**made, "len": length}, meaning


@recipe
def paged(rng):
    pages, count = 13, 4
    page, length = rng.permutation(pages)[:B * count].reshape(B, count), np.array([64, 50])

    def meaning(x, kind):
        k, v = (x[name][page].reshape(B, count * 16, H, D).transpose(0, 2, 1, 3) for name in "KV")
        j = np.arange(count * 16)
        own = length[:, None, None, None]
        return {"O": attention(x["Q"], k, v, (j < own) & (j <= I + own - N))[0]}
    made = arrays(rng, Q=(B, H, N, D), K=(pages, 16, H, D), V=(pages, 16, H, D))
    return {**made, "page": page, "len": length}, meaning


@recipe
def block_sparse(rng):
    n, m = 150, 200
    block = rng.random((B, H, 3, 4)) < 0.5

    def meaning(x, kind):
        seen = block.repeat(64, axis=2).repeat(64, axis=3)[:, :, :n, :m]
        return {"O": attention(x["Q"], x["K"], x["V"], seen)[0]}
    return {**arrays(rng, Q=(B, H, n, D), K=(B, H, m, D), V=(B, H, m, D)), "block": block}, meaning


@recipe
def capped(rng):
    def meaning(x, kind):
        return {"O": attention(x["Q"], x["K"], x["V"], CAUSAL, lambda s: 1.5 * np.tanh(s / 1.5))[0]}
    return {**plain(rng), "cap": 1.5}, meaning


@recipe
def alibi(rng):
    def meaning(x, kind):
        bias = x["slope"][:, None, None] * (J - I - (M - N))
        return {"O": attention(x["Q"], x["K"], x["V"], CAUSAL, lambda s: s + bias)[0]}
    return {**plain(rng), "slope": 2.0 ** -np.arange(1, H + 1)}, meaning


@recipe
def sinks(rng):
    def meaning(x, kind):
        o, lse = attention(x["Q"], x["K"], x["V"], CAUSAL)
        e = np.exp(lse)
        return {"O": o * (e / (e + np.exp(x["sink"][:, None])))[..., None]}
    return {**plain(rng), "sink": rng.standard_normal(H)}, meaning


def angles(count, first=0):
    return (first + np.arange(count))[:, None] * 10000.0 ** (-2 * np.arange(D // 2) / D)


@recipe
def rotary(rng):
    def turned(x, cosine, sine, kind):
        """Pairs as complex numbers, rounded as the specification's cast does."""
        pairs = (x[..., :D // 2] + 1j * x[..., D // 2:]) * (cosine + 1j * sine)
        return mt.decode(mt.encode(np.concatenate([pairs.real, pairs.imag], axis=-1), kind), kind)

    def meaning(x, kind):
        q = turned(x["Q"], x["cosine_q"], x["sine_q"], kind)
        k = turned(x["K"], x["cosine_k"], x["sine_k"], kind)
        return {"O": attention(q, k, x["V"], CAUSAL)[0]}
    tables = {}
    for name, angle in (("q", angles(N, M - N)), ("k", angles(M))):
        tables[f"cosine_{name}"], tables[f"sine_{name}"] = np.cos(angle), np.sin(angle)
    return {**plain(rng), **tables}, meaning


@recipe
def received(rng):
    def meaning(x, kind):
        s = np.where(CAUSAL, np.einsum("bhid,bhjd->bhij", x["Q"], x["K"]) * np.float64(np.float32(SCALE)), -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return {"O": p @ x["V"], "c": p.sum(-2)}
    return plain(rng), meaning


@recipe
def dropout(rng):
    def meaning(x, kind):
        at = np.arange(B * H * N * M, dtype=np.uint64).reshape(B, H, N, M) ^ np.uint64(12345)
        for _ in range(2):
            at = (at ^ (at >> np.uint64(16))) * np.uint64(0x45D9F3B) & np.uint64(0xFFFFFFFF)
        keep = (at ^ (at >> np.uint64(16))) & np.uint64(3) != 0
        # With so many weights the share of dropped ones is within 0.01 of a quarter.
        assert abs(keep.mean() - 0.75) < 0.01, keep.mean()
        s = np.einsum("bhid,bhjd->bhij", x["Q"], x["K"]) * np.float64(np.float32(SCALE))
        p = np.exp(s)
        return {"O": np.where(keep, p / p.sum(-1, keepdims=True) / 0.75, 0) @ x["V"]}
    return {**plain(rng), "seed": 12345}, meaning


@recipe
def summed(rng):
    def meaning(x, kind):
        return {"y": x["x"].reshape(B, G, H // G, M, D).sum(2)}
    return {"x": rng.standard_normal((B, H, M, D))}, meaning


class Recipes(mt.KernelTest):

    def test_every_block_has_a_meaning(self):
        self.assertEqual(sorted(TEXTS), sorted(RECIPES))
        self.assertEqual(len(BLOCKS), len(TEXTS))

    def check(self, name, kind):
        settings = {"T": kind, "D": D, **({"N": 1} if name == "decode" else {})}
        inputs, meaning = RECIPES[name](np.random.default_rng(len(name)))
        kernel = mt.Kernel(TEXTS[name] + "\n", **settings)
        expected = meaning(kernel.seen_by_kernel(inputs), kind)
        found = kernel.results(inputs, {key: value.shape for key, value in expected.items()})
        self.assert_close(found, expected, mt.BOUNDS[kind], f"{name} in {kind}")

    def test_f32(self):
        for name in RECIPES:
            with self.subTest(name=name):
                self.check(name, "f32")

    def test_bf16(self):
        for name in RECIPES:
            with self.subTest(name=name):
                self.check(name, "bf16")

    def test_gpu(self):
        """Every recipe compiles for a GPU as it stands, with tensor cores."""
        warned = set()
        with tempfile.TemporaryDirectory() as directory:
            for name, text in TEXTS.items():
                path = os.path.join(directory, name + ".moa")
                pathlib.Path(path).write_text(text, encoding="utf-8")
                made = mt.tool("moa-codegen", path, "--target=cuda", "-o", os.path.join(directory, name + ".cu"))
                self.assertEqual(made.returncode, 0, made.stderr)
                if made.stderr:
                    self.assertIn("without tensor cores", made.stderr)
                    warned.add(name)
        self.assertEqual(warned, set())


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
