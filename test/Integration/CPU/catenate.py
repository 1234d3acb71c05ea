# RUN: %python %s
"""Catenation: past keys and values, then present ones, read where they are.

The past is longer or shorter than a tile, empty, or partly absent; NaN stands where no
query looks; catenated arrays are masked, transposed, reduced and catenated again.
"""
import unittest

import numpy as np

import moa_testing as mt

HEAD = """kernel k[B, H, N, P, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], Kp : T[B, H, P, D], Vp : T[B, H, P, D],
    K : T[B, H, M, D], V : T[B, H, M, D], """
SIZES = ((1, 0, 5), (1, 130, 1), (5, 7, 6), (70, 128, 70), (33, 200, 33), (40, 3, 0))


def attention(s, v):
    with np.errstate(invalid="ignore"):
        m = np.where(np.isfinite(m := s.max(-1, keepdims=True, initial=-np.inf)), m, 0)
        e = np.exp(s - m)
        total = e.sum(-1, keepdims=True)
        return e / np.where(total > 0, total, 1) @ v, (m + np.log(total))[..., 0]


class Catenate(mt.KernelTest):

    def run_case(self, spec, expected, kinds=("f32", "bf16"), sizes=SIZES, prepare=None):
        bounds = {**mt.BOUNDS, "bf16": 3e-3}
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            for n, p, m in sizes:
                rng = np.random.default_rng(n + p)
                b, h = 2, 2
                inputs = {"Q": rng.standard_normal((b, h, n, 64))}
                for name, length in (("Kp", p), ("Vp", p), ("K", m), ("V", m)):
                    inputs[name] = rng.standard_normal((b, h, length, 64))
                inputs["scale"] = 0.125
                if "length" in kernel.by_name:
                    inputs["length"] = rng.integers(0, p + 1, b).astype(np.int32)
                if prepare:
                    prepare(inputs)
                wanted = expected(**kernel.seen_by_kernel(inputs))
                found = kernel.results(inputs, {k: v.shape for k, v in wanted.items()})
                self.assert_close(found, wanted, bounds[kind], f"{kind} N={n} P={p} M={m}")

    def test_past_and_present(self):
        spec = HEAD + """scale : f32) -> (O : T[B, H, N, D], lse : f32[B, H, N]) {
          S = (Q +.* transpose(cat(Kp, K, 2))) * scale
          S = mask([_, _, i, j] j <= i + (P + M - N), S)
          O = softmax(S) +.* cat(Vp, V, 2)
          lse = logsumexp(S)
        }
        """

        def expected(Q, Kp, Vp, K, V, scale):
            s = Q @ np.concatenate([Kp, K], 2).swapaxes(-1, -2) * scale
            n, m = s.shape[-2:]
            s = np.where(np.arange(m) <= np.arange(n)[:, None] + m - n, s, -np.inf)
            o, lse = attention(s, np.concatenate([Vp, V], 2))
            return {"O": o, "lse": lse}

        self.run_case(spec, expected)

    def test_padded_past(self):
        """A length per batch entry; what stands behind it is NaN."""
        spec = HEAD + """length : i32[B], scale : f32) -> O : T[B, H, N, D] {
          past = mask([b, _, _, j] j < length[b], Q +.* transpose(Kp))
          now = Q +.* transpose(K)
          O = softmax(cat(past, now, 3) * scale) +.* cat(Vp, V, 2)
        }
        """

        def expected(Q, Kp, Vp, K, V, length, scale):
            past = np.arange(Kp.shape[2])[None, :] < np.asarray(length)[:, None]
            seen = np.concatenate([past, np.ones((len(past), K.shape[2]), bool)], 1)[:, None, None]
            keys = np.nan_to_num(np.concatenate([Kp, K], 2))
            s = np.where(seen, Q @ keys.swapaxes(-1, -2) * scale, -np.inf)
            return {"O": attention(s, np.nan_to_num(np.concatenate([Vp, V], 2)))[0]}

        def poison(inputs):
            for b, length in enumerate(inputs["length"]):
                inputs["Kp"][b, :, length:] = np.nan
                inputs["Vp"][b, :, length:] = np.nan

        self.run_case(spec, expected, prepare=poison)

    def test_nested_and_reduced(self):
        """Row sums of three parts, one of them masked, catenated on both axes."""
        spec = """kernel k[N, M](x : f32[N, M], y : f32[N, M], p : bool[N, M])
            -> (r : f32[2*N], s : f32[3*M], z : f32[N, 3*M]) {
          all = cat(cat(x, mask(p, y), 1), 2 * x, 1)
          r = cat(+/ x, max/ mask(p, y))
          s = reduce(+, all, 0)
          z = all
        }
        """
        kernel = mt.make_kernel(spec)
        for n, m in ((1, 1), (5, 9), (0, 3), (40, 3)):
            rng = np.random.default_rng(n)
            x, y = rng.standard_normal((2, n, m)).astype(np.float32)
            p = rng.random((n, m)) < 0.6
            if n:
                p[0] = False
            whole = np.concatenate([x, np.where(p, y, 0), 2 * x], 1)
            wanted = {"r": np.concatenate([x.sum(1), np.where(p, y, -np.inf).max(1)]),
                      "s": whole.sum(0), "z": whole}
            found = kernel.results({"x": x, "y": y, "p": p}, {k: v.shape for k, v in wanted.items()})
            finite = np.isfinite(wanted["r"])
            np.testing.assert_array_equal(found["r"][~finite], wanted["r"][~finite])
            for name, keep in (("r", finite), ("s", ...), ("z", ...)):
                np.testing.assert_allclose(found[name][keep], wanted[name][keep], rtol=2e-6, atol=2e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
