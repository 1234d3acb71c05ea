# RUN: %python %s
"""Unsigned storage types, u8, u16 and u32, against NumPy's arithmetic on int64 and float64.

Elements are drawn from the whole range and hold its ends, so that an element that is read
with a sign shows. What rounds is exact here, but for f32 of what has more than 24 bits.
"""
import os
import tempfile

import numpy as np

import moa_testing as mt

KINDS = ("u8", "u16", "u32")
SIZES = (0, 1, 5, 77) if mt.TARGET == "device" else (0, 1, 17, 64, 1000)

CONVERT = """kernel convert[N; U : int = u8](x : U[N], y : U[N], f : f32[N], s : i64[N], p : bool[N], c : U)
    -> (wide : i64[N], low : i8[N], other : u16[N], real : f32[N], half : f16[N], cut : U[N], wrapped : U[N],
        back : U[N], flag : U[N], minus : i64[N], less : bool[N], same : bool[N], ratio : i64[N], rest : i64[N],
        right : i64[N], left : i64[N], bits : i64[N], sum : i64, most : i64, least : i64, first : i64[N])
{
  wide    = x
  low     = i8(x)
  other   = u16(x)
  real    = f32(x)
  half    = f16(x) * 0.5
  cut     = U(f)
  wrapped = U(s)
  back    = U(x - y)
  flag    = U(p)
  minus   = -x
  less    = x < y
  same    = x == c
  ratio   = x / (y | 1)
  rest    = s % (1 + x)
  right   = x >> 3
  left    = x << 7
  bits    = (x & ~y) ^ c
  sum     = +/ x
  most    = max/ x
  least   = min/ x
  first   = min/ mask([i < N, j < N] x[j] >= y[i], [_, j] x[j])
}
"""

# A table of rows, read by subscripts that a declared range proves.
GATHER = """kernel gather[N, P; I : int = u32, D = 8](x : f32[P, D], t : I[N] in 0..P) -> y : f32[N, D] { y = x[t] }
"""
# Subscripts above 2^31, which as i32 were negative.
HIGH = """kernel high[N, P; D = 8](x : f32[P, D], t : u32[N] in 4294967000..4294967000 + P) -> y : f32[N, D]
{
  y = x[t - 4294967000]
}
"""
# Lengths and pages of attention; a length of 2^32 - 1 sees every key.
PAGED = """kernel paged[B, H, N, P, L; T : float = f32, D = 64](
    Q : T[B, H, N, D], K : T[P, 16, H, D], V : T[P, 16, H, D], page : u16[B, L] in 0..P, length : u32[B], scale : f32)
    -> O : T[B, H, N, D]
{
  Kp = [b, h < H, j < 16*L] K[page[b, j / 16], j % 16, h]
  Vp = [b, h < H, j < 16*L] V[page[b, j / 16], j % 16, h]
  S  = mask([b, _, i, j] j < length[b], (Q +.* transpose(Kp)) * scale)
  O  = softmax(S) +.* Vp
}
"""
PRODUCTS = """kernel products[N, M; D = 64](x : {x}[N, D], y : {y}[M, D]) -> A : i32[N, M] {{ A = x +.* transpose(y) }}
"""
DEQUANTISED = """kernel dequantised[N, M; D = 64](x : f32[N, D], w : u8[M, D], zero : u8[M], s : f32[M]) -> y : f32[N, M]
{
  W = [m, d] (f32(w[m, d]) - f32(zero[m])) * s[m]
  y = x +.* transpose(W)
}
"""


def draw(rng, kind, size):
    """Elements of the whole range, with its ends and middle among them."""
    most = np.iinfo(mt.STORAGE[kind][0]).max
    values = rng.integers(0, most, size=size, endpoint=True).astype(np.int64)
    ends = [0, most, most // 2 + 1, most // 2, 1]
    values.reshape(-1)[:len(ends)] = ends[:values.size]
    return values


def cut(values, most):
    """Towards zero, to the nearest number of the type; NaN is 0."""
    return np.clip(np.trunc(np.nan_to_num(values, nan=0.0, posinf=most, neginf=0.0)), 0, most).astype(np.int64)


class Unsigned(mt.KernelTest):

    def assert_equal(self, results, expected, what):
        for name, value in expected.items():
            got = results[name].astype(np.int64) if value.dtype == np.int64 else results[name]
            np.testing.assert_array_equal(got, value, f"{what}: {name}")

    def test_conversions(self):
        for kind in KINDS:
            kernel = mt.make_kernel(CONVERT, U=kind)
            dtype = mt.STORAGE[kind][0]
            most = int(np.iinfo(dtype).max)
            for size in SIZES:
                rng = np.random.default_rng([size, most])
                x, y = draw(rng, kind, size), draw(rng, kind, size)[::-1].copy()
                f = (rng.standard_normal(size) * most).astype(np.float32)
                f[:7] = [-1.5, np.nan, np.inf, -np.inf, 0.99, most / 2 + 0.5, 3e38][:size]
                s = rng.integers(-2**40, 2**40, size=size)
                p = rng.integers(0, 2, size=size).astype(bool)
                c = most - 1
                got = kernel.run({"x": x, "y": y, "f": f, "s": s, "p": p, "c": c},
                                 dict.fromkeys(("sum", "most", "least"), ()) |
                                 {name: (size,) for name in kernel.by_name
                                  if kernel.by_name[name].is_output and kernel.by_name[name].extents})
                first = np.array([min((v for v in x if v >= bound), default=2**63 - 1) for bound in y], np.int64)
                expected = {
                    "wide": x, "low": x.astype(np.int8).astype(np.int64), "other": x & 0xFFFF,
                    "real": x.astype(np.float32), "half": (x.astype(np.float32).astype(np.float16) * 0.5).astype(np.float16),
                    "cut": cut(f.astype(np.float64), most), "wrapped": s & most, "back": (x - y) & most,
                    "flag": p.astype(np.int64), "minus": -x, "less": x < y, "same": x == c,
                    "ratio": x // (y | 1), "rest": s % (1 + x), "right": x >> 3, "left": x << 7,
                    "bits": (x & ~y) ^ c, "sum": np.array(x.sum()),
                    "most": np.array(x.max(initial=-2**63)), "least": np.array(x.min(initial=2**63 - 1)),
                    "first": first}
                self.assert_equal(got, expected, f"{kind}, {size} elements")

    def test_gather(self):
        for kind in KINDS:
            kernel = mt.make_kernel(GATHER, I=kind)
            rows = 200 if kind == "u8" else 300
            rng = np.random.default_rng(7)
            x = rng.standard_normal((rows, 8))
            for size in SIZES:
                t = rng.integers(0, rows, size=size)
                got = kernel.run({"x": x, "t": t}, {"y": (size, 8)})
                np.testing.assert_array_equal(got["y"], x.astype(np.float32)[t])

    def test_high_subscripts(self):
        kernel = mt.make_kernel(HIGH)
        rng = np.random.default_rng(8)
        x = rng.standard_normal((290, 8))
        for size in SIZES:
            t = rng.integers(0, 290, size=size)
            got = kernel.run({"x": x, "t": t + 4294967000}, {"y": (size, 8)})
            np.testing.assert_array_equal(got["y"], x.astype(np.float32)[t])

    def test_pages_and_lengths(self):
        for kind in ("f32", "bf16"):
            kernel = mt.make_kernel(PAGED, T=kind)
            rng = np.random.default_rng(9)
            b, h, n, p, pages = 3, 2, 9, 40, 5
            inputs = {"Q": rng.standard_normal((b, h, n, 64)), "K": rng.standard_normal((p, 16, h, 64)),
                      "V": rng.standard_normal((p, 16, h, 64)), "page": rng.integers(0, p, size=(b, pages)),
                      "length": np.array([2**32 - 1, 33, 0]), "scale": 0.125}
            seen = kernel.seen_by_kernel(inputs)
            keys, values = (seen[name][seen["page"]].reshape(b, 16 * pages, h, 64).transpose(0, 2, 1, 3)
                            for name in ("K", "V"))
            score = np.einsum("bhnd,bhmd->bhnm", seen["Q"], keys) * seen["scale"]
            score = np.where((np.arange(16 * pages) < seen["length"][:, None])[:, None, None], score, -np.inf)
            top = score.max(axis=-1, keepdims=True)
            weight = np.exp(score - np.where(np.isfinite(top), top, 0))
            total = weight.sum(axis=-1, keepdims=True)
            expected = {"O": weight / np.where(total, total, 1) @ values}
            self.assert_close(kernel.results(inputs, {"O": (b, h, n, 64)}), expected, mt.BOUNDS[kind], kind)

    def test_products(self):
        """Sums of products of bytes are exact, and those of u8 are not those of i8."""
        for pair in (("u8", "u8"), ("u8", "i8"), ("i8", "u8"), ("u16", "u8")):
            kernel = mt.make_kernel(PRODUCTS.format(x=pair[0], y=pair[1]))
            for n, m in ((1, 1), (19, 70)):
                rng = np.random.default_rng([n, m])
                x, y = (draw(rng, "u8", (rows, 64)) - 128 if kind == "i8" else draw(rng, kind, (rows, 64))
                        for kind, rows in zip(pair, (n, m)))
                got = kernel.run({"x": x, "y": y}, {"A": (n, m)})
                np.testing.assert_array_equal(got["A"], x @ y.T, str(pair))

    def test_dequantised(self):
        kernel = mt.make_kernel(DEQUANTISED)
        rng = np.random.default_rng(11)
        inputs = {"x": rng.standard_normal((21, 64)), "w": draw(rng, "u8", (33, 64)), "zero": draw(rng, "u8", 33),
                  "s": rng.standard_normal(33)}
        seen = kernel.seen_by_kernel(inputs)
        weights = (seen["w"].astype(np.float64) - seen["zero"][:, None]) * seen["s"][:, None]
        self.assert_close(kernel.results(inputs, {"y": (21, 33)}), {"y": seen["x"] @ weights.T}, 2e-6, "dequantised")


if mt.TARGET == "cpu":
    class Calls(mt.KernelTest):

        def test_descriptors(self):
            """Code 1 of DLPack is asked for, and no sign is taken for one."""
            kernel = mt.Kernel(GATHER)
            x, t = np.zeros((4, 8), np.float32), np.zeros(3, np.uint32)
            values = {"x": mt.describe(x, "f32"), "t": mt.describe(t, "u32"), "y": mt.describe(np.zeros((3, 8), np.float32), "f32")}
            self.assertEqual(kernel.check(values), (mt.OK, ""))
            values["t"] = mt.describe(t.view(np.int32), "i32")
            code, message = kernel.check(values)
            self.assertEqual(code, mt.DTYPE)
            self.assertIn("u32", message)

        def test_header(self):
            header = mt.Kernel(CONVERT, U="u16").header
            self.assertIn("uint16_t c", header)
            self.assertIn("in  x : u16[N]", header)

        def test_interpreter(self):
            """The meaning of the specification agrees with the code, and --random stays in range."""
            for kind in KINDS:
                for spec, words in ((CONVERT, ("N=37", "c=200")), (GATHER, ("N=9", "P=11"))):
                    name = "U" if spec is CONVERT else "I"
                    with self.subTest(kind=kind, kernel=spec[7:14]):
                        with tempfile.TemporaryDirectory() as directory:
                            path = os.path.join(directory, "k.moa")
                            with open(path, "w", encoding="utf-8") as file:
                                file.write(spec)
                            for target in ("cpu", "reference"):
                                done = mt.tool("moa-run", path, "--set", f"{name}={kind}", "--random", "3", *words,
                                               f"--target={target}", *(["--check=all"] if target == "cpu" else []))
                                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    mt.main()
