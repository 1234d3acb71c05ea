# RUN: %python %s
"""Elements that a condition protects, where code could read them without it.

The kernels are some of those of test/Random/Inputs/guards.moa, which moa-protected runs at more sizes; here their
meaning stands in NumPy. Arrays end at protected pages, or begin after them.
"""
import itertools
import os
import re
import unittest

import numpy as np

import moa_testing as mt

mt.compile_soonest()
PATH = os.path.join(mt.SOURCE_ROOT, "test/Random/Inputs/guards.moa")
with open(PATH, encoding="utf-8") as file:
    SPECS = {re.match(r"\w+", text).group(): "kernel " + text for text in re.split(r"^kernel ", file.read(), flags=re.M)[1:]}


def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2)
    e = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf))
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(e / e.sum(-1, keepdims=True)) @ v


def blocks(x, size, of):
    """`of` each block of `size` rows."""
    return np.array([of(x[p:p + size]) for p in range(0, len(x), size)]).reshape(-1, *x.shape[1:])


class Guards(mt.KernelTest):

    def run_sizes(self, name, extents, expected, sizes, **scalars):
        """The kernel with arrays of normal numbers of these extents, at all sizes."""
        kernel = mt.make_kernel(SPECS[name])
        if mt.TARGET == "device":
            sizes = sizes[::-5]  # an interpreter
        for values in sizes:
            symbols = sorted({e for axes in extents.values() for e in axes if e.isalpha() and e != "D"})
            at = dict(zip(symbols, values), D=16)
            rng = np.random.default_rng(7)
            inputs = {array: rng.standard_normal([at[e] if e in at else int(e) for e in axes]) for array, axes in extents.items()}
            inputs.update(scalars)
            wanted = expected(**kernel.seen_by_kernel(inputs))
            wanted = wanted if isinstance(wanted, dict) else {kernel.parameters[-1].name: wanted}
            for _ in range(2):  # at the end of a page, and after one
                found = kernel.results(inputs, {k: v.shape for k, v in wanted.items()})
                self.assert_close(found, wanted, 2e-5, f"{name} {at}")

    def test_chain_of_products(self):
        def expected(V):
            n = len(V)
            a, c = np.tril(np.outer(V, V), -1), np.tril(np.ones((n, n)))
            return c @ ((a @ a) @ (a @ V))
        self.run_sizes("chain_of_vector", {"V": ["N"]}, expected, [(n,) for n in (0, 1, 3, 4, 5, 63, 64, 65, 130)])

    def test_squares_of_carried_columns(self):
        def of_columns(A, W):
            return ((A @ W)[:, :8] ** 2).sum(1)
        extents, sizes = {"A": ["K", "M"], "W": ["M", "N"]}, list(itertools.product((1, 5), (0, 1, 33), (0, 1, 7, 8, 9)))
        for name in ("squares_of_columns", "selected_columns"):
            self.run_sizes(name, extents, of_columns, sizes)

        def beside(Q, K, V):
            o = attention(Q, K, V)
            return {"O": o, "s": (o[..., :8] ** 2).sum(-1)}
        # The extents in their order: B, M, N.
        self.run_sizes("squares_beside", {"Q": ["B", "N", "8"], "K": ["B", "M", "8"], "V": ["B", "M", "N"]}, beside,
                       [(1, 1, 1), (2, 3, 5), (1, 20, 9), (2, 0, 3)])

    def test_columns_of_a_product(self):
        def expected(A, B, z=0.0):
            n = min(B.shape[1], 8)
            o = np.full((len(A), 8), z)
            o[:, :n] = (A @ B)[:, :n]
            return o
        self.run_sizes("few_columns", {"A": ["K", "M"], "B": ["M", "N"]}, expected,
                       list(itertools.product((1, 9), (0, 1, 40), (0, 1, 7, 8, 9))))

    def test_captured_operands(self):
        def expected(a, b):
            n, m = len(b), len(a)
            best = b.max(initial=-np.inf)
            seen = [a[x] + best for x in range(min(n, m))] + [-np.inf]
            o = np.max(seen) + b
            return np.maximum(o, 0.0) if m < n else o
        self.run_sizes("captured", {"a": ["M"], "b": ["N"]}, expected, list(itertools.product((0, 1, 2, 40), (1, 2, 3, 17, 40))))

        def weight(a, Q, K, V):
            n, m = len(Q), min(len(a), len(Q))
            s = np.full((n, n), 0.5)
            s[:, :m] = a[:m] + (Q @ K.T)[:, :m]
            return attention(np.eye(n), s.T, V)
        self.run_sizes("captured_weight", {"a": ["M"], "Q": ["N", "D"], "K": ["N", "D"], "V": ["N", "D"]}, weight,
                       list(itertools.product((0, 1, 40), (1, 2, 39, 97))))

    def test_terms_of_carried_states(self):
        """What does not know the columns is computed once for them, but not where a choice leaves it out."""
        def chosen(a, K, x):
            n, m = len(K), min(len(a), len(K))
            v = K * x if x is not None else K.copy()
            v[:m] = a[:m, None]
            return v

        def largest(a, b, x, K):
            return np.array([(b * r).max() + chosen(a, K, r).max(0) for r in x]).reshape(-1, 16)

        def weighted(a, b, x, K):
            return np.array([np.exp(b * r - (b * r).max()) @ chosen(a, K, None) for r in x]).reshape(-1, 16)
        extents = {"a": ["M"], "b": ["L"], "x": ["N"], "K": ["L", "D"]}
        sizes = list(itertools.product((1, 2, 17), (0, 1, 2, 40), (1, 33)))
        self.run_sizes("carried_max", extents, largest, sizes)
        self.run_sizes("carried_sum", extents, weighted, sizes)

    def test_pooled_blocks(self):
        sizes = [(n,) for n in (0, 1, 15, 16, 17, 31, 32, 33, 100)]
        self.run_sizes("pooled", {"x": ["N", "4"]}, lambda x: blocks(x, 16, lambda b: b.sum(0)), sizes)
        self.run_sizes("pooled_most", {"x": ["N", "4"]}, lambda x: blocks(x, 16, lambda b: b.max(0)), sizes)
        self.run_sizes("pooled_rows", {"x": ["N"]},
                       lambda x: {"y": blocks(x, 4, np.sum), "m": blocks(x * x, 4, np.sum)}, [(n,) for n in (0, 1, 3, 4, 5, 64, 67)])

        def keys(Q, K, V):
            return attention(Q, blocks(K, 8, lambda b: b.sum(0)), blocks(V, 8, lambda b: b.sum(0)))
        self.run_sizes("pooled_keys", {"Q": ["N", "D"], "K": ["M", "D"], "V": ["M", "D"]}, keys,
                       list(itertools.product((0, 1, 7, 8, 9, 100), (1, 33))))

    def test_windows(self):
        def dilated(x):
            padded = np.pad(x, 4)
            return sum(padded[2 * e:2 * e + len(x)] for e in range(5))
        self.run_sizes("dilated", {"x": ["N"]}, dilated, [(n,) for n in (0, 1, 4, 5, 16, 70)])

        def stencil(x):
            padded = np.pad(x, 1)
            return sum(padded[a:a + x.shape[0], b:b + x.shape[1]] for a in range(3) for b in range(3))
        self.run_sizes("stencil", {"x": ["N", "M"]}, stencil, [(0, 1), (1, 0), (1, 1), (2, 17), (16, 16), (33, 3)])


if __name__ == "__main__":
    unittest.main()
