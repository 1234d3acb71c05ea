# RUN: %python %s
"""Attention whose rows lanes share on a GPU (no tensor cores take it), against NumPy.

Full, causal and windowed rows, whose lanes leave the range at different keys; heads that share keys; masks from
arrays; depths of queries and values that differ and fill no lane; states of several kinds in one fold; reads that
are there for some rows and keys only; strides that no wide access takes.
"""
import unittest

import numpy as np

import moa_testing as mt

BOUNDS = {"f64": 1e-13, "f32": 4e-6, "bf16": 6e-3}
ATTENTION = """kernel k[B, H, N, M; T : float = f32, D = 64, E = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, E], scale : f32) -> O : T[B, H, N, E]
{
  S = %s
  O = softmax(S) +.* V
}
"""
SCORES = "(Q +.* transpose(K)) * scale"


def softmax(s):
    with np.errstate(invalid="ignore"):
        top = s.max(axis=-1, keepdims=True)
        p = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = p.sum(axis=-1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1), 0)


def array(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


class SerialLanes(mt.KernelTest):

    def check(self, spec, meaning, inputs, outputs, kinds=("f32",), **settings):
        for kind in kinds:
            with self.subTest(kind=kind, **settings):
                kernel = mt.make_kernel(spec, T=kind, **settings)
                found = kernel.results(inputs, outputs)
                wanted = meaning(**kernel.seen_by_kernel(inputs))
                self.assert_close(found, wanted, BOUNDS[kind], f"{kind} {settings}")

    def inputs(self, b, h, n, m, d, e, heads=None):
        return {"Q": array((b, h, n, d), 1), "K": array((b, heads or h, m, d), 2), "V": array((b, heads or h, m, e), 3),
                "scale": d ** -0.5}

    def test_depths(self):
        def meaning(Q, K, V, scale):
            return {"O": softmax(Q @ K.swapaxes(-1, -2) * scale) @ V}
        for d, e, kinds in ((64, 64, ("f32", "f64")), (128, 128, ("f32",)), (40, 72, ("f32",)), (33, 100, ("f32", "bf16")),
                            (200, 36, ("f32",)), (36, 16, ("bf16",))):
            self.check(ATTENTION % SCORES, meaning, self.inputs(1, 2, 45, 67, d, e), {"O": (1, 2, 45, e)}, kinds, D=d, E=e)

    def test_ranges(self):
        """Rows of a warp end at different keys, and see none of them."""
        forms = {"j <= i": lambda i, j: j <= i, "j <= i and j > i - 9": lambda i, j: (j <= i) & (j > i - 9),
                 "j < i - 20 or j == 2 * i": lambda i, j: (j < i - 20) | (j == 2 * i)}
        for text, holds in forms.items():
            def meaning(Q, K, V, scale):
                s = Q @ K.swapaxes(-1, -2) * scale
                seen = holds(np.arange(s.shape[-2])[:, None], np.arange(s.shape[-1]))
                return {"O": softmax(np.where(seen, s, -np.inf)) @ V}
            spec = ATTENTION % f"mask([_, _, i, j] {text}, {SCORES})"
            self.check(spec, meaning, self.inputs(2, 2, 70, 53, 64, 64), {"O": (2, 2, 70, 64)})

    def test_shared_heads(self):
        spec = """kernel k[B, H, G, N, M; T : float = f32, D = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], keep : bool[B, M], scale : f32) -> (O : T[B, H, N, D], l : f32[B, H, N])
  require H == 3 * G
{
  S = [b, h, i, j] (+/ [k < D] (Q[b, h, i, k] * K[b, h / 3, j, k])) * scale
  P = mask([b, h, i, j] keep[b, j], S)
  l = logsumexp(P)
  O = [b, h, i, d] +/ [j < M] (softmax(P)[b, h, i, j] * V[b, h / 3, j, d])
}
"""
        def meaning(Q, K, V, keep, scale):
            K, V = (np.repeat(x, 3, axis=1) for x in (K, V))
            s = np.where(keep[:, None, None], Q @ K.swapaxes(-1, -2) * scale, -np.inf)
            return {"O": softmax(s) @ V, "l": np.log(np.exp(s).sum(axis=-1))}
        inputs = self.inputs(2, 6, 37, 50, 64, 64, heads=2)
        inputs["keep"] = np.random.default_rng(5).random((2, 50)) < 0.7
        self.check(spec, meaning, inputs, {"O": (2, 6, 37, 64), "l": (2, 6, 37)})

    def test_states(self):
        """Extremes, moments and two sums with an axis in one fold, and what follows from elements of a sum."""
        spec = """kernel k[N, M; T : float = f32, D = 64](
    Q : T[N, D], K : T[M, D], V : T[M, D], W : T[M, D], scale : f32)
    -> (O : T[N, D], U : T[N, D], least : f32[N], mean : f32[N], size : f32[N])
{
  S = (Q +.* transpose(K)) * scale
  P = softmax(S)
  O = P +.* V
  U = P +.* W
  least = min/ S
  mean = +/ (P * S)
  size = sqrt(+/ (O * O))
}
"""
        def meaning(Q, K, V, W, scale):
            s = Q @ K.T * scale
            p = softmax(s)
            return {"O": p @ V, "U": p @ W, "least": s.min(-1), "mean": (p * s).sum(-1), "size": np.sqrt(((p @ V) ** 2).sum(-1))}
        inputs = {"Q": array((41, 64), 1), "K": array((90, 64), 2), "V": array((90, 64), 3), "W": array((90, 64), 4),
                  "scale": 0.125}
        self.check(spec, meaning, inputs, {"O": (41, 64), "U": (41, 64), "least": (41,), "mean": (41,), "size": (41,)})

    def test_neighbours(self):
        """What is read behind the end of an array where nothing needs it is not read."""
        spec = """kernel k[N, M; T : float = f32, D = 64](Q : T[N, D], K : T[M, D], V : T[M, D]) -> O : T[N, D]
{
  O = [i, d] +/ [j < M] (select(j + 1 < M, +/ [k < D] (Q[i, k] * K[j + 1, k]), 0.5) * V[j, d])
}
"""
        def meaning(Q, K, V):
            s = np.concatenate([(Q @ K.T)[:, 1:], np.full((len(Q), 1), 0.5)], axis=1)
            return {"O": s @ V}
        inputs = {"Q": array((35, 64), 1), "K": array((66, 64), 2), "V": array((66, 64), 3)}
        self.check(spec, meaning, inputs, {"O": (35, 64)})

    def test_columns(self):
        """Products of a row and a key that are used for every column, some of which lanes do not have."""
        spec = """kernel k[N, M; T : float = f32, D = 66](Q : T[N, D], K : T[M, D], V : T[M, D], scale : f32) -> O : T[N, D]
{
  S = (Q +.* transpose(K)) * scale
  U = (Q +.* transpose(V)) * scale
  P = softmax(S)
  O = [i, d] +/ [j < M] %s
}
"""
        terms = {"(P[i, j] * (V[j, d] - U[i, j]) * (V[j, d] - U[i, j]))": lambda p, u, v, d: p * (v - u) ** 2,
                 "(P[i, j] * tanh(U[i, j] + V[j, d]))": lambda p, u, v, d: p * np.tanh(u + v),
                 "(P[i, j] * select(V[j, d] > 0.0, U[i, j], 1.0))": lambda p, u, v, d: p * np.where(v > 0, u, 1),
                 "(P[i, j] * select(d < 20, U[i, j], 1.0) * V[j, d])": lambda p, u, v, d: p * np.where(d < 20, u, 1) * v}
        for text, term in terms.items():
            for depth in (64, 66):
                def meaning(Q, K, V, scale):
                    p, u = softmax(Q @ K.T * scale)[..., None], (Q @ V.T * scale)[..., None]
                    return {"O": term(p, u, V[None], np.arange(V.shape[1])).sum(1)}
                inputs = {"Q": array((37, depth), 1), "K": array((50, depth), 2), "V": array((50, depth), 3), "scale": 0.1}
                self.check(spec % text, meaning, inputs, {"O": (37, depth)}, D=depth)

    def test_strides(self):
        """Rows that begin at no multiple of 16 bytes, and columns that are not adjacent."""
        def meaning(Q, K, V, scale):
            return {"O": softmax(Q @ K.swapaxes(-1, -2) * scale) @ V}
        inputs = self.inputs(1, 2, 33, 50, 64, 64)
        for name, odd in (("K", lambda x: np.concatenate([x, x[..., :1]], -1)[..., 1:]), ("V", lambda x: np.repeat(x, 2, -1)[..., ::2])):
            changed = dict(inputs)
            changed[name] = odd(inputs[name])
            self.check(ATTENTION % SCORES, meaning, changed, {"O": (1, 2, 33, 64)})

    def test_empty(self):
        def meaning(Q, K, V, scale):
            return {"O": np.zeros(Q.shape[:-1] + V.shape[-1:])}
        self.check(ATTENTION % SCORES, meaning, self.inputs(1, 2, 5, 0, 64, 64), {"O": (1, 2, 5, 64)})


if __name__ == "__main__":
    unittest.main()
