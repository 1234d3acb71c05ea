# RUN: %python %s
"""Folds of a row in front of attention and behind it, and computed operands that are rounded, against NumPy.

Norms of queries and keys with and without gains, rotary positions, norms of results, and two attentions in one
result: nests of their own for a GPU, whose sums of products run by tiles.
"""
import unittest

import numpy as np

import moa_testing as mt

BOUNDS = {"f32": 4e-6, "bf16": 6e-3, "f16": 2e-3}
D = 64
RMS = "def rms(x : [d]) { return x / sqrt((+/ (x * x)) / 64.0 + 1e-6) }\n"
HEAD = """kernel k[B, H, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D]{more}, t : f32) -> O : T[B, H, N, D]
"""


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def rounded(x, kind):
    """To the operands' type, as f64."""
    return mt.decode(mt.encode(x, kind), kind).astype(np.float64)


def turned(k):
    return k.swapaxes(-1, -2)


class Norms(mt.KernelTest):

    def check(self, spec, meaning, shapes, outs, kinds=("bf16", "f16", "f32"), **settings):
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind, **settings)
            rng = np.random.default_rng(7)
            inputs = {name: 0.25 if shape == () else rng.standard_normal(shape) for name, shape in shapes.items()}
            found = kernel.results(inputs, outs)
            wanted = meaning(**kernel.seen_by_kernel(inputs), kind=kind)
            for name in wanted:
                self.assert_close({name: found[name]}, {name: wanted[name]}, BOUNDS[kind], f"{kind} {name}")

    def sizes(self):
        """Rows and keys: many, and so few rows that the keys fall into parts."""
        return [(70, 150), (3, 2200)] if mt.TARGET == "device" else [(200, 333), (3, 4200)]

    def shapes(self, n, m, **more):
        b, h = (1, 2) if mt.TARGET == "device" else (2, 3)
        return dict(Q=(b, h, n, D), K=(b, h, m, D), V=(b, h, m, D), **more, t=()), {"O": (b, h, n, D)}

    def test_norms_of_queries_and_keys(self):
        spec = RMS + HEAD.format(more="") + """{
  O = softmax(rms(Q) +.* transpose(rms(K)) * t) +.* V
}
"""
        def meaning(Q, K, V, t, kind):
            return {"O": softmax(rms(Q) @ turned(rms(K)) * t) @ V}
        for n, m in self.sizes():
            self.check(spec, meaning, *self.shapes(n, m))

    def test_norm_of_queries_and_statistics(self):
        """Lengths of queries alone, and the logarithm of the sums as a second result."""
        spec = """kernel k[B, H, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], t : f32) -> (O : T[B, H, N, D], lse : f32[B, H, N])
{
  q = [b < B, h < H, i < N] sqrt(+/ (Q[b, h, i] * Q[b, h, i]))
  S = [b < B, h < H, i < N, j < M] (Q +.* transpose(K))[b, h, i, j] * t / q[b, h, i]
  O = softmax(S) +.* V
  lse = logsumexp(S)
}
"""
        def meaning(Q, K, V, t, kind):
            s = Q @ turned(K) * t / np.sqrt((Q * Q).sum(axis=-1, keepdims=True))
            return {"O": softmax(s) @ V, "lse": np.log(np.exp(s).sum(axis=-1))}
        for n, m in self.sizes():
            shapes, outs = self.shapes(n, m)
            self.check(spec, meaning, shapes, outs | {"lse": outs["O"][:3]})

    def test_layer_norm_of_queries(self):
        """Two folds of a row, of which the second reads the first; their results are rounded operands."""
        spec = HEAD.format(more="") + """{
  O = softmax(T(layernorm(Q)) +.* transpose(K) * t) +.* V
}
def layernorm(x : [n]) {
  c = x - mean(x)
  return c * rsqrt(mean(c * c) + 1e-6)
}
"""
        def meaning(Q, K, V, t, kind):
            c = Q - Q.mean(axis=-1, keepdims=True)
            q = rounded(c / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-6), kind)
            return {"O": softmax(q @ turned(K) * t) @ V}
        for n, m in self.sizes():
            self.check(spec, meaning, *self.shapes(n, m))

    def test_gains(self):
        """Normed rows times gains, rounded, of grouped keys, each of which several heads read."""
        spec = """def rms(x : [d], g : [d]) { return x / sqrt((+/ (x * x)) / 64.0 + 1e-6) * g }
kernel k[B, H, G, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], g : f32[D], e : f32[D], t : f32) -> O : T[B, H, N, D]
  require H % G == 0
{
  Kn = [b < B, g < G, j < M] T(rms(K[b, g, j], e))
  Kh = [b < B, h < H] Kn[b, h / (H/G)]
  Vh = [b < B, h < H] V[b, h / (H/G)]
  O = softmax(T(rms(Q, g)) +.* transpose(Kh) * t) +.* Vh
}
"""
        def meaning(Q, K, V, g, e, t, kind):
            q, k = rounded(rms(Q) * g, kind), rounded(rms(K) * e, kind)
            k, v = k.repeat(2, axis=1), V.repeat(2, axis=1)
            return {"O": softmax(q @ turned(k) * t) @ v}
        for n, m in self.sizes():
            shapes, outs = self.shapes(n, m, g=(D,), e=(D,))
            b, h = outs["O"][:2]
            shapes |= {"Q": (b, 2 * h, n, D)}
            self.check(spec, meaning, shapes, {"O": (b, 2 * h, n, D)})

    def test_rotary_positions(self):
        """Pairs of columns turned by an angle of the position, under a causal mask."""
        spec = """kernel k[B, H, N; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, N, D], V : T[B, H, N, D], C : f32[N, D], S : f32[N, D], t : f32) -> O : T[B, H, N, D]
{
  q = T([b, h, i, d < D] Q[b, h, i, d] * C[i, d] + select(d < 32, 0.0 - Q[b, h, i, (d + 32) % 64], Q[b, h, i, (d + 32) % 64]) * S[i, d])
  k = T([b, h, i, d < D] K[b, h, i, d] * C[i, d] + select(d < 32, 0.0 - K[b, h, i, (d + 32) % 64], K[b, h, i, (d + 32) % 64]) * S[i, d])
  O = softmax(mask([_, _, i, j] j <= i, q +.* transpose(k) * t)) +.* V
}
"""
        def meaning(Q, K, V, C, S, t, kind):
            def turn(x):
                other = np.concatenate([-x[..., 32:], x[..., :32]], axis=-1)
                return rounded(x * C + other * S, kind)
            n = Q.shape[2]
            s = np.where(np.tri(n, dtype=bool), turn(Q) @ turned(turn(K)) * t, -np.inf)
            return {"O": softmax(s) @ V}
        n = 150 if mt.TARGET == "device" else 300
        self.check(spec, meaning, *self.shapes(n, n, C=(n, D), S=(n, D)))

    def test_norm_of_results(self):
        spec = RMS + HEAD.format(more="") + """{
  O = rms(softmax(Q +.* transpose(K) * t) +.* V)
}
"""
        def meaning(Q, K, V, t, kind):
            return {"O": rms(softmax(Q @ turned(K) * t) @ V)}
        for n, m in self.sizes():
            self.check(spec, meaning, *self.shapes(n, m))

    def test_two_attentions(self):
        """Over two ranges, the norm of their difference, and gains: three folds, and one behind them."""
        spec = RMS + """kernel k[B, H, N, M, L; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], P : T[B, H, L, D], W : T[B, H, L, D], t : f32) -> O : T[B, H, N, D]
{
  O = rms((softmax(rms(Q) +.* transpose(K) * t) +.* V) - 0.5 * (softmax(Q +.* transpose(P) * t) +.* W))
}
"""
        def meaning(Q, K, V, P, W, t, kind):
            return {"O": rms(softmax(rms(Q) @ turned(K) * t) @ V - 0.5 * (softmax(Q @ turned(P) * t) @ W))}
        for n, m in self.sizes():
            shapes, outs = self.shapes(n, m)
            b, h = outs["O"][:2]
            # Without t it would not be the last one.
            shapes = {name: shapes[name] for name in "QKV"} | {"P": (b, h, 77, D), "W": (b, h, 77, D), "t": ()}
            self.check(spec, meaning, shapes, outs)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
