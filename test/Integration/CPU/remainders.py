# RUN: %python %s
"""Remainders, rounding, functions of angles and others that are accurate near 0, and the operators of bool, against NumPy.

Operands are of all kinds: zeros of both signs, infinities, NaN and subnormal numbers.
"""
import itertools
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

mt.compile_soonest()

PAIRS = """kernel pairs[N; T : float = f32](x : T[N], y : T[N]) -> (exact : T[N], modulo : T[N], quotient : T[N], half : T[N])
{
  exact    = fmod(x, y)
  modulo   = x % y
  quotient = floor_divide(x, y)
  half     = x % 0.5
}
"""
ONES = """kernel ones[N; T : float = f32](x : T[N])
    -> (nearest : T[N], whole : T[N], sign : T[N], near_one : T[N], near_zero : T[N])
{
  nearest   = round(x)
  whole     = trunc(x)
  sign      = sign(x)
  near_one  = log1p(x)
  near_zero = expm1(x)
}
"""
ANGLES = """kernel angles[N; T : float = f32](x : T[N], y : T[N])
    -> (arcsin : T[N], arccos : T[N], arctan : T[N], arctan2 : T[N], sinh : T[N], cosh : T[N])
{
  arcsin  = asin(x)
  arccos  = acos(x)
  arctan  = atan(x)
  arctan2 = atan2(x, y)
  sinh    = sinh(x)
  cosh    = cosh(x)
}
"""
LOGIC = """kernel logic[N](p : bool[N], q : bool[N], k : i32[N], n : i32[N])
    -> (both : bool[N], either : bool[N], differ : bool[N], neither : bool[N], mixed : i32[N], rest : i32[N], signs : i32[N])
{
  both    = p & q
  either  = p | q
  differ  = p ^ q
  neither = ~p & ~q
  mixed   = k & n ^ ~k | n
  rest    = k % n + round(k) - trunc(n)
  signs   = sign(k)
}
"""
# A remainder selects the elements of a sum.
MASKED = """kernel masked[N, M](x : f32[N, M], period : f32) -> y : f32[N]
{
  y = +/ mask((x % period < 1.0) ^ (x < 0), x)
}
"""
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 0.1, -0.1, 7.25, -1e30, 1e-30, 1e-40, np.inf, -np.inf, np.nan]
FORMATS = {"f32": np.float32, "f64": np.float64, "bf16": np.float32}


def stored(x, kind):
    """Values rounded to a type, in the type that the kernel computes in."""
    return mt.decode(mt.encode(x, kind), kind).astype(FORMATS[kind])


def numbers(kind):
    """Pairs of special values, of random magnitudes, and next to multiples."""
    rng = np.random.default_rng(7)
    special = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    count = 700
    magnitudes = np.exp(rng.uniform(-30, 30, (2, count))) * rng.choice([-1, 1], (2, count))
    y = rng.uniform(0.05, 9, count) * rng.choice([-1, 1], count)
    x = stored(y, kind).astype(np.float64) * rng.integers(-300, 300, count) + rng.choice([0, 1e-7, -1e-7], count)
    halves = np.array([rng.integers(-99, 99, count) / 2, rng.integers(1, 9, count) / 4])
    return (stored(a, kind) for a in np.concatenate([special, magnitudes, [x, y], halves], axis=1))


def modulo(x, y):
    """Python's remainder. Unlike that of NumPy, a zero has the sign of the dividend, as in PyTorch."""
    r = np.fmod(x, y)
    return np.where((r != 0) & ((y < 0) != (r < 0)), r + y, r)


class Remainders(mt.KernelTest):

    def check_bits(self, found, wanted, kind, what, *operands):
        """Values and the signs of zeros are equal. All NaN count as equal."""
        wanted = mt.decode(mt.encode(wanted, kind), kind)
        same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | np.isnan(found) & np.isnan(wanted)
        at = np.flatnonzero(~same)[:5]
        self.assertEqual(at.size, 0, f"{what} in {kind} of {[x[at] for x in operands]}: {found[at]}, not {wanted[at]}")

    def test_pairs(self):
        for kind in FORMATS:
            with self.subTest(kind=kind), np.errstate(all="ignore"):
                x, y = numbers(kind)
                found = mt.make_kernel(PAIRS, T=kind).results({"x": x, "y": y}, {name: x.shape for name in
                                                              ("exact", "modulo", "quotient", "half")})
                np.testing.assert_array_equal(np.nan_to_num(modulo(x, y)), np.nan_to_num(np.remainder(x, y)))
                self.check_bits(found["exact"], np.fmod(x, y), kind, "fmod", x, y)
                self.check_bits(found["modulo"], modulo(x, y), kind, "%", x, y)
                self.check_bits(found["quotient"], np.floor_divide(x, y), kind, "floor_divide", x, y)
                self.check_bits(found["half"], modulo(x, x.dtype.type(0.5)), kind, "% 0.5", x)

    def test_functions(self):
        for kind, ulps in (("f32", 6e-7), ("f64", 1e-15), ("bf16", 8e-3)):
            with self.subTest(kind=kind), np.errstate(all="ignore"):
                x = next(iter(numbers(kind)))
                x = np.concatenate([x, stored(np.random.default_rng(3).uniform(-3, 3, 900), kind)])
                names = ("nearest", "whole", "sign", "near_one", "near_zero")
                found = mt.make_kernel(ONES, T=kind).results({"x": x}, {name: x.shape for name in names})
                self.check_bits(found["nearest"], np.round(x), kind, "round", x)
                self.check_bits(found["whole"], np.trunc(x), kind, "trunc", x)
                self.check_bits(found["sign"], np.sign(x), kind, "sign", x)
                for name, function in (("near_one", np.log1p), ("near_zero", np.expm1)):
                    wanted = mt.decode(mt.encode(function(x.astype(np.float64)), kind), kind)
                    np.testing.assert_allclose(found[name], wanted, rtol=ulps, atol=0, err_msg=name)
                    small = np.abs(x) < 1e-25
                    self.check_bits(found[name][small], x[small], kind, name, x[small])

    def test_angles(self):
        for kind, bound in (("f32", 8e-7), ("f64", 2e-15), ("bf16", 8e-3)):
            with self.subTest(kind=kind), np.errstate(all="ignore"):
                x, y = numbers(kind)
                uniform = np.random.default_rng(8).uniform(-1, 1, (2, 900))
                x, y = (np.concatenate([a, stored(b, kind), stored(9 * b, kind)]) for a, b in zip((x, y), uniform))
                names = ("arcsin", "arccos", "arctan", "sinh", "cosh")
                found = mt.make_kernel(ANGLES, T=kind).results({"x": x, "y": y}, {n: x.shape for n in (*names, "arctan2")})
                wide = x.astype(np.float64), y.astype(np.float64)
                for name in (*names, "arctan2"):
                    exact = np.arctan2(*wide) if name == "arctan2" else getattr(np, name)(wide[0])
                    wanted = mt.decode(mt.encode(exact.astype(x.dtype), kind), kind)
                    np.testing.assert_allclose(found[name], wanted, rtol=bound, atol=3e-45, err_msg=name)
                    zero = wanted == 0
                    np.testing.assert_array_equal(np.signbit(found[name][zero]), np.signbit(wanted[zero]), name)

    def test_logic(self):
        rng = np.random.default_rng(5)
        p, q = rng.random((2, 99)) < 0.5
        k, n = rng.integers(-99, 99, 99), rng.choice([-7, -2, -1, 1, 3, 64], 99)
        wanted = {"both": p & q, "either": p | q, "differ": p ^ q, "neither": ~p & ~q, "mixed": k & n ^ ~k | n,
                  "rest": k % n + k - n, "signs": np.sign(k)}
        found = mt.make_kernel(LOGIC).results({"p": p, "q": q, "k": k, "n": n}, {name: (99,) for name in wanted})
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value, name)

    def test_mask(self):
        x = np.random.default_rng(6).uniform(-9, 9, (5, 77)).astype(np.float32)
        kept = (np.remainder(x, np.float32(2.5)) < 1) ^ (x < 0)
        found = mt.make_kernel(MASKED).results({"x": x, "period": 2.5}, {"y": (5,)})
        np.testing.assert_allclose(found["y"], np.where(kept, x.astype(np.float64), 0).sum(axis=1), rtol=1e-5)

    @unittest.skipUnless(mt.TARGET == "cpu", "the interpreter needs no device")
    def test_interpreter(self):
        for spec in (PAIRS, ONES, ANGLES, LOGIC.replace("n : i32[N]", "n : i32[N] in 1..9")):
            with self.subTest(spec=spec[:16]), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "k.moa")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(spec)
                ran = mt.tool("moa-run", path, "--check", "--random", "1", "N=300")
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    mt.main()
