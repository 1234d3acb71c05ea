# RUN: %python %s
"""Integer division, casts and logarithms at the ends of their ranges; long sums."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

KINDS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


class Integers(mt.KernelTest):

    def test_division_does_not_trap(self):
        """Lanes and scalars; by −1, and by 0."""
        spec = """kernel k[N; I : int = i32](a : I[N], b : I[N], c : i64, d : i64)
            -> (q : I[N], r : I[N], s : i64[N], t : i64[N]) {
          q = I(a / b)
          r = I(a % b)
          s = [i < N] c / d
          t = [i < N] c % d
        }
        """
        for kind, dtype in KINDS.items():
            kernel = mt.Kernel(spec, I=kind)
            least = np.iinfo(dtype).min
            a = np.array([least, least, 7, -7, 7, -7, 5] * 5, dtype)
            b = np.array([-1, 1, -1, -2, 2, 4, 0] * 5, dtype)
            n = len(a)
            for c, d, s, t in ((-2 ** 63, -1, -2 ** 63, 0), (-7, 4, -2, 1), (9, 0, 9, 9)):
                out = kernel.run({"a": a, "b": b, "c": c, "d": d},
                                 {k: (n,) for k in "qrst"})
                with self.subTest(kind=kind, c=c):
                    np.testing.assert_array_equal(
                        out["q"], np.array([least, least, -7, 3, 3, -2, 5] * 5, dtype))
                    np.testing.assert_array_equal(out["r"], [0, 0, 0, -1, 1, 1, 5] * 5)
                    np.testing.assert_array_equal(out["s"], [s] * n)
                    np.testing.assert_array_equal(out["t"], [t] * n)

    def test_casts_saturate(self):
        spec = """kernel k[N; T : float = f32, I : int = i32](x : T[N], s : T)
            -> (y : I[N], z : I[N]) {
          y = I(x)
          z = [i < N] I(s)
        }
        """
        values = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.9, -0.9, 127.5, 128.0, -128.7,
                  -129.0, 32767.9, 32768.0, 2.0 ** 31, -2.0 ** 31, 2.0 ** 62, 2.0 ** 63,
                  -2.0 ** 63, 300.0]
        for kind, dtype in KINDS.items():
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            for source in ("f32", "f64", "bf16"):
                kernel = mt.Kernel(spec, I=kind, T=source)
                x = mt.decode(mt.encode(np.array(values * 3), source), source)
                expected = [0 if np.isnan(v) else low if v <= low else
                            high if v >= float(high) else int(v) for v in x]
                for scalar in (np.nan, np.inf, -1e30, 5.5):
                    out = kernel.run({"x": x, "s": scalar}, {"y": x.shape, "z": x.shape})
                    with self.subTest(kind=kind, source=source, scalar=scalar):
                        np.testing.assert_array_equal(out["y"], np.array(expected, dtype))
                        one = (0 if np.isnan(scalar) else high if scalar == np.inf else
                               low if scalar < 0 else 5)
                        np.testing.assert_array_equal(out["z"], one)


    def test_casts_of_the_interpreter(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "k")
            with open(path + ".moa", "w", encoding="utf-8") as file:
                file.write("kernel k[N](x : f64[N]) -> y : i64[N] { y = i64(x) }\n")
            np.save(path + "x.npy", np.array([np.inf, -np.inf, np.nan, 2.0 ** 63, 5.5]))
            for target in ("cpu", "reference"):
                ran = mt.tool("moa-run", path + ".moa", f"--target={target}",
                              f"x={path}x.npy", "-o", f"y={path}y.npy")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                np.testing.assert_array_equal(
                    np.load(path + "y.npy"), [2 ** 63 - 1, -2 ** 63, 0, 2 ** 63 - 1, 5])


class Logarithms(mt.KernelTest):

    def test_all_exponents(self):
        spec = """kernel k[N](x : f32[N]) -> (y : f32[N], z : f32[N]) {
          y = log(x)
          z = log2(x)
        }
        """
        rng = np.random.default_rng(1)
        bits = rng.integers(0, 0x7F800000, 400000).astype(np.uint32)
        bits[:100000] %= 0x800000  # subnormal
        x = bits.view(np.float32)
        x[:8] = 0, -0.0, np.inf, np.nan, -1, -1e-40, -np.inf, 1e-40
        out = mt.Kernel(spec).run({"x": x}, {"y": x.shape, "z": x.shape})
        with np.errstate(all="ignore"):
            for name, function in (("y", np.log), ("z", np.log2)):
                expected = function(x.astype(np.float64))
                special = ~np.isfinite(expected)
                np.testing.assert_array_equal(out[name][special], expected[special])
                ulp = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
                error = np.abs(out[name] - expected) / ulp
                self.assertLess(error[~special].max(), 2.0, name)


class Exponentials(mt.KernelTest):

    def test_no_subnormal_results(self):
        """Weights of softmax that are subnormal numbers would take a hundred times as long: such results are 0."""
        for dtype, name in ((np.float32, "f32"), (np.float64, "f64")):
            least = float(np.finfo(dtype).tiny)
            spec = f"kernel k[N](x : {name}[N]) -> (y : {name}[N], z : {name}[N]) {{\n y = exp(x)\n z = exp2(x)\n}}\n"
            near = np.log(least) + np.linspace(-1, 1, 20001)
            edge = np.nextafter(dtype(np.log2(least)), dtype(-np.inf), dtype=dtype)
            x = np.concatenate([near, np.log2(least) + np.linspace(-1, 1, 20001), [edge, np.log2(least), -np.inf, np.nan, -1e30]]).astype(dtype)
            out = mt.Kernel(spec).run({"x": x}, {"y": x.shape, "z": x.shape})
            wide = x.astype(np.longdouble)
            for result, exact in ((out["y"], np.exp(wide)), (out["z"], np.exp2(wide))):
                self.assertFalse(((np.abs(result) > 0) & (np.abs(result) < least)).any())
                clear = exact > least * (1 + 1e-5)
                np.testing.assert_allclose(result[clear].astype(np.longdouble), exact[clear], rtol=8 * np.finfo(dtype).eps)
                self.assertTrue((result[exact < least] == 0).all())
                self.assertTrue(np.isnan(result[-2]))


class LongSums(mt.KernelTest):

    def test_one_sum(self):
        spec = """kernel k[N](x : f32[N]) -> y : f32[1] { y = [i] +/ (x * x) }
        """
        kernel = mt.Kernel(spec)
        rng = np.random.default_rng(2)
        for n in (1, 255, 256, 257, 5000, 1000000, 20000000):
            for x in (np.ones(n, np.float32), rng.standard_normal(n).astype(np.float32)):
                y = kernel.run({"x": x}, {"y": (1,)})["y"][0]
                expected = np.dot(x.astype(np.float64), x.astype(np.float64))
                self.assertLess(abs(y - expected) / expected, 1e-6, n)
        for value in (np.inf, np.nan):
            x[n // 2] = value
            np.testing.assert_equal(kernel.run({"x": x}, {"y": (1,)})["y"][0], value)

    def test_repaired_sums(self):
        """A maximum that grows in many blocks, absent elements, rows in lanes."""
        spec = """kernel k[N, M; D = 8](x : f32[N, M], t : f32[N], V : f32[M, D])
            -> (p : f32[N], o : f32[N, D], l : f32[N]) {
          S = mask([i, j] x[i, j] < t[i], x)
          p = +/ softmax(S)
          o = softmax(S) +.* V
          l = logsumexp(S)
        }
        """
        rng = np.random.default_rng(3)
        for n, m in ((3, 200000), (70, 3000), (5, 257)):
            x = rng.standard_normal((n, m)) + np.linspace(0, 3, m)
            x = x.astype(np.float32).astype(np.float64)
            t, V = np.full(n, 4.0), rng.random((m, 8)).astype(np.float32)
            t[-1] = -100  # nothing present
            out = mt.Kernel(spec).results({"x": x, "t": t, "V": V},
                                          {"p": (n,), "o": (n, 8), "l": (n,)})
            with np.errstate(all="ignore"):
                e = np.where(x < t[:, None], np.exp(x), 0)
                l = np.log(e.sum(1))
                P = np.where(e.sum(1, keepdims=True) > 0, e / e.sum(1, keepdims=True), 0)
            for name, expected in (("p", P.sum(1)), ("o", P @ V), ("l", l)):
                self.assertLess(mt.relative_error(out[name], expected), 2e-6, (name, m))

    def test_softmax_of_a_long_row(self):
        spec = """kernel k[N, M](x : f32[N, M]) -> y : f32[N, M] { y = softmax(x) }
        """
        x = np.random.default_rng(4).standard_normal((2, 1000000)).astype(np.float32)
        y = mt.Kernel(spec).results({"x": x}, {"y": x.shape})["y"]
        e = np.exp(x.astype(np.float64))
        self.assertLess(mt.relative_error(y, e / e.sum(1, keepdims=True)), 1e-6)

    def test_attention_over_many_keys(self):
        spec = """kernel k[N, M; D = 16](Q : f32[N, D], K : f32[M, D], V : f32[M, D])
            -> (O : f32[N, D], l : f32[N]) {
          S = Q +.* transpose(K)
          O = softmax(S) +.* V
          l = logsumexp(S)
        }
        """
        rng = np.random.default_rng(5)
        Q, K, V = (a.astype(np.float32) for a in
                   (rng.standard_normal((4, 16)) / 8, rng.standard_normal((500000, 16)),
                    rng.random((500000, 16))))
        out = mt.Kernel(spec).results({"Q": Q, "K": K, "V": V}, {"O": (4, 16), "l": (4,)})
        e = np.exp(Q.astype(np.float64) @ K.T.astype(np.float64))
        self.assertLess(mt.relative_error(out["O"], e / e.sum(1, keepdims=True) @ V), 2e-6)
        self.assertLess(mt.relative_error(out["l"], np.log(e.sum(1))), 2e-6)


if __name__ == "__main__":
    unittest.main()
