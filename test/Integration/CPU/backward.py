# RUN: %python %s
"""The backward pass as a specification, examples/backward.moa and forms of it, against gradients written by hand
in NumPy and float64, which are compared with central differences first."""
import unittest

import numpy as np

import moa_testing as mt

with open(mt.example("backward"), encoding="utf-8") as file:
    CAUSAL = file.read()
MASKED = "mask([_, _, i, j] j <= i + (M - N), (Q +.* transpose(Kh)) * scale)"
FULL = CAUSAL.replace(MASKED, "(Q +.* transpose(Kh)) * scale")
assert FULL != CAUSAL


def summed(text):
    """The sums over a group in the same kernel."""
    for name in ("dK", "dV"):
        text = text.replace(f"{name} : R[B, H, M, D]", f"{name} : R[B, G, M, D]").replace(f"  {name}    =", f"  {name}h   =")
        text = text[:text.rindex("}")] + f"  {name} = [b < B, g < G, j < M, d < D] +/ ([r < H/G] {name}h[b, g*(H/G) + r, j, d])\n}}\n"
    return text


# The text, query heads, key heads, whether it is causal, and whether it adds up the heads of a group.
FORMS = {
    "causal": (CAUSAL, 2, 2, True, False),
    "full": (FULL, 2, 2, False, False),
    "grouped causal": (CAUSAL, 4, 2, True, False),
    "grouped full": (FULL, 4, 2, False, False),
    "summed causal": (summed(CAUSAL), 4, 2, True, True),
}
D = 64
# More rows than keys have rows that see nothing; no size divides a tile.
SIZES = [(1, 17), (113, 203), (203, 113), (130, 130), (5, 0), (0, 5)]
if mt.TARGET == "device":
    SIZES = [(7, 20), (150, 70), (70, 150)]
if mt.TARGET == "cuda":
    SIZES += [(2048, 2048), (1000, 3000)]


def per_query_head(x, heads):
    return np.repeat(x, heads // x.shape[1], axis=1) if heads else x


def weights(q, k, scale, causal):
    s = np.einsum("bhid,bhjd->bhij", q, per_query_head(k, q.shape[1])) * scale
    n, m = s.shape[2:]
    seen = np.arange(m) <= np.arange(n)[:, None] + (m - n) if causal else np.ones((n, m), bool)
    top = np.where(seen, s, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    e = np.where(seen, np.exp(np.where(seen, s - np.where(np.isfinite(top), top, 0), 0)), 0)
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + top
    return e / np.where(total > 0, total, 1), lse[..., 0]


def forward(q, k, v, scale, causal):
    p, lse = weights(q, k, scale, causal)
    return p @ per_query_head(v, q.shape[1]), lse


def gradients(q, k, v, d_o, scale, causal, sums=True):
    """By the chain rule on the definitions, with the sum over keys that the softmax has. `sums` adds up the heads of a group."""
    heads, groups = q.shape[1], k.shape[1]
    p, _ = weights(q, k, scale, causal)
    d_p = np.einsum("bhid,bhjd->bhij", d_o, per_query_head(v, heads))
    d_s = p * (d_p - (p * d_p).sum(-1, keepdims=True)) * scale
    d_k, d_v = np.einsum("bhij,bhid->bhjd", d_s, q), np.einsum("bhij,bhid->bhjd", p, d_o)
    if sums:
        shape = (q.shape[0], groups, heads // groups, *k.shape[2:])
        d_k, d_v = d_k.reshape(shape).sum(2), d_v.reshape(shape).sum(2)
    return {"dQ": d_s @ per_query_head(k, heads), "dK": d_k, "dV": d_v}


def arrays(heads, groups, n, m, d=D, batch=2):
    rng = np.random.default_rng([heads, n, m, d])
    return [rng.standard_normal(shape) for shape in ((batch, heads, n, d), (batch, groups, m, d),
                                                     (batch, groups, m, d), (batch, heads, n, d))]


class Backward(mt.KernelTest):

    def inputs(self, kind, heads, groups, n, m, causal, d=D):
        """What the kernel takes, rounded to its types, with O and lse of a forward pass in float64."""
        q, k, v, d_o = (mt.decode(mt.encode(x, kind), kind) for x in arrays(heads, groups, n, m, d))
        scale = float(np.float32(d ** -0.5))
        o, lse = forward(q, k, v, scale, causal)
        return {"Q": q, "K": k, "V": v, "dO": d_o, "O": o, "lse": lse, "scale": scale}

    @staticmethod
    def shapes(x):
        of_keys = (*x["Q"].shape[:2], *x["K"].shape[2:])
        return {"dQ": x["Q"].shape, "dK": of_keys, "dV": of_keys}

    def check(self, form, kind, sizes=SIZES, d=D):
        text, heads, groups, causal, sums = FORMS[form]
        if kind == "f64":
            text = text.replace("lse : f32", "lse : f64")
        kernel = mt.make_kernel(text, T=kind, R=kind, D=d)
        for n, m in sizes:
            with self.subTest(form=form, kind=kind, n=n, m=m):
                x = self.inputs(kind, heads, groups, n, m, causal, d)
                expected = gradients(x["Q"], x["K"], x["V"], x["dO"], x["scale"], causal, sums)
                found = kernel.results(x, {name: value.shape for name, value in expected.items()})
                self.assert_close(found, expected, mt.BOUNDS[kind], f"{form} {kind} {n} {m}")
                if causal and n > m:
                    self.assertFalse(found["dQ"][:, :, :n - m].any())  # rows that see nothing

    def test_reference(self):
        """The gradients by hand against central differences of the loss Σ dO·O, along random directions."""
        for causal in (False, True):
            q, k, v, d_o = arrays(4, 2, 9, 7, 5)
            found = gradients(q, k, v, d_o, 0.4, causal)
            rng = np.random.default_rng(1)
            for name, x in (("dQ", q), ("dK", k), ("dV", v)):
                way = rng.standard_normal(x.shape)
                step = 1e-5

                def loss(sign):
                    moved = {"dQ": q, "dK": k, "dV": v, name: x + sign * step * way}
                    return (d_o * forward(moved["dQ"], moved["dK"], moved["dV"], 0.4, causal)[0]).sum()
                slope = (loss(1) - loss(-1)) / (2 * step)
                self.assertAlmostEqual((found[name] * way).sum() / slope, 1, delta=1e-7)

    @unittest.skipUnless(mt.TARGET == "cpu", "f64 takes long elsewhere")
    def test_f64(self):
        for form in FORMS:
            self.check(form, "f64", [(37, 53), (53, 37)])

    def test_f32(self):
        for form in FORMS:
            self.check(form, "f32", [(7, 20)] if mt.TARGET == "device" else SIZES)

    def test_bf16(self):
        for form in FORMS:
            self.check(form, "bf16")

    def test_widths(self):
        for d in (128,) if mt.TARGET == "device" else (24, 128):
            self.check("causal", "bf16", SIZES[:2] if mt.TARGET == "device" else [(113, 203)], d)

    def test_unseen_rows(self):
        """What stands in dO and O of rows that see nothing does not matter."""
        text, heads, groups, causal, _ = FORMS["grouped causal"]
        for kind in ("f32", "bf16"):
            with self.subTest(kind=kind):
                n, m = 100, 40
                kernel = mt.make_kernel(text, T=kind, R=kind, D=D)
                x = self.inputs(kind, heads, groups, n, m, causal)
                shapes = self.shapes(x)
                first = kernel.run(x, shapes)
                for name in ("Q", "dO", "O"):
                    x[name] = x[name].copy()
                    x[name][:, :, :n - m] = np.nan
                self.assert_same_bits(first, kernel.run(x, shapes), kind)

    def test_repeated(self):
        """Results of one tile share no memory that is still read: bits are those of the first run."""
        text, heads, groups, causal, _ = FORMS["grouped causal"]
        kernel = mt.make_kernel(text, T="bf16", R="bf16", D=D)
        x = self.inputs("bf16", heads, groups, *SIZES[1], causal)
        shapes = self.shapes(x)
        first = kernel.run(x, shapes)
        for _ in range(40 if mt.TARGET == "cuda" else 2):
            self.assert_same_bits(first, kernel.run(x, shapes), "runs")


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
