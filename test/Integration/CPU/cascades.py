# RUN: %python %s
"""States and outputs that no example has, in one fold with contractions.

A maximum of absolute values that is −∞ until a row sees its first key; two products
in one output; counts and positions in integers; weights that are not bounded.
"""
import unittest

import numpy as np

import moa_testing as mt

HEAD = """kernel k[B, H, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], """
BOUNDS = {"bf16": 3e-3, "f16": 4e-4}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Cascades(mt.KernelTest):

    def run_case(self, spec, expected, shape, results, kinds=("bf16", "f16"), **more):
        """`expected` computes the outputs from what the kernel sees."""
        b, h, n, m = shape
        for kind in kinds:
            rng = np.random.default_rng(n + 1000 * m)
            kernel = mt.make_kernel(spec, T=kind)
            sizes = {"Q": n, "K": m, "V": m, "U": m}
            inputs = {k: rng.standard_normal((b, h, sizes[k], 64))
                      for k in sizes if k in kernel.by_name}
            inputs.update(more)
            shapes = {k: (b, h, n) + tail for k, tail in results.items()}
            found = kernel.results(inputs, shapes)
            wanted = expected(**kernel.seen_by_kernel(inputs))
            exact = {k: v for k, v in wanted.items() if v.dtype.kind == "i"}
            for name, value in exact.items():
                np.testing.assert_array_equal(found[name], value, f"{kind} {name}")
            rest = {k: v for k, v in wanted.items() if k not in exact}
            self.assert_close(found, rest, BOUNDS[kind], f"{kind} {shape}")

    def test_extremes_of_weights(self):
        """A weight of a score of −∞ is 0, and so are magnitudes of no size, which no extreme leaves out."""
        kernel = mt.make_kernel("""kernel k[N, M; T : float = f32](x : T[N, M], w : T[N, M], v : T[M, 8])
    -> (least : T[N], most : T[N], O : T[N, 8], share : T[N])
{
  e = exp(x -@(1,0) (max/ x))
  least = min/ e
  most = max/ (e * w)
  O = e max.* v
  share = max/ ((abs(w) /@(1,0) (max/ abs(w))) * x)
}
""")
        for m in (1, 2, 64, 130, 333):
            rng = np.random.default_rng(m)
            x, w, v = rng.standard_normal((8, m)), rng.standard_normal((8, m)), -1 - np.abs(rng.standard_normal((m, 8)))
            x[0, :max(m // 2, 1)] = x[1, m // 2:] = x[2, ::2] = x[3] = x[4, :-1] = x[5, 1:] = -np.inf
            w[:6] = -1 - np.abs(w[:6])
            w[6, :m // 2] = 0
            x[6:] = -np.abs(x[6:])
            v[:, 3] *= -1
            arrays = {"x": x, "w": w, "v": v}
            found = kernel.results(arrays, {"least": (8,), "most": (8,), "O": (8, 8), "share": (8,)})
            x, w, v = (a.astype(np.float32).astype(np.float64) for a in arrays.values())
            with np.errstate(invalid="ignore"):
                e, share = np.exp(x - x.max(-1, keepdims=True)), np.abs(w) / np.abs(w).max(-1, keepdims=True)
                expected = {"least": e.min(-1), "most": (e * w).max(-1), "O": (e[..., None] * v).max(1), "share": (share * x).max(-1)}
            for name, wanted in expected.items():
                np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-7, err_msg=f"{name}, {m}")

    def test_extremes_of_bounded_weights(self):
        """The same where scores have a bound of the row."""
        spec = """kernel k[N, M; T : float = f32](x : T[N, M], w : T[N, M], c : T[N]) -> (least : T[N], most : T[N], largest : T[N])
{
  e = exp(x -@(1,0) (max/ (max(x, [i, _] c[i]))))
  least = min/ e
  most = max/ (e * w)
  largest = max/ e
}
"""
        kernel = mt.make_kernel(spec)
        x = np.random.default_rng(1).standard_normal((5, 130))
        x[0, :64] = x[1, 64:] = x[2, ::2] = -np.inf
        w = -1 - np.abs(x[::-1])
        w[3] = np.arange(130) - 64
        w = np.where(np.isinf(w), -1, w)
        c = np.array([-np.inf, 0.5, -np.inf, 9, -9])
        found = kernel.results({"x": x, "w": w, "c": c}, {name: (5,) for name in ("least", "most", "largest")})
        x, w = x.astype(np.float32).astype(np.float64), w.astype(np.float32).astype(np.float64)
        e = np.exp(x - np.maximum(x.max(-1), c)[:, None])
        for name, wanted in {"least": e.min(-1), "most": (e * w).max(-1), "largest": e.max(-1)}.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-7, err_msg=name)

    def test_reference_that_has_seen_nothing(self):
        """Rows whose first tile holds no key for them."""
        spec = HEAD + """scale : f32) -> O : T[B, H, N, D] {
          S = mask([_, _, i, j] abs(i - j) <= 40, (Q +.* transpose(K)) * scale)
          r = S /@(1,0) (max/ abs(S))
          O = (r /@(1,0) sqrt(+/ (r * r))) +.* V
        }
        """

        def expected(Q, K, V, scale):
            s = Q @ K.swapaxes(-1, -2) * scale
            near = abs(np.arange(s.shape[-2])[:, None] - np.arange(s.shape[-1])) <= 40
            s = np.where(near, s, 0)
            norm = np.sqrt((s * s).sum(-1, keepdims=True))
            return {"O": np.where(norm > 0, s / np.where(norm > 0, norm, 1), 0) @ V}

        for n, m in ((130, 150), (200, 333)):
            self.run_case(spec, expected, (1, 2, n, m), {"O": (64,)}, scale=0.3)

    def test_reference_inside_a_bound(self):
        """m = max(max S, 0) is 0 for a maximum of −∞ too, where no state has started."""
        spec = HEAD + """scale : f32) -> O : T[B, H, N, D] {
          S = (Q +.* transpose(K)) * scale
          m = max(max/ S, 0)
          e = exp(S -@(1,0) m)
          O = (e /@(1,0) ((+/ e) + exp(-m))) +.* V
        }
        """

        def expected(Q, K, V, scale):
            e = np.exp(Q @ K.swapaxes(-1, -2) * scale)
            return {"O": (e / (e.sum(-1, keepdims=True) + 1)) @ V}

        for m in (5, 90, 400):
            for scale in (0.2, -0.02):
                self.run_case(spec, expected, (1, 2, 70, m), {"O": (64,)}, scale=scale)

    def test_two_products_in_one_output(self):
        spec = HEAD + """U : T[B, H, M, D], scale : f32) -> O : T[B, H, N, D] {
          P = softmax((Q +.* transpose(K)) * scale)
          O = (P +.* V) * sigmoid(P +.* U)
        }
        """

        def expected(Q, K, V, U, scale):
            p = softmax(Q @ K.swapaxes(-1, -2) * scale)
            return {"O": (p @ V) / (1 + np.exp(-(p @ U)))}

        self.run_case(spec, expected, (2, 1, 70, 90), {"O": (64,)}, scale=0.1)

    def test_difference_of_two_softmaxes(self):
        spec = """kernel k[B, H, N, M; T : float = bf16, D = 64](
            Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], U : T[B, H, M, D],
            scale : f32, weight : f32) -> O : T[B, H, N, D] {
          A = softmax((Q +.* transpose(K)) * scale)
          C = softmax((Q +.* transpose(U)) * scale)
          O = (A +.* V) - weight * (C +.* V)
        }
        """

        def expected(Q, K, V, U, scale, weight):
            a = softmax(Q @ K.swapaxes(-1, -2) * scale)
            c = softmax(Q @ U.swapaxes(-1, -2) * scale)
            return {"O": a @ V - weight * (c @ V)}

        self.run_case(spec, expected, (1, 2, 70, 90), {"O": (64,)}, scale=0.1, weight=-0.7)

    def test_integer_states(self):
        spec = HEAD + """scale : f32)
            -> (O : T[B, H, N, D], count : i64[B, H, N], last : i32[B, H, N]) {
          S = mask([_, _, i, j] j < i - 5, (Q +.* transpose(K)) * scale)
          O = softmax(S) +.* V
          count = +/ (select(S > 0.0, 1, 0))
          last = max/ select(S > 0.0, [b < B, h < H, i < N, j < M] j, -1)
        }
        """

        def expected(Q, K, V, scale):
            s = Q @ K.swapaxes(-1, -2) * scale
            i, j = np.arange(s.shape[-2])[:, None], np.arange(s.shape[-1])
            seen = j < i - 5
            e = np.where(seen, np.exp(s - s.max()), 0)
            total = e.sum(-1, keepdims=True)
            hits = seen & (s > 0)
            # Over nothing the maximum is the least integer of 64 bits; its low ones are 0.
            last = np.where(seen.any(-1), np.where(hits, j, -1).max(-1), 0)
            return {"O": (e / np.where(total > 0, total, 1)) @ V,
                    "count": hits.sum(-1).astype(np.int64),
                    "last": last}

        self.run_case(spec, expected, (1, 1, 70, 90), {"O": (64,), "count": (), "last": ()},
                      kinds=("bf16",), scale=0.1)

    def test_weights_near_the_end_of_f16(self):
        """A weight may come near 65504, but nothing on the way may exceed it."""
        spec = HEAD + """scale : f32, g : f32[M]) -> O : T[B, H, N, D] {
          P = softmax((Q +.* transpose(K)) * scale) * [_, _, i, j] g[j]
          O = P +.* V
        }
        """

        def expected(Q, K, V, scale, g):
            return {"O": (softmax(Q @ K.swapaxes(-1, -2) * scale) * g) @ V}

        m = 400
        rng = np.random.default_rng(5)
        self.run_case(spec, expected, (1, 1, 65, m), {"O": (64,)}, kinds=("f16",),
                      scale=0.25, g=rng.uniform(15000, 20000, m))


if __name__ == "__main__":
    mt.main()
