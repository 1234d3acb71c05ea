# RUN: %python %s
"""What select, and, or do not need is not read: arrays end at unmapped pages."""
import unittest

import numpy as np

import moa_testing as mt


class OnDemand(mt.KernelTest):

    def compare(self, spec, inputs, expected, **settings):
        kernel = mt.Kernel(spec, **settings)
        for at_end in (True, False):
            values, outputs = {}, {}
            for p in kernel.parameters:
                if p.is_scalar:
                    values[p.name] = inputs[p.name]
                elif p.is_output:
                    outputs[p.name] = mt.between_pages(np.zeros(expected[p.name].shape, mt.STORAGE[p.kind][0]), at_end)
                    values[p.name] = mt.describe(outputs[p.name], p.kind)
                else:
                    values[p.name] = mt.describe(mt.between_pages(mt.encode(inputs[p.name], p.kind), at_end), p.kind)
            self.assertEqual(kernel.launch(values), mt.OK)
            for name, value in expected.items():
                np.testing.assert_allclose(outputs[name], value, rtol=2e-5, atol=1e-4)

    def test_concatenation(self):
        spec = """kernel k[N, M](x : f32[N], y : f32[M]) -> z : f32[N + M] {
          z = [i < N + M] select(i < N, x[i], y[i - N])
        }
        """
        for n, m in ((300000, 5), (5, 300000), (1, 1), (0, 40), (33, 0), (100, 77)):
            x, y = np.arange(n), -np.arange(m)
            self.compare(spec, {"x": x, "y": y}, {"z": np.concatenate([x, y])})

    def test_table_of_rows(self):
        spec = """kernel k[J, P; D = 24](t : i32[J], K : f32[P, D]) -> o : f32[J, D] {
          o = [j, d] select(t[j] >= 0 and t[j] < P, K[t[j], d], 0.0)
        }
        """
        rng = np.random.default_rng(1)
        K = rng.standard_normal((37, 24))
        t = rng.integers(0, 37, 100)
        t[::3], t[1::7] = -1, 2 ** 30
        seen = (t >= 0) & (t < 37)
        expected = np.where(seen[:, None], K[np.where(seen, t, 0)], 0)
        self.compare(spec, {"t": t, "K": K}, {"o": expected})

    def test_operands_of_logic(self):
        spec = """kernel k[I, J, L](A : bool[I, J], S : f32[I, L], P : i32)
            -> (s : f32[I], n : i32[I])
          assume L <= P + J
        {
          keep = [i < I, j < L] j < P or A[i, j - P]
          s = +/ mask(keep, S)
          n = +/ [i < I, j < L] select(j >= P and A[i, j - P], 1, 0)
        }
        """
        rng = np.random.default_rng(2)
        for count, p, width in ((300, 3000, 20), (9, 20, 3000), (64, 16, 16)):
            A = rng.random((count, width)) < 0.5
            S = rng.standard_normal((count, p + width))
            keep = np.concatenate([np.ones((count, p), bool), A], 1)
            self.compare(spec, {"A": A, "S": S, "P": p},
                         {"s": (S * keep).sum(1), "n": A.sum(1)})

    def test_nested(self):
        """A condition that is itself read on demand; the inner one per element."""
        spec = """kernel k[N, M](x : f32[N], c : i32[M], y : f32[M]) -> z : f32[N]
          assume [m] c[m] >= 0
        {
          z = [i < N] select(i < M, select(c[i] < M, y[c[i]], x[i]), -x[i])
        }
        """
        rng = np.random.default_rng(3)
        for n, m in ((40000, 19), (1000, 1000), (70, 3)):
            x, y = rng.standard_normal(n), rng.standard_normal(m)
            c = rng.integers(0, 2 * m, m)
            c[c >= m] = 2 ** 29
            i = np.minimum(np.arange(n), m - 1)
            inner = np.where(c[i] < m, y[np.minimum(c[i], m - 1)], x)
            self.compare(spec, {"x": x, "c": c, "y": y},
                         {"z": np.where(np.arange(n) < m, inner, -x)})

    def test_reductions_under_a_condition(self):
        spec = """kernel k[N, M, J](x : f32[M, J], w : f32[J]) -> (z : f32[N], u : f32[N])
          require M <= N
        {
          z = [i < N] select(i < M, (+/ (x * x))[i], -1.0)
          u = [i < N] select(i >= N - M, +/ [j < J] (x[i - (N - M), j] * w[j]), 2.0)
        }
        """.replace("kernel k[N, M, J](", "kernel k[N, M, J](n : f32[N], ")
        rng = np.random.default_rng(4)
        n, m, j = 9000, 21, 50
        x, w = rng.standard_normal((m, j)), rng.standard_normal(j)
        z, u = np.full(n, -1.0), np.full(n, 2.0)
        z[:m], u[n - m:] = (x * x).sum(1), x @ w
        self.compare(spec, {"n": np.zeros(n), "x": x, "w": w}, {"z": z, "u": u})

    def test_joined_keys(self):
        """Attention over two arrays of keys, joined by select: as keys, as scores."""
        head = """kernel k[N, P, M; D = 16](Q : f32[N, D], K : f32[P, D], L : f32[M, D],
            V : f32[P, D], W : f32[M, D]) -> O : f32[N, D] {
          Va = [j < P + M, d < D] select(j < P, V[j, d], W[j - P, d])
        """
        keys = head + """
          Ka = [j < P + M, d < D] select(j < P, K[j, d], L[j - P, d])
          O  = softmax(Q +.* transpose(Ka)) +.* Va
        }
        """
        scores = head + """
          S = [i < N, j < P + M] select(j < P, (Q +.* transpose(K))[i, j],
                                               (Q +.* transpose(L))[i, j - P])
          O = softmax(S) +.* Va
        }
        """
        masked = keys.replace("softmax(Q +.* transpose(Ka))",
                              "softmax(mask([i, j] j <= i + P, Q +.* transpose(Ka)))")
        rng = np.random.default_rng(5)
        for n, p, m in ((50, 300, 7), (50, 7, 300), (130, 96, 96)):
            a = {k: rng.standard_normal((c, 16))
                 for k, c in zip("QKLVW", (n, p, m, p, m))}
            S = a["Q"] @ np.concatenate([a["K"], a["L"]]).T
            for spec, seen in ((keys, None), (scores, None), (masked, p)):
                T = S.copy()
                if seen is not None:
                    i, j = np.indices(T.shape)
                    T[j > i + p] = -np.inf
                e = np.exp(T - T.max(1, keepdims=True))
                O = e / e.sum(1, keepdims=True) @ np.concatenate([a["V"], a["W"]])
                with self.subTest(n=n, p=p, m=m, spec=spec):
                    self.compare(spec, a, {"O": O})

    def test_masked_table(self):
        """A guard that is known only per element protects what it masks."""
        spec = """kernel k[N, J, P; D = 16](Q : f32[N, D], t : i32[N, J], K : f32[P, D])
            -> (s : f32[N], m : f32[N])
          assume [i, j] t[i, j] < P
        {
          seen = [i, j] t[i, j] >= 0
          S = [i < N, j < J] +/ [d < D] (Q[i, d] * K[t[i, j], d])
          s = +/ mask(seen, S)
          m = max/ mask(seen, [i < N, j < J] K[t[i, j], 3])
        }
        """
        rng = np.random.default_rng(6)
        n, j, p = 70, 33, 5
        Q, K = rng.standard_normal((n, 16)), rng.standard_normal((p, 16))
        t = rng.integers(0, p, (n, j))
        t[rng.random((n, j)) < 0.4] = -2 ** 30
        S = np.einsum("id,ijd->ij", Q, K[np.maximum(t, 0)])
        self.compare(spec, {"Q": Q, "t": t, "K": K},
                     {"s": np.where(t >= 0, S, 0).sum(1),
                      "m": np.where(t >= 0, K[np.maximum(t, 0), 3], -np.inf).max(1)})


if __name__ == "__main__":
    unittest.main()
