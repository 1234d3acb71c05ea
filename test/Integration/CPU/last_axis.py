# RUN: %python %s
"""Results whose last axis has a run-time size, against NumPy: products of matrices and weights that are returned.

Columns are computed in blocks of 128 on CPUs and of 64 on GPUs: sizes are 0, 1, less than a block, whole blocks and more.
"""
import unittest

import numpy as np

import moa_testing as mt

PRODUCT = """kernel mm[N, M, K; T : float](A : T[N, K], B : T[K, M]) -> C : T[N, M]
{
  C = A +.* B
}
"""
# The columns' operand is transposed; heads come between rows and columns, and a result follows from two others.
HEADS = """kernel heads[N, H, M; D = 48, T : float](A : T[N, H, D], B : T[M, H, D], x : f32[M], scale : f32)
    -> C : f32[N, H, M]
{
  Q = [h < H, n < N] A[n, h]
  Y = [h < H, m < M] B[m, h]
  S = Q +.* transpose(Y)
  C = [n < N, h < H, m < M] tanh(S[h, n, m] * scale) + x[m]
}
"""
WEIGHTS = """kernel weights[H, N, M; D = 64, T : float](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> (O : T[H, N, D], P : f32[H, N, M])
{
  S = mask([_, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)
  P = softmax(S)
  O = P +.* V
}
"""
SCORES = """kernel scores[N, M; D = 80, T : float](Q : T[N, D], K : T[M, D], bias : f32[N, M]) -> S : f32[N, M]
{
  S = (Q +.* transpose(K)) + bias
}
"""
# Only rows below `end` have terms, and only those before `length` of them.
GUARDED = """kernel guarded[N, M, K; T : float](A : T[N, K], B : T[K, M], length : i32[N]) -> C : f32[N, M]
{
  A0 = mask([i, k] k < length[i], A)
  C = A0 +.* B
}
"""
SIZES = [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (1, 300, 20), (300, 1, 20), (7, 127, 16), (97, 128, 17),
         (130, 129, 300), (50, 300, 1100), (96, 513, 257)]
KINDS = ("f64", "f32", "bf16", "f16")
BOUNDS = {"f64": 1e-14, "f32": 2e-6, "bf16": 3e-3, "f16": 4e-4}
if mt.TARGET == "device":
    SIZES = [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (3, 70, 20), (70, 3, 17), (65, 66, 16), (20, 30, 1100)]
    KINDS = ("f32", "bf16")


def normal(rng, *shape):
    return rng.standard_normal(shape)


def exact_softmax(scores, seen):
    scores = np.where(seen, scores, -np.inf)
    top = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), np.finfo(np.float64).min)
    e = np.where(seen, np.exp(scores - top), 0)
    total = e.sum(-1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0)


class LastAxis(mt.KernelTest):

    def compare(self, kernel, inputs, meaning, kind, what, results=None):
        expected = meaning(**kernel.seen_by_kernel(inputs))
        found = kernel.results(inputs, {name: value.shape for name, value in expected.items()})
        for name, value in expected.items():
            bound = BOUNDS[kind] if name not in (results or ()) else max(results[name], 6e-8)
            self.assert_close(found, {name: value}, bound, f"{kind} {what} {name}")

    def test_products(self):
        for kind in KINDS:
            kernel = mt.make_kernel(PRODUCT, T=kind)
            for n, m, k in SIZES:
                rng = np.random.default_rng([n, m, k])
                with self.subTest(kind=kind, sizes=(n, m, k)):
                    self.compare(kernel, {"A": normal(rng, n, k), "B": normal(rng, k, m)},
                                 lambda A, B: {"C": A @ B}, kind, (n, m, k))

    def test_columns_are_known(self):
        """More columns than a row carries, and less than a block."""
        for m in (5, 1100):
            kernel = mt.make_kernel(PRODUCT, T="f32", M=m)
            rng = np.random.default_rng(m)
            self.compare(kernel, {"A": normal(rng, 70, 40), "B": normal(rng, 40, m)},
                         lambda A, B: {"C": A @ B}, "f32", m)

    def test_heads(self):
        for kind in KINDS:
            kernel = mt.make_kernel(HEADS, T=kind)
            for n, h, m in [(1, 1, 1), (33, 3, 130), (66, 2, 5)]:
                rng = np.random.default_rng([n, h, m])
                inputs = {"A": normal(rng, n, h, 48), "B": normal(rng, m, h, 48), "x": normal(rng, m), "scale": 0.1}
                with self.subTest(kind=kind, sizes=(n, h, m)):
                    self.compare(kernel, inputs, lambda A, B, x, scale: {
                        "C": np.tanh(np.einsum("nhd,mhd->nhm", A, B) * scale) + x}, kind, (n, h, m),
                                 {"C": 1e-5 if kind != "f64" else 1e-7})

    def test_weights(self):
        for kind in KINDS:
            kernel = mt.make_kernel(WEIGHTS, T=kind)
            for n, m in [(1, 1), (5, 300), (130, 129), (70, 70), (3, 0), (200, 128)]:
                if mt.TARGET == "device" and n * m > 5000:
                    continue
                rng = np.random.default_rng([n, m])
                inputs = {"Q": normal(rng, 2, n, 64), "K": normal(rng, 2, m, 64), "V": normal(rng, 2, m, 64),
                          "scale": 0.125}

                def meaning(Q, K, V, scale):
                    seen = np.arange(m) <= np.arange(n)[:, None] + m - n
                    weights = exact_softmax(Q @ K.swapaxes(-1, -2) * scale, seen)
                    return {"O": weights @ V, "P": weights}

                with self.subTest(kind=kind, sizes=(n, m)):
                    self.compare(kernel, inputs, meaning, kind, (n, m), {"P": 2e-6 if kind != "f64" else 1e-7})

    def test_scores_and_bias(self):
        for kind in KINDS:
            kernel = mt.make_kernel(SCORES, T=kind)
            for n, m in [(1, 1), (130, 129), (64, 64), (17, 260)]:
                rng = np.random.default_rng([n, m])
                inputs = {"Q": normal(rng, n, 80), "K": normal(rng, m, 80), "bias": normal(rng, n, m)}
                with self.subTest(kind=kind, sizes=(n, m)):
                    self.compare(kernel, inputs, lambda Q, K, bias: {"S": Q @ K.T + bias}, kind, (n, m), {"S": 2e-6})

    def test_guarded(self):
        for kind in KINDS:
            kernel = mt.make_kernel(GUARDED, T=kind)
            for n, m, k in [(1, 1, 1), (70, 130, 300), (9, 40, 16)]:
                rng = np.random.default_rng([n, m, k])
                inputs = {"A": normal(rng, n, k), "B": normal(rng, k, m), "length": rng.integers(0, k + 1, n)}
                with self.subTest(kind=kind, sizes=(n, m, k)):
                    self.compare(kernel, inputs, lambda A, B, length: {
                        "C": np.where(np.arange(A.shape[1]) < length[:, None], A, 0) @ B}, kind, (n, m, k),
                                 {"C": 2e-6})

    @unittest.skipIf(mt.TARGET == "device", "the interpreter takes packed arrays")
    def test_strides(self):
        """Columns that are not adjacent, and rows at odd distances."""
        def spread(values):
            room = np.zeros(tuple(2 * size + 1 for size in values.shape), values.dtype)
            view = room[tuple(slice(1, 1 + 2 * size, 2) for size in values.shape)]
            view[...] = values
            return view

        for kind in ("f32", "bf16"):
            kernel = mt.make_kernel(PRODUCT, T=kind)
            for arrange in (spread, lambda x: np.asfortranarray(x)):
                rng = np.random.default_rng(4)
                inputs = {"A": normal(rng, 33, 50), "B": normal(rng, 50, 141)}
                seen = kernel.seen_by_kernel(inputs)
                stored = kernel.run(inputs, {"C": (33, 141)}, arrange)
                found = {"C": mt.decode(stored["C"], kind)}
                self.assert_close(found, {"C": seen["A"] @ seen["B"]}, BOUNDS[kind], kind)


if __name__ == "__main__":
    mt.main()
