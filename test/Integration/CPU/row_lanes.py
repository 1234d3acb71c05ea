# RUN: %python %s
"""Rows whose elements are read, folded and written along the last axis, against NumPy.

Scales of rows and their quantised elements, norms, softmax statistics with their repairs, moments,
monoids of the user, maps, gathers of rows and transposed results, of every type, over rows that fill the
lanes of a GPU and rows that do not.
"""
import unittest

import numpy as np

import moa_testing as mt

BOUNDS = {"f64": 1e-13, "f32": 4e-6, "bf16": 6e-3, "f16": 2e-3}
# Rows of one run per lane, of two, of none that is whole, and of more than lanes hold.
WIDTHS = [64, 128, 200, 33, 1040]
KINDS = ("bf16", "f32")


def array(shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


class RowLanes(mt.KernelTest):

    def check(self, spec, meaning, shapes, kinds=KINDS, bound=None, **settings):
        """`shapes`: of inputs, or their arrays, and of outputs."""
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind, **settings)
            ins, outs = shapes
            inputs = {name: value if isinstance(value, np.ndarray) else array(value, len(name) + sum(value))
                      for name, value in ins.items()}
            found = kernel.results(inputs, outs)
            wanted = meaning(**kernel.seen_by_kernel(inputs))
            for name in wanted:
                limit = bound or BOUNDS[kernel.by_name[name].kind if kernel.by_name[name].kind in BOUNDS else kind]
                self.assert_close({name: found[name]}, {name: wanted[name]}, limit, f"{kind} {settings} {name}")

    def widths(self):
        return [64, 200, 33] if mt.TARGET == "device" else WIDTHS

    def test_quantised(self):
        """The largest element of a row, and all of them in units of it; floor(x + 1/2) of a value at a half may
        fall to either side where a product is rounded otherwise."""
        spec = """kernel k[B, H, N; T : float = bf16, D = 128](x : T[B, H, N, D]) -> (s : f32[B, H, N], y : i8[B, H, N, D])
{
  m = max/ abs(x)
  s = m / 127.0
  y = [b, h, i, k] i8(floor(x[b, h, i, k] * (127.0 / m[b, h, i]) + 0.5))
}
"""
        for width in self.widths():
            for kind in ("bf16", "f16", "f32"):
                kernel = mt.make_kernel(spec, T=kind, D=width)
                x = array((2, 3, 37, width), width)
                found = kernel.run({"x": x}, {"s": (2, 3, 37), "y": (2, 3, 37, width)})
                seen = kernel.seen_by_kernel({"x": x})["x"].astype(np.float32)
                largest = np.abs(seen).max(axis=-1)
                np.testing.assert_array_equal(found["s"], largest / np.float32(127))
                units = seen * (np.float32(127) / largest)[..., None]
                self.assertLessEqual(np.abs(found["y"] - units).max(), 0.5 + 1e-4, f"{kind} {width}")

    def test_norm(self):
        spec = """kernel k[B, N; T : float = bf16, D = 128](x : T[B, N, D], g : T[D]) -> (y : T[B, N, D], n : f32[B, N])
{
  n = sqrt((+/ (x * x)) / f32(D) + 0.000001)
  y = [b, i, k] x[b, i, k] / n[b, i] * g[k]
}
"""
        def meaning(x, g):
            n = np.sqrt((x * x).mean(axis=-1) + 1e-6)
            return {"y": x / n[..., None] * g, "n": n}
        for d in self.widths():
            self.check(spec, meaning, ({"x": (2, 19, d), "g": (d,)}, {"y": (2, 19, d), "n": (2, 19)}), D=d)

    def test_softmax(self):
        """The sum is repaired where lanes join with other maxima; rows of no element, and of any length."""
        spec = """kernel k[B, N, M; T : float = bf16](x : T[B, N, M]) -> (y : T[B, N, M], l : f32[B, N])
{
  y = softmax(x)
  l = logsumexp(x)
}
"""
        def meaning(x):
            m = x.max(axis=-1, keepdims=True)
            e = np.exp(x - m)
            s = e.sum(axis=-1, keepdims=True)
            return {"y": e / s, "l": (m + np.log(s))[..., 0]}
        for m in ([70, 1] if mt.TARGET == "device" else [1, 31, 256, 257, 4000]):
            x = array((2, 9, m), m, 5.0)
            x[0, 0] = np.linspace(-80, 80, m)  # each lane has another maximum
            self.check(spec, meaning, ({"x": x}, {"y": (2, 9, m), "l": (2, 9)}), kinds=("bf16", "f32"), bound=6e-3)
            self.check(spec, meaning, ({"x": x}, {"y": (2, 9, m), "l": (2, 9)}), kinds=("f64",), bound=1e-6)

    def test_absent_elements(self):
        spec = """kernel k[N; T : float = bf16, D = 128](x : T[N, D], len : i32[N]) -> (y : T[N, D], l : f32[N])
{
  z = mask([i, j] j < len[i], x)
  y = softmax(z)
  l = logsumexp(z)
}
"""
        def meaning(x, len):
            there = np.arange(x.shape[1]) < len[:, None]
            e = np.where(there, np.exp(x), 0)
            s = e.sum(axis=-1, keepdims=True)
            with np.errstate(divide="ignore"):
                return {"y": np.divide(e, s, out=np.zeros_like(e), where=s != 0), "l": np.log(s)[:, 0]}
        lengths = np.array([0, 1, 8, 9, 64, 127, 128])
        for d in (128, 100):
            self.check(spec, meaning, ({"x": (7, d), "len": np.minimum(lengths, d)}, {"y": (7, d), "l": (7,)}),
                       kinds=("bf16", "f32"), bound=6e-3, D=d)

    def test_moments(self):
        """Linear repairs: powers of differences from a mean that lanes know differently."""
        spec = """kernel k[B, N; T : float = bf16, D = 256](x : T[B, N, D]) -> (m : f32[B, N], v : f32[B, N])
{
  m = (+/ x) / f32(D)
  d = x -@(2,0) m
  v = (+/ (d * d)) / f32(D)
}
""".replace("x -@(2,0) m", "[b, i, k] x[b, i, k] - m[b, i]")
        for d in self.widths():
            self.check(spec, lambda x: {"m": x.mean(axis=-1), "v": x.var(axis=-1)},
                       ({"x": array((2, 5, d), d) + 3}, {"m": (2, 5), "v": (2, 5)}), kinds=("bf16", "f32"),
                       bound=6e-6, D=d)

    def test_how_often_the_largest_is_there(self):
        """A state that starts again where lanes join with other maxima."""
        spec = """kernel k[N; T : float = bf16, D = 128](x : T[N, D]) -> (m : f32[N], a : f32[N])
{
  m = max/ x
  a = +/ ([i, j] select(x[i, j] == m[i], 1.0, 0.0))
}
"""
        def meaning(x):
            m = x.max(axis=-1)
            return {"m": m, "a": (x == m[:, None]).sum(axis=-1)}
        for d in (64, 200):
            self.check(spec, meaning, ({"x": np.round(array((11, d), d))}, {"m": (11,), "a": (11,)}), D=d)

    def test_monoid_of_the_user(self):
        """Lanes combine in an order of their own: x ⊕ y = x + y + x y, of numbers near 0."""
        spec = """monoid plus(a, b) identity 0 { return a + b + a * b }
kernel k[N; T : float = bf16, D = 128](x : T[N, D]) -> O : f32[N]
{
  O = reduce(plus, x * 0.01, 1)
}
"""
        for d in (64, 128, 200):
            self.check(spec, lambda x: {"O": np.prod(1 + x * 0.01, axis=-1) - 1},
                       ({"x": (9, d)}, {"O": (9,)}), kinds=("f32", "bf16"), bound=2e-4, D=d)

    def test_maps_and_gathers(self):
        spec = """kernel k[B, N, P; T : float = bf16, D = 64](x : T[B, P, D], r : i32[N] in 0..P)
    -> (y : T[B, N, D], z : f32[B, P, D], t : T[B, D, P])
{
  y = [b, i, k] x[b, r[i], k]
  z = x * 2.0 + 1.0
  t = [b, k, p] x[b, p, k]
}
"""
        r = np.array([3, 0, 12, 12, 5, 7, 1])
        for d in self.widths():
            self.check(spec, lambda x, r: {"y": x[:, r], "z": 2 * x + 1, "t": x.swapaxes(1, 2)},
                       ({"x": (2, 13, d), "r": r}, {"y": (2, 7, d), "z": (2, 13, d), "t": (2, d, 13)}),
                       kinds=("bf16", "f32"), bound=4e-3, D=d)

    def test_turned(self):
        """Results along another axis than that of what they read: whole runs, the rest of a row behind them, rows
        that do not fill a warp, conditions on the column and on what selections protect, results of other types."""
        spec = """kernel k[B, N, M; T : float = bf16, D = 40](x : T[B, M, D], y : T[B, D, M], r : i32[M])
    -> (t : T[B, D, M], u : f32[D, B, M], v : T[B, D, N], w : i8[D, M], z : T[B, D, M])
  require B >= 1
{
  t = [b, d, j] x[b, j, d]
  u = [d, b, j] x[b, j, d] * 2.0
  v = [b < B, d < D, j < N] select(j < M and j >= 2, x[b, j, d], 0.5)
  w = [d, j] i8(x[0, j, d] * 10.0)
  z = [b, d, j] select(r[j] >= 0 and r[j] < M, x[b, r[j], d], y[b, d, j])
}
"""
        sizes = ((1, 3), (37, 50)) if mt.TARGET == "device" else ((1, 3), (16, 16), (37, 50), (200, 130))
        for m, n in sizes:
            for d in (16, 40, 64):
                chosen = np.random.default_rng(m).integers(-1, m, m)

                def meaning(x, y, r):
                    t = x.swapaxes(1, 2)
                    v = np.full((2, d, n), 0.5)
                    v[:, :, 2:min(m, n)] = t[:, :, 2:n]
                    z = np.where(r >= 0, t[:, :, np.maximum(r, 0)], y)
                    return {"t": t, "u": 2 * t.swapaxes(0, 1), "v": v, "w": np.trunc(10 * t[0]), "z": z}

                outs = {"t": (2, d, m), "u": (d, 2, m), "v": (2, d, n), "w": (d, m), "z": (2, d, m)}
                x = np.round(array((2, m, d), m) * 8) / 8
                self.check(spec, meaning, ({"x": x, "y": (2, d, m), "r": chosen}, outs), bound=1e-12, D=d)

    def test_columns_of_any_number(self):
        spec = "kernel k[N, M; T : float = bf16](x : T[N, M]) -> y : T[N, M]\n{\n  y = x * x\n}\n"
        for m in (1, 40, 1100):
            self.check(spec, lambda x: {"y": x * x}, ({"x": (3, m)}, {"y": (3, m)}), kinds=("bf16",))

    def test_strides(self):
        """Rows that do not stand side by side, or not at multiples of 16 bytes, give the same bits."""
        if mt.TARGET == "device":
            self.skipTest("the interpreter gives arrays strides of its own")
        spec = """kernel k[N; T : float = bf16, D = 128](x : T[N, D]) -> (y : T[N, D], m : f32[N])
{
  m = max/ abs(x)
  y = [i, k] x[i, k] / m[i]
}
"""
        kernel = mt.make_kernel(spec)
        x = array((21, 128))
        first = kernel.run({"x": x}, {"y": (21, 128), "m": (21,)})

        def apart(values):
            if values.ndim != 2:
                return values
            wide = np.zeros((values.shape[0], values.shape[1] + 3), values.dtype)
            wide[:, 1:-2] = values
            return wide[:, 1:-2]

        def columns(values):
            return np.asfortranarray(values)

        for arrange in (apart, columns):
            try:
                other = kernel.run({"x": x}, {"y": (21, 128), "m": (21,)}, arrange=arrange)
            except RuntimeError as refused:
                self.assertIn("stride", str(refused))
                continue
            self.assert_same_bits(first, {name: np.ascontiguousarray(a) for name, a in other.items()}, "strides")


if __name__ == "__main__":
    mt.main()
