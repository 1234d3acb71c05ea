# RUN: %python %s
"""Scores that are sums of products of 8-bit integers, with scales, against NumPy.

The sums are exact whatever the integers are, so that a maximum over them is compared to
the last bit; what is rounded is as for other scores.
"""
import unittest

import numpy as np

import moa_testing as mt

# Rows and keys: less than a tile, no multiple of one, several blocks.
SIZES = [(1, 1), (5, 300), (113, 203), (130, 257)]
WIDTHS = (128, 64, 32, 48, 256)
if mt.TARGET == "device":
    SIZES, WIDTHS = [(1, 1), (70, 150)], (128, 64, 32, 256)


def attention(name, body, axes="B, H, N, M; D = 128", parameters="", element="bf16",
              q="Q : i8[B, H, N, D]", k="K : i8[B, H, M, D]", v="V : T[B, H, M, D]",
              results="O : T[B, H, N, D]", require=""):
    """A specification whose scores S follow from A, the sums of integers."""
    return (f"kernel {name}[{axes}, T : float = {element}](\n    {q}, {k}, {v}, scale : f32{parameters})"
            f" -> ({results})\n{require}{{\n  A = Q +.* transpose(K)\n{body}\n}}\n")


SPECS = {
    "one_scale": attention("one_scale", "  O = softmax(f32(A) * scale) +.* V"),
    "row_and_key": attention(
        "row_and_key", "  S = [b, h, i, j] f32(A[b, h, i, j]) * (sq[b, h, i] * sk[b, h, j] * scale)\n"
        "  O = softmax(S) +.* V", parameters=", sq : f32[B, H, N], sk : f32[B, H, M]"),
    "blocks": attention(
        "of_blocks", "  S = [b, h, i, j] A[b, h, i, j] * (sq[b, h, i/64] * sk[b, h, j/64] * scale)\n"
        "  O = softmax(S) +.* V", axes="B, H, N, M, R, C; D = 128",
        parameters=", sq : f32[B, H, R], sk : f32[B, H, C]",
        require="  require N <= 64*R\n  require M <= 64*C\n"),
    "causal": attention(
        "causal", "  S = mask([_, _, i, j] j <= i + (M - N), f32(A) * scale)\n  O = softmax(S) +.* V"),
    "heads": attention(
        "heads", "  S = [b, h, i, j] f32(A[b, h, i, j]) * (sq[b, h] * sk[b, h] * scale)\n"
        "  O = softmax(S) +.* V", parameters=", sq : f32[B, H], sk : f32[B, H]"),
}
GROUPED = """kernel grouped[B, H, G, N, M; D = 128, T : float = bf16](
    Q : i8[B, H, N, D], K : i8[B, G, M, D], V : T[B, G, M, D], scale : f32) -> (O : T[B, H, N, D])
  require H % G == 0
{
  Kh = [b < B, h < H] K[b, h / (H/G)]
  Vh = [b < B, h < H] V[b, h / (H/G)]
  A  = Q +.* transpose(Kh)
  S  = mask([_, _, i, j] j <= i + (M - N), f32(A) * scale)
  O  = softmax(S) +.* Vh
}
"""
# A second contraction, of floats, adds to the scores.
ROTATED = """kernel rotated[B, H, N, M; D = 128, R = 64, T : float = bf16](
    Q : i8[B, H, N, D], K : i8[B, H, M, D], V : T[B, H, M, D], Qr : T[B, H, N, R], Kr : T[B, H, M, R],
    scale : f32) -> (O : T[B, H, N, D])
{
  A = Q +.* transpose(K)
  S = f32(A) * scale + (Qr +.* transpose(Kr))
  O = softmax(S) +.* V
}
"""
# The same of integers too.
TWO = """kernel two[B, H, N, M; D = 64, T : float = bf16](
    Q : i8[B, H, N, D], K : i8[B, H, M, D], V : T[B, H, M, D], P : i8[B, H, N, D], L : i8[B, H, M, D],
    scale : f32) -> (O : T[B, H, N, D])
{
  A = Q +.* transpose(K)
  C = P +.* transpose(L)
  S = f32(A) * scale - f32(C) * scale
  O = softmax(S) +.* V
}
"""
# Results that tell the sums themselves.
EXACT = """kernel exact[B, H, N, M; D = 128](Q : i8[B, H, N, D], K : i8[B, H, M, D], V : bf16[B, H, M, D], scale : f32)
    -> (O : bf16[B, H, N, D], top : f32[B, H, N], least : f32[B, H, N])
{
  A = f32(Q +.* transpose(K))
  top = max/ A
  least = min/ A
  O = softmax(A * scale) +.* V
}
"""
# Heads behind rows.
BEHIND = """kernel behind[B, N, M, H; D = 128](
    Q : i8[B, N, H, D], K : i8[B, M, H, D], V : bf16[B, M, H, D], scale : f32) -> (O : bf16[B, N, H, D])
{
  A = [b < B, h < H] [i < N, j < M] +/ [d < D] Q[b, i, h, d] * K[b, j, h, d]
  P = softmax(f32(A) * scale)
  O = [b, i, h, d] +/ [j < M] P[b, h, i, j] * V[b, j, h, d]
}
"""


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def integers(rng, shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


class IntegerScores(mt.KernelTest):

    def arrays(self, n, m, d, groups=2, heads=2):
        rng = np.random.default_rng([n, m, d])
        return rng, {"Q": integers(rng, (2, heads, n, d)), "K": integers(rng, (2, groups, m, d)),
                     "V": rng.standard_normal((2, groups, m, d)), "scale": 1 / (5000 * d ** 0.5)}

    def products(self, values, q="Q", k="K"):
        return np.matmul(values[q].astype(np.float64), np.swapaxes(values[k].astype(np.float64), -1, -2))

    def compare(self, kernel, inputs, scores, what, bound=3e-3):
        seen = kernel.seen_by_kernel(inputs)
        expected = {"O": np.matmul(softmax(scores(seen)), seen["V"].astype(np.float64))}
        results = kernel.results(inputs, {"O": expected["O"].shape})
        self.assert_close(results, expected, bound, what)

    def test_one_scale(self):
        for d in WIDTHS:
            kernel = mt.make_kernel(SPECS["one_scale"], D=d)
            for n, m in SIZES if d == WIDTHS[0] else SIZES[-1:]:
                with self.subTest(d=d, n=n, m=m):
                    self.compare(kernel, self.arrays(n, m, d)[1],
                                 lambda x: self.products(x) * x["scale"], f"{d} {n} {m}")

    def test_negative_scale(self):
        kernel = mt.make_kernel(SPECS["one_scale"])
        inputs = self.arrays(70, 150, 128)[1]
        inputs["scale"] *= -1
        self.compare(kernel, inputs, lambda x: self.products(x) * x["scale"], "negative scale")

    def test_half_values(self):
        kernel = mt.make_kernel(SPECS["one_scale"], T="f16")
        self.compare(kernel, self.arrays(70, 150, 128)[1],
                     lambda x: self.products(x) * x["scale"], "f16", 1e-3)

    def test_row_and_key_scales(self):
        kernel = mt.make_kernel(SPECS["row_and_key"])
        for n, m in SIZES:
            rng, inputs = self.arrays(n, m, 128)
            inputs |= {"sq": rng.uniform(0.5, 2, (2, 2, n)), "sk": rng.uniform(0.5, 2, (2, 2, m))}
            with self.subTest(n=n, m=m):
                self.compare(kernel, inputs, lambda x: self.products(x) * x["sq"][..., None] *
                             x["sk"][:, :, None] * x["scale"], f"{n} {m}")

    def test_scales_of_blocks(self):
        n, m = SIZES[-1]
        rng, inputs = self.arrays(n, m, 128)
        r, c = -(-n // 64), -(-m // 64)
        inputs |= {"sq": rng.uniform(0.5, 2, (2, 2, r)), "sk": rng.uniform(0.5, 2, (2, 2, c))}
        self.compare(mt.make_kernel(SPECS["blocks"]), inputs,
                     lambda x: self.products(x) * x["sq"][:, :, np.arange(n) // 64, None] *
                     x["sk"][:, :, None, np.arange(m) // 64] * x["scale"], "blocks")

    def test_scales_of_heads(self):
        n, m = SIZES[-1]
        rng, inputs = self.arrays(n, m, 128)
        inputs |= {"sq": rng.uniform(0.5, 2, (2, 2)), "sk": rng.uniform(0.5, 2, (2, 2))}
        self.compare(mt.make_kernel(SPECS["heads"]), inputs, lambda x: self.products(x) *
                     (x["sq"] * x["sk"])[..., None, None] * x["scale"], "heads")

    def causal(self, values, scores):
        n, m = scores.shape[-2:]
        return np.where(np.arange(m) <= np.arange(n)[:, None] + m - n, scores, -np.inf)

    def test_causal(self):
        kernel = mt.make_kernel(SPECS["causal"])
        for n, m in [(5, 300), (113, 203)] if mt.TARGET != "device" else [(70, 150)]:
            with self.subTest(n=n, m=m):
                self.compare(kernel, self.arrays(n, m, 128)[1], lambda x: self.causal(
                    x, self.products(x) * x["scale"]), f"{n} {m}")

    def test_grouped_queries(self):
        inputs = self.arrays(70, 150, 128, groups=2, heads=4)[1]
        kernel = mt.make_kernel(GROUPED)
        seen = kernel.seen_by_kernel(inputs)
        keys = {name: np.repeat(seen[name], 2, axis=1) for name in ("K", "V")}
        scores = self.causal(seen, self.products({**seen, **keys}) * seen["scale"])
        expected = {"O": np.matmul(softmax(scores), keys["V"])}
        self.assert_close(kernel.results(inputs, {"O": expected["O"].shape}), expected, 3e-3, "grouped")

    def test_two_contractions(self):
        rng, inputs = self.arrays(70, 150, 128)
        inputs |= {"Qr": rng.standard_normal((2, 2, 70, 64)) / 4, "Kr": rng.standard_normal((2, 2, 150, 64)) / 4}
        self.compare(mt.make_kernel(ROTATED), inputs, lambda x: self.products(x) * x["scale"] +
                     self.products(x, "Qr", "Kr"), "rotated")
        rng, inputs = self.arrays(70, 150, 64)
        inputs |= {"P": integers(rng, (2, 2, 70, 64)), "L": integers(rng, (2, 2, 150, 64))}
        self.compare(mt.make_kernel(TWO), inputs, lambda x: (self.products(x) - self.products(x, "P", "L")) *
                     x["scale"], "two")

    def test_sums_are_exact(self):
        for d in (64, 256):
            kernel = mt.make_kernel(EXACT, D=d)
            inputs = self.arrays(70, 150, d)[1]
            # The largest sum and the smallest: 2^14·d, −127·128·d.
            inputs["Q"][:, :, 3], inputs["K"][:, :, 7] = -128, -128
            inputs["K"][:, :, 9] = 127
            results = kernel.results(inputs, {"O": (2, 2, 70, d), "top": (2, 2, 70), "least": (2, 2, 70)})
            sums = self.products(inputs)
            self.assertEqual(sums.max(), d << 14)
            np.testing.assert_array_equal(results["top"], sums.max(-1))
            np.testing.assert_array_equal(results["least"], sums.min(-1))

    def test_casts_of_operands(self):
        """Floats that are integers: every sum of their products is one, and f32 holds it."""
        for q, k in (("f32(Q)", "f32(K)"), ("f32(Q)", "K"), ("bf16(Q)", "bf16(K)"), ("f16(Q)", "f32(K)")):
            text = EXACT.replace("f32(Q +.* transpose(K))", f"{q} +.* transpose({k})")
            self.assertNotEqual(text, EXACT)
            for d in (64, 256) if mt.TARGET != "device" or q == k.replace("K", "Q") else (64,):
                kernel = mt.make_kernel(text, D=d)
                inputs = self.arrays(70, 150, d)[1]
                inputs["Q"][:, :, 3], inputs["K"][:, :, 7] = -128, -128
                results = kernel.results(inputs, {"O": (2, 2, 70, d), "top": (2, 2, 70), "least": (2, 2, 70)})
                sums = self.products(inputs)
                self.assertEqual(sums.max(), d << 14)
                with self.subTest(q=q, k=k, d=d):
                    np.testing.assert_array_equal(results["top"], sums.max(-1))
                    np.testing.assert_array_equal(results["least"], sums.min(-1))

    def test_narrower_type(self):
        """Sums that are cast to a narrower integer before they are a float wrap."""
        kernel = mt.make_kernel(attention("wraps", "  O = softmax(f32(i8(A)) * scale) +.* V"), D=64)
        inputs = self.arrays(37, 80, 64)[1]
        self.compare(kernel, inputs, lambda x: self.products(x).astype(np.int64).astype(np.int8) * x["scale"], "wraps")

    def test_heads_behind_rows(self):
        inputs = self.arrays(70, 150, 128)[1]
        kernel = mt.make_kernel(BEHIND)
        scores = self.products(inputs) * np.float32(inputs["scale"])
        expected = np.matmul(softmax(scores), mt.decode(mt.encode(inputs["V"], "bf16"), "bf16"))
        swapped = {name: np.ascontiguousarray(np.swapaxes(value, 1, 2)) if np.ndim(value) else value
                   for name, value in inputs.items()}
        self.assert_close(kernel.results(swapped, {"O": (2, 70, 2, 128)}),
                          {"O": np.swapaxes(expected, 1, 2)}, 3e-3, "behind")

    def test_unseen_values(self):
        """What nobody sees may be anything, also NaN among the values."""
        n, m = 40, 150
        spec = SPECS["causal"].replace("i + (M - N)", "i").replace("kernel causal", "kernel top_left")
        kernel = mt.make_kernel(spec)
        inputs = self.arrays(n, m, 128)[1]
        clean = kernel.run(inputs, {"O": (2, 2, n, 128)})
        inputs["V"][:, :, n:] = np.nan
        inputs["K"][:, :, n:] = -128
        self.assert_same_bits(clean, kernel.run(inputs, {"O": (2, 2, n, 128)}), "unseen")


if __name__ == "__main__":
    mt.main()
