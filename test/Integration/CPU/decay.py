# RUN: %python %s
"""Weights that fall, or grow, with the distance to the end of a range, against NumPy in double precision.

Such weights come apart where parts of the range end, so that sums over keys are stored for parts and go on from one
to the next. Other weights of both indices stay where they are.
"""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

HEAD = "(Q : T[H, N, 16], K : T[H, M, 16], V : T[H, M, 24], g : f32[H], b : f32[H, N]) -> O : T[H, N, 24]"
SIZES = [(1, 1), (64, 257), (70, 1025), (1030, 1030), (2100, 70), (5, 0), (0, 5)]
SMALL = [(66, 257), (200, 70), (300, 300)]  # beside parts of 256 keys, and blocks of 64 rows
# Weights, and the same of distances d, values g of a head and b of a row.
WEIGHTS = {
    "pow(g[h], i - j)": lambda d, g, b: np.where(d < 0, 0, g ** np.abs(d)),
    "exp(-(i - j) * g[h])": lambda d, g, b: np.exp(-d * g),
    "exp2(g[h] * j - g[h] * i)": lambda d, g, b: np.exp2(-d * g),
    "exp(-(0.125 * abs(j - i)) - g[h] * abs(i - j))": lambda d, g, b: np.exp(-d * (0.125 + g)),
    "exp(b[h, i] - 0.25 * (i - j))": lambda d, g, b: np.exp(b - 0.25 * d),
    "(pow(0.96875, 2 * i - 2 * j) * exp2((j - i) * 0.5))": lambda d, g, b: 0.96875 ** (2 * d) * np.exp2(-0.5 * d),
    "pow(exp(-g[h]), 0.5 * (i - j))": lambda d, g, b: np.exp(-0.5 * g * d),
}


def specification(weight, mask="j <= i", divided=False):
    divisor = " /@(1,0) max(abs(+/ S), 1)" if divided else ""
    return (f"kernel k[H, N, M; T : float = bf16]{HEAD}\n{{\n"
            f"  S = mask([_, i, j] {mask}, (Q +.* transpose(K)) * [h, i < N, j < M] {weight})\n"
            f"  O = (S{divisor}) +.* V\n}}\n")


def comes_apart(spec):
    """Whether sums of parts are stored and go on from one part to the next."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "spec.moa")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        onf = mt.tool("moa-codegen", path, "--emit=onf", "-o", "-").stdout
        cuda = mt.tool("moa-codegen", path, "--target=cuda", "-o", "-").stdout
    return "O_before" in onf and "O_rest" in cuda


class Decay(mt.KernelTest):

    def check(self, spec, weight, g, shift=lambda n, m: 0, divided=False, kinds=("f32", "f64", "bf16"), sizes=SIZES,
              apart=True):
        self.assertEqual(comes_apart(spec), apart)
        if mt.TARGET == "device":
            sizes, kinds = sizes if len(sizes) == 1 else SMALL, ("bf16", "f32")
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            for n, m in sizes:
                random = np.random.default_rng(n + m)
                inputs = {"Q": random.standard_normal((2, n, 16)), "K": random.standard_normal((2, m, 16)),
                          "V": random.standard_normal((2, m, 24)), "g": np.asarray(g),
                          "b": random.standard_normal((2, n))}
                q, k, v, seen_g, b = (kernel.seen_by_kernel(inputs)[name] for name in ("Q", "K", "V", "g", "b"))
                i, j = np.arange(n)[:, None], np.arange(m)[None]
                distance, last = (i - j).astype(float), i + shift(n, m)
                with np.errstate(over="ignore", under="ignore", divide="ignore"):
                    weights = weight(distance, seen_g[:, None, None], b[:, :, None])
                s = np.where(j <= last, (q @ k.swapaxes(1, 2)) * np.where(j <= last, weights, 0), 0)
                if divided:
                    s = s / np.maximum(np.abs(s.sum(axis=-1, keepdims=True)), 1)
                found = kernel.results(inputs, {"O": (2, n, 24)})
                bound = {"f64": 1e-12, "f32": 8e-6, "bf16": 6e-3}[kind]
                self.assert_close(found, {"O": s @ v}, bound, f"{kind} {n} {m}")

    def test_forms(self):
        for text, weight in WEIGHTS.items():
            with self.subTest(text):
                self.check(specification(text), weight, (0.97, 0.6), kinds=("f32", "bf16"), apart="b[h, i]" not in text)

    def test_bases(self):
        """Bases of all kinds: powers of them are of whole numbers, none of which is negative."""
        power = WEIGHTS["pow(g[h], i - j)"]
        for g in [(0.99, 0.5), (0.0, 1.0), (-0.9, -1.0), (1.01, 1e-30)]:
            with self.subTest(g):
                self.check(specification("pow(g[h], i - j)"), power, g, sizes=[(300, 130), (1030, 1030)])

    def test_divided(self):
        self.check(specification("pow(g[h], i - j)", divided=True), WEIGHTS["pow(g[h], i - j)"], (0.97, 0.6), divided=True)

    def test_ranges(self):
        """Ranges that end in front of the row, and behind it; distances are those from their ends, or longer."""
        for mask, shift in {"j < i": lambda n, m: -1, "j + 3 <= i": lambda n, m: -3, "i - j >= 1": lambda n, m: -1,
                            "j <= i + (M - N)": lambda n, m: m - n}.items():
            distance = "i - j" if "M" not in mask else "i + (M - N) - j"
            for n, m in SMALL + ([] if mt.TARGET == "device" else [(70, 1025), (2100, 70)]):
                more = m - n if "M" in mask else 0
                with self.subTest(mask=mask, n=n, m=m):
                    self.check(specification(f"pow(g[h], {distance})", mask),
                               lambda d, g, b: g ** np.maximum(d + more, 0), (0.97, 0.6), shift, sizes=[(n, m)],
                               kinds=("f32", "bf16"))

    def test_far_from_the_end(self):
        """Distances that change their sign, or are shorter than those from the end, do not come apart."""
        options = {"sizes": [(65, 256), (300, 300)], "kinds": ("f32",), "apart": False}
        self.check(specification("exp(-abs(i - j - 40) * g[h])"), lambda d, g, b: np.exp(-np.abs(d - 40) * g), (0.1, 0.2),
                   **options)
        self.check(specification("pow(g[h], 5 - i + j)"), lambda d, g, b: g ** (5 - d), (1.01, 1.02), **options)
        self.check(specification("exp(-g[h] * abs((i - j) / 2))"), lambda d, g, b: np.exp(-g * (d // 2)), (0.1, 0.2),
                   **options)
        self.check(specification("exp(-g[h] * i8(i - j))"),
                   lambda d, g, b: np.exp(-g * d.astype(np.int64).astype(np.int8)), (0.01, 0.02), **options)
        self.check(specification("pow(g[h], 0.5 * (i - j))"), lambda d, g, b: np.where(d < 0, 0, g ** (0.5 * np.abs(d))),
                   (0.9, 0.8), **options)

    def test_growth(self):
        """Weights that leave the range within a part leave it where they are needed, and nowhere else."""
        kernel = mt.make_kernel(specification("pow(g[h], i - j)"), T="f32")
        n = 300
        q, k, v = (np.ones((2, n, width), np.float32) for width in (16, 16, 24))
        found = kernel.results({"Q": q, "K": k, "V": v, "g": np.array([1.3, 1.5]), "b": np.zeros((2, n))},
                               {"O": (2, n, 24)})["O"]
        i = np.arange(n)
        for head, g in enumerate((1.3, 1.5)):
            with np.errstate(over="ignore"):
                wanted = (16 * (float(np.float32(g)) ** (i + 1) - 1) / (float(np.float32(g)) - 1)).astype(np.float32)
            safe = wanted < 1e37
            error = np.abs(found[head, safe, 0] / wanted[safe] - 1).max()
            self.assertLess(error, 1e-4, f"base {g}")
            self.assertTrue((found[head, ~safe & np.isinf(wanted), 0] == np.inf).all(), f"base {g}")


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main()
