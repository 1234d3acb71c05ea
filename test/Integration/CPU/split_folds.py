# RUN: %python %s
"""Folds over ranges in parts that a nest of their own stores (rule R4), against NumPy.

Few queries over many keys with every kind of state: maxima and sums with their repairs, means and moments
that are repaired linearly, states that start again, monoids of the user, with masks that leave parts
empty, over sizes around those of parts. On a CPU the form of a GPU is made by hand and run too.
"""
import os
import subprocess
import unittest

import numpy as np

import moa_testing as mt

DECODE = """kernel k[B, H, G, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], scale : f32, len : i32[B])
    -> (O : T[B, H, N, D], lse : f32[B, H, N])
  require H % G == 0
{
  Kh = [b < B, h < H] K[b, h / (H/G)]
  Vh = [b < B, h < H] V[b, h / (H/G)]
  S = MASK((Q +.* transpose(Kh)) * scale)
  O = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""
MASKS = {
    "full": ("(", lambda i, j, n, m, length: j >= 0),
    "causal": ("mask([_, _, i, j] j <= i + (M - N), ", lambda i, j, n, m, length: j <= i + m - n),
    "lengths": ("mask([b, _, _, j] j < len[b], ", lambda i, j, n, m, length: j < length),
    "window": ("mask([_, _, i, j] j > i + (M - N) - 70, ", lambda i, j, n, m, length: j > i + m - n - 70),
}
BOUNDS = {"bf16": 6e-3, "f32": 4e-6, "f64": 1e-13}


def decode(mask):
    return DECODE.replace("MASK(", MASKS[mask][0])


class SplitFolds(mt.DirectoryTest, mt.KernelTest):

    def kernels(self, spec, length=64, **settings):
        """The kernel as the target makes it and, on a CPU, as a GPU's with short parts."""
        yield mt.make_kernel(spec, **settings)
        if mt.TARGET not in ("cpu", "device"):
            return
        self.write("k.moa", spec)
        paths = [os.path.join(self.directory, name) for name in ("k.moa", "k.mlir", "parts.mlir")]
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        for words in (["moa-codegen", paths[0], *sets, "--emit=onf", "-o", paths[1]],
                      ["moa-opt", paths[1], f"--onf-split-folds=length={length}", "--onf-verify", "-o", paths[2]]):
            made = mt.tool(*words)
            self.assertEqual(made.returncode, 0, made.stderr)
        with open(paths[2], encoding="utf-8") as file:
            text = file.read()
        self.assertIn("_parts", text)
        self.assertIn("onf.guard", text)
        yield mt.make_kernel(paths[2])

    def test_attention(self):
        for mask, (_, seen) in MASKS.items():
            for kind, n in (("bf16", 1), ("f32", 3)) if mask in ("causal", "lengths") else (("bf16", 3),):
                for kernel in self.kernels(decode(mask), T=kind, N=n):
                    for m in (65, 700) if mt.TARGET == "device" else (0, 1, 64, 65, 1100):
                        self.check_attention(kernel, seen, n, m, kind, mask)

    def check_attention(self, kernel, seen, n, m, kind, mask):
        random = np.random.default_rng(n + m)
        inputs = {"Q": random.standard_normal((2, 4, n, 64)), "K": random.standard_normal((2, 2, m, 64)),
                  "V": random.standard_normal((2, 2, m, 64)), "scale": 0.5, "len": np.array([m // 3, m])}
        found = kernel.results(inputs, {"O": (2, 4, n, 64), "lse": (2, 4, n)})
        exact = kernel.seen_by_kernel(inputs)
        k, v = (np.repeat(exact[name], 2, axis=1) for name in "KV")
        there = np.broadcast_to(seen(np.arange(n)[:, None], np.arange(m), n, m, inputs["len"][:, None, None, None]),
                                (2, 4, n, m))
        s = np.where(there, exact["Q"] @ k.swapaxes(2, 3) * 0.5, -np.inf)
        top = s.max(axis=-1, keepdims=True, initial=-1e30)
        e = np.exp(s - top)
        total = e.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = np.where(total > 0, top + np.log(total), -np.inf)[..., 0]
        wanted = {"O": np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v, "lse": lse}
        self.assert_close(found, wanted, BOUNDS[kind], f"{mask} {n} {m} {kind}")

    def check(self, spec, meaning, shapes, outputs, bounds=None, kinds=("f32",), **settings):
        for kind in kinds:
            for kernel in self.kernels(spec, T=kind, **settings):
                inputs = {name: np.random.default_rng(len(shape)).standard_normal(shape) + 0.5
                          for name, shape in shapes.items()}
                found = kernel.results(inputs, outputs)
                self.assert_close(found, meaning(**kernel.seen_by_kernel(inputs)), (bounds or BOUNDS)[kind], kind)

    def test_moments(self):
        """Linear repairs: squares of differences from the mean of all parts."""
        spec = """kernel k[N, M; T : float = f32](x : T[N, M]) -> (m : T[N], v : T[N])
{
  m = (+/ x) / T(M)
  d = [i, j] x[i, j] - m[i]
  v = (+/ (d * d)) / T(M)
}
"""
        self.check(spec, lambda x: {"m": x.mean(axis=-1), "v": x.var(axis=-1)}, {"x": (3, 333)},
                   {"m": (3,), "v": (3,)}, N=3)

    def test_repairs_that_read(self):
        """A reference that is no state alone: repairs read what stands in front of the fold, as sinks of a softmax."""
        spec = """kernel k[N, M; T : float = f32](x : T[N, M], t : T[N]) -> (m : T[N], y : T[N])
{
  u = t * 4
  m = max(max/ x, u)
  y = (+/ exp(x -@(1,0) m)) + exp(u - m)
}
"""
        def meaning(x, t):
            m = np.maximum(x.max(axis=-1), t * 4)
            return {"m": m, "y": np.exp(x - m[:, None]).sum(axis=-1) + np.exp(t * 4 - m)}
        self.check(spec, meaning, {"x": (3, 401), "t": (3,)}, {"m": (3,), "y": (3,)}, kinds=("f32", "f64"), N=3)

    def test_states_that_start_again(self):
        spec = """kernel k[N, M; T : float = f32](x : T[N, M]) -> (m : T[N], a : T[N])
{
  m = max/ x
  a = +/ ([i, j] select(x[i, j] == m[i], 1.0, 0.0))
}
"""
        self.check(spec, lambda x: {"m": x.max(axis=-1), "a": (x == x.max(axis=-1, keepdims=True)).sum(axis=-1)},
                   {"x": (2, 401)}, {"m": (2,), "a": (2,)}, N=2)

    def test_monoid_of_the_user(self):
        spec = """monoid plus(a, b) identity 0 { return a + b + a * b }
kernel k[N, M; T : float = f32](x : T[N, M]) -> O : T[N]
{
  O = reduce(plus, x * 0.01, 1)
}
"""
        self.check(spec, lambda x: {"O": np.prod(1 + x * 0.01, axis=-1) - 1}, {"x": (3, 200)}, {"O": (3,)},
                   {"f32": 2e-5, "f64": 1e-9}, N=3)

    def test_one_result(self):
        """No rows at all."""
        spec = "kernel k[M; T : float = f32](x : T[M]) -> (s : T, l : T)\n{\n  s = +/ x\n  l = logsumexp(x)\n}\n"
        self.check(spec, lambda x: {"s": x.sum(), "l": np.log(np.exp(x).sum())}, {"x": (777,)}, {"s": (), "l": ()})

    def test_boundaries_are_those_of_keys(self):
        """A row alone has the bits that it has beside others."""
        random = np.random.default_rng(5)
        q, k, v = (random.standard_normal(shape) for shape in ((1, 2, 2, 64), (1, 2, 500, 64), (1, 2, 500, 64)))
        rest = {"K": k, "V": v, "scale": 0.3, "len": np.array([500])}

        def run(queries):
            n = queries.shape[2]
            kernel = list(self.kernels(decode("full"), T="f32", N=n))[-1]
            return kernel.run({"Q": queries, **rest}, {"O": (1, 2, n, 64), "lse": (1, 2, n)})["O"]

        both, one = run(q), run(q[:, :, 1:])
        self.assertEqual(np.ascontiguousarray(both[:, :, 1:]).tobytes(), one.tobytes())


if __name__ == "__main__":
    mt.main()
