# RUN: %python %s
"""Casts against NumPy: each rounds or wraps as its name says, or it is an error where the type that a kernel computes in would lose it."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

mt.compile_soonest()

NARROW = """kernel narrow[N](x : f32[N], k : i32[N]) -> (a : f32[N], b : f32[N], c : f32[N], d : f32[N], e : i32[N], f : f32)
{
  a = bf16(x) * 3.0
  b = f16(x) * 3.0
  c = f32(i8(k)) + 0.5
  d = f32(i16(k)) + 0.5
  e = i8(k) + i16(k)
  f = +/ f16(x)
}
"""
# The kernel computes in f64: f32(x) rounds all the same.
WIDE = """kernel wide[N](x : f64[N], k : i32[N]) -> (a : f64[N], b : f64[N], c : f64[N], d : f64)
{
  a = f32(x) * 3.0
  b = bf16(x) * 3.0
  c = f32(k) + 0.5
  d = +/ f32(x)
}
"""
# The kernel computes in f32, and results of f64 take what is cast to f64, or an integer, as it is.
RESULTS = """kernel results[N](x : f32[N], n : i64[N]) -> (a : f64[N], b : f64[N], c : f64[N], d : f64[N])
{
  a = f64(x)
  b = n
  c = f64(n)
  d = [i < N] 0.1
}
"""
# What is lost.
LOST = ["f64(x) * 2.0", "+/ f64(x)", "exp(f64(x))", "select(f64(x) > 0.5, x, 0.0)", "f64(0.1) + x", "f64(N) * x", "x + f64(i32(x))",
        "f64(x) +.* x", "max/ reverse(f64(x))"]


def bf16(x):
    return mt.from_bf16(mt.to_bf16(x)).astype(np.float64)


class Casts(mt.KernelTest):

    def check(self, spec, inputs, wanted):
        found = mt.make_kernel(spec).results(inputs, {name: np.shape(value) for name, value in wanted.items()})
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-15, atol=0, err_msg=name)
        if mt.TARGET == "cpu": # the interpreter of the specification
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "k.moa")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(spec)
                ran = mt.tool("moa-run", path, "--check", "--random", "1", "N=37")
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_narrower_types(self):
        rng = np.random.default_rng(0)
        # Three times a rounded number is exact in f32, and so are sums of halves.
        x = rng.integers(-2048, 2049, 50) / 8 + 2.0**-9
        k = np.concatenate([rng.integers(-2**31, 2**31, 47), [127, 128, 32768]])
        y = x.astype(np.float16).astype(np.float64)
        i8, i16 = k.astype(np.int8).astype(np.int64), k.astype(np.int16).astype(np.int64)
        self.check(NARROW, {"x": x, "k": k}, {"a": bf16(x) * 3, "b": y * 3, "c": i8 + 0.5, "d": i16 + 0.5, "e": i8 + i16, "f": y.sum()})

    def test_kernels_of_f64(self):
        rng = np.random.default_rng(1)
        x, k = rng.standard_normal(50), rng.integers(-2**31, 2**31, 50)
        y = x.astype(np.float32).astype(np.float64)
        self.check(WIDE, {"x": x, "k": k}, {"a": y * 3.0, "b": bf16(x) * 3.0, "c": k.astype(np.float32).astype(np.float64) + 0.5, "d": y.sum()})

    def test_results_of_f64(self):
        rng = np.random.default_rng(2)
        x, n = rng.standard_normal(50), rng.integers(-2**52, 2**52, 50)
        self.check(RESULTS, {"x": x, "n": n}, {"a": x.astype(np.float32).astype(np.float64), "b": n.astype(np.float64),
                                               "c": n.astype(np.float64), "d": np.full(50, 0.1)})

    def test_lost_casts(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "k.moa")
            for text in LOST:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"kernel k[N](x : f32[N]) -> y : f64[...] {{ y = {text} }}\n".replace(
                        "f64[...]", "f64" if "/ " in text or "+.*" in text else "f64[N]"))
                made = mt.tool("moa-codegen", path, "--emit=moa")
                self.assertEqual(made.returncode, 1, text)
                self.assertIn("loses the cast to f64", made.stderr, text)


if __name__ == "__main__":
    unittest.main()
