# RUN: %python %s
"""Sums of powers of differences from means and extremes of the same pass, against NumPy.

Under masks and weights, far from the origin, with outliers of every kind, about other
results than means, over nothing, and where no weight is left.
"""
import unittest

import numpy as np

import moa_testing as mt
from row_folds import N, RowFolds, rows, weights

LENGTHS = np.array([1, 2, 40, 67, 5, 66, 3])
MASKED = "z = mask([i, j] j < len[i], x)\n  one = mask([i, j] j < len[i], [i < N, j < M] 1.0)\n"
INPUTS = "x : T[N, M], len : i64[N]"


def of_rows(function):
    """Applies a function to the first len[i] elements of each row."""
    return lambda x, len: {"O": np.array([function(row[:count]) for row, count in zip(x, len)])}


class Moments(RowFolds):

    def check_masked(self, body, function, shift=0.0, bound=None, passes=1, lengths=LENGTHS):
        spec = rows(MASKED + "  " + body, INPUTS)
        for kind in ("f32", "f64"):
            kernel = mt.make_kernel(spec, T=kind)
            if mt.TARGET == "cpu":
                self.assert_passes(spec, kind, passes)
            for outlier in (None, 0, 30, 66):
                x = np.random.default_rng(3).standard_normal((N, 67)) + shift
                if outlier is not None:
                    x[:, outlier] += 1e4
                inputs = {"x": x, "len": lengths}
                wanted = of_rows(function)(**kernel.seen_by_kernel(inputs))
                found = kernel.results(inputs, {"O": (N,)})
                self.assert_close(found, wanted, (bound or {"f32": 2e-6, "f64": 1e-13})[kind],
                                  f"{kind} {outlier}")

    def test_variance_under_a_mask(self):
        body = "n = +/ one\n  d = z -@(1,0) ((+/ z) / n)\n  O = (+/ (d * d)) / n"
        for shift in (0.0, 1e3):
            self.check_masked(body, np.var, shift)
        # Sums of such elements are rounded to halves in f32, so that the mean is 0.01 off.
        self.check_masked(body, np.var, -1e5, {"f32": 2e-4, "f64": 1e-13})

    def test_variance_by_lengths(self):
        """The divisor is an input, of which nothing says that it counts the elements."""
        for shift in (0.0, 1e3):
            self.check_masked("O = (+/ pow(z -@(1,0) ((+/ z) / len), 2)) / len", np.var, shift)

    def test_guarded_divisor(self):
        self.check_masked("n = max(+/ one, 1.0)\n  d = z -@(1,0) ((+/ z) / n)\n  O = (+/ (d * d)) / n",
                          np.var)

    def test_distance_from_another_result(self):
        self.check_masked("O = sqrt((+/ pow(z -@(1,0) (0.5 * (max/ z) + (+/ z) / 10), 2)) / len)",
                          lambda x: np.sqrt(((x - x.max() / 2 - x.sum() / 10) ** 2).mean()))

    def test_fourth_moment(self):
        self.check_masked("d = z -@(1,0) ((+/ z) / (+/ one))\n  O = (+/ pow(d, 4)) / len",
                          lambda x: ((x - x.mean()) ** 4).mean(), bound={"f32": 8e-6, "f64": 1e-13})

    def test_distances_from_both_extremes(self):
        self.check_masked("O = +/ ((z -@(1,0) (min/ z)) * ((max/ z) -@(0,1) z))",
                          lambda x: ((x - x.min()) * (x.max() - x)).sum())

    def test_distance_from_the_least(self):
        self.check_masked("O = (+/ pow(z -@(1,0) (min/ z), 3)) / len",
                          lambda x: ((x - x.min()) ** 3).mean())

    def test_nothing_present(self):
        lengths = np.array([0, 67, 0, 3, 0, 1, 0])
        self.check_masked("d = z -@(1,0) ((+/ z) / (+/ one))\n  O = +/ (d * d)",
                          lambda x: ((x - x.mean()) ** 2).sum() if len(x) else 0.0, lengths=lengths)

    def test_covariance_under_weights(self):
        def expected(x, y, z):
            p = weights(x)
            center = lambda v: v - (p * v).sum(-1, keepdims=True)
            return {"O": (p * center(y) * center(z)).sum(-1)}

        spec = rows("p = softmax(x)\n  O = +/ (p * (y -@(1,0) (+/ (p * y))) * (z -@(1,0) (+/ (p * z))))",
                    "x : T[N, M], y : T[N, M], z : T[N, M]")
        for shift in (0.0, 300.0):
            self.run_case(spec, expected, lengths=(67, 300), shift=shift,
                          bound={"f32": 1e-5, "f64": 1e-12})

    def test_skewness_under_weights(self):
        def expected(x, y):
            p = weights(x)
            d = y - (p * y).sum(-1, keepdims=True)
            return {"O": (p * d ** 3).sum(-1) + 2 * (p * d * d).sum(-1)}

        spec = rows("p = softmax(x)\n  d = y -@(1,0) (+/ (p * y))\n"
                    "  O = (+/ (p * pow(d, 3))) + 2 * (+/ (p * d * d))", "x : T[N, M], y : T[N, M]")
        self.run_case(spec, expected, lengths=(67, 300), bound={"f32": 1e-5, "f64": 1e-12})

    def test_weights_that_vanish(self):
        """Where no weight is left there is no mean, as written: NaN; elsewhere zeros change nothing."""
        spec = rows("w = y * y\n  m = (+/ (w * x)) / (+/ w)\n  O = +/ (w * pow(x -@(1,0) m, 2))",
                    "x : T[N, M], y : T[N, M]")
        rng = np.random.default_rng(8)
        x, y = rng.standard_normal((2, N, 67)) + 3
        y[0], y[1, :60], y[2, 5:], y[3, ::2] = 0, 0, 0, 0
        for kind in ("f32", "f64"):
            kernel = mt.make_kernel(spec, T=kind)
            if mt.TARGET == "cpu":
                self.assert_passes(spec, kind, 1)
            seen = kernel.seen_by_kernel({"x": x, "y": y})
            found = kernel.results({"x": x, "y": y}, {"O": (N,)})["O"]
            self.assertTrue(np.isnan(found[0]))
            w, x64 = seen["y"][1:] ** 2, seen["x"][1:]
            mean = (w * x64).sum(-1, keepdims=True) / w.sum(-1, keepdims=True)
            self.assert_close({"O": found[1:]}, {"O": (w * (x64 - mean) ** 2).sum(-1)},
                              {"f32": 2e-6, "f64": 1e-13}[kind], kind)

    def test_weights_that_round_to_zero_first(self):
        """Exponentials are positive, but not as floats: there is no mean before one is not 0."""
        def expected(x, y, w):
            mean = (w * x).sum(-1, keepdims=True) / w.sum(-1, keepdims=True)
            return {"O": (w * (x - mean) ** 2).sum(-1)}

        for body, function in (("exp(y)", np.exp), ("exp(-(y * y))", lambda y: np.exp(-y * y))):
            spec = rows(f"w = {body}\n  m = (+/ (w * x)) / (+/ w)\n  O = +/ (w * pow(x -@(1,0) m, 2))",
                        "x : T[N, M], y : T[N, M]")
            for kind in ("f32", "f64"):
                kernel = mt.make_kernel(spec, T=kind)
                if mt.TARGET == "cpu":
                    self.assert_passes(spec, kind, 1)
                for m in (3, 67, 300):
                    x, y = np.random.default_rng(m).standard_normal((2, N, m))
                    y[:, :m // 2] = -800
                    seen = kernel.seen_by_kernel({"x": x, "y": y})
                    found = kernel.results({"x": x, "y": y}, {"O": (N,)})
                    self.assert_close(found, expected(**seen, w=function(seen["y"])),
                                      {"f32": 4e-6, "f64": 1e-13}[kind], f"{kind} {m}")

    def test_guard_that_binds(self):
        """A divisor larger than the sum of the weights makes no mean."""
        spec = rows("w = y * y\n  m = (+/ (w * x)) / max(+/ w, 1.0)\n  O = +/ (w * pow(x -@(1,0) m, 2))",
                    "x : T[N, M], y : T[N, M]")
        for kind in ("f32", "f64"):
            kernel = mt.make_kernel(spec, T=kind)
            for m, size in ((1, 1e-3), (67, 0.05), (67, 1.0)):
                x, y = np.random.default_rng(m).standard_normal((2, N, m))
                inputs = {"x": 3 * x + 10, "y": y * size}
                seen = kernel.seen_by_kernel(inputs)
                w = seen["y"] ** 2
                mean = (w * seen["x"]).sum(-1, keepdims=True) / np.maximum(w.sum(-1, keepdims=True), 1)
                self.assert_close(kernel.results(inputs, {"O": (N,)}),
                                  {"O": (w * (seen["x"] - mean) ** 2).sum(-1)},
                                  {"f32": 2e-6, "f64": 1e-13}[kind], f"{kind} {m}")

    def test_weights_of_any_sign_take_another_pass(self):
        spec = rows("m = (+/ (y * x)) / (+/ y)\n  O = +/ (y * pow(x -@(1,0) m, 2))",
                    "x : T[N, M], y : T[N, M]")

        def expected(x, y):
            m = (y * x).sum(-1, keepdims=True) / y.sum(-1, keepdims=True)
            return {"O": (y * (x - m) ** 2).sum(-1)}

        self.run_case(spec, expected, lengths=(67,), shift=2.0, passes=2,
                      bound={"f32": 1e-5, "f64": 1e-12})

    def test_entropy_of_rounded_weights(self):
        """Weights that round to 0 add nothing, where 0·log 0 is NaN as written."""
        spec = rows("p = softmax(x)\n  O = -(+/ (p * log(p)))")
        kernel = mt.make_kernel(spec, T="f32")
        x = np.random.default_rng(2).standard_normal((N, 300)) * 100
        log = x - x.max(-1, keepdims=True)
        log -= np.log(np.exp(log).sum(-1, keepdims=True))
        found = kernel.results({"x": x}, {"O": (N,)})
        self.assert_close(found, {"O": -(np.exp(log) * log).sum(-1)}, 1e-5, "f32")

    def test_divergence_of_distributions_far_apart(self):
        def expected(x, y):
            log = [v - v.max(-1, keepdims=True) for v in (x, y)]
            log = [v - np.log(np.exp(v).sum(-1, keepdims=True)) for v in log]
            return {"O": (np.exp(log[0]) * (log[0] - log[1])).sum(-1)}

        spec = rows("p = softmax(x)\n  q = softmax(10 * y)\n  O = +/ (p * (log(p) - log(q)))",
                    "x : T[N, M], y : T[N, M]")
        self.run_case(spec, lambda x, y: expected(x, 10 * y), lengths=(67, 300), shift=50.0,
                      bound={"f32": 1e-5, "f64": 1e-12})

    def test_logarithms_of_products_of_negative_numbers(self):
        """Of two negative factors the product has a logarithm, but they have none."""
        x = -1 - np.random.default_rng(1).random((N, 67))
        total = x.sum(-1, keepdims=True)
        for body, wanted in (("log(x *@(1,0) (+/ x))", x * total),
                             ("log((x * x) /@(1,0) (+/ (x * x)))", x * x / (x * x).sum(-1, keepdims=True)),
                             ("log(abs(x) *@(1,0) ((+/ x) * (+/ x)))", abs(x) * total * total)):
            kernel = mt.make_kernel(rows(f"O = +/ {body}"), T="f64")
            self.assert_close(kernel.results({"x": x}, {"O": (N,)}), {"O": np.log(wanted).sum(-1)},
                              1e-13, body)

    def test_long_rows(self):
        """Parts of a long range are merged, each with the moments of its own."""
        spec = rows(MASKED + "  d = z -@(1,0) ((+/ z) / (+/ one))\n  O = (+/ (d * d)) / len", INPUTS)
        lengths = np.array([9000, 1, 2049, 4096, 8999, 100, 2048])
        x = np.random.default_rng(6).standard_normal((N, 9000)) + 100
        for kind, bound in (("f32", 4e-6), ("f64", 1e-13)):
            kernel = mt.make_kernel(spec, T=kind)
            inputs = {"x": x, "len": lengths}
            wanted = of_rows(np.var)(**kernel.seen_by_kernel(inputs))
            self.assert_close(kernel.results(inputs, {"O": (N,)}), wanted, bound, kind)

    def test_beside_attention(self):
        """Entropy and variance of the scores in the pass of attention itself."""
        spec = ("kernel k[B, H, N, M; T : float = f32, D = 16](Q : T[B, H, N, D], K : T[B, H, M, D],\n"
                "  V : T[B, H, M, D], scale : f32) -> (O : T[B, H, N, D], E : f32[B, H, N], W : f32[B, H, N]) {\n"
                "  S = mask([_, _, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)\n"
                "  p = softmax(S)\n  O = p +.* V\n  E = -(+/ (p * (S -@(1,0) logsumexp(S))))\n"
                "  W = +/ (p * pow(S -@(1,0) (+/ (p * S)), 2))\n}\n")
        rng = np.random.default_rng(0)
        for kind, bounds in (("f32", (4e-6, 2e-5, 4e-5)), ("bf16", (4e-2, 1e-4, 1e-4))):
            kernel = mt.make_kernel(spec, T=kind, D=16)
            if mt.TARGET == "cpu":
                self.assert_passes(spec, kind, 1)
            inputs = {name: 2 * rng.standard_normal((1, 2, rows, 16))
                      for name, rows in (("Q", 70), ("K", 133), ("V", 133))}
            inputs["scale"] = 0.25
            seen = kernel.seen_by_kernel(inputs)
            scores = np.einsum("bhid,bhjd->bhij", seen["Q"], seen["K"]) * 0.25
            keep = np.arange(133) <= np.arange(70)[:, None] + 63
            p = weights(np.where(keep, scores, -np.inf))
            log = np.log(np.where(keep, p, 1))
            center = scores - (p * scores).sum(-1, keepdims=True)
            wanted = {"O": p @ seen["V"], "E": -(p * log).sum(-1), "W": (p * center ** 2).sum(-1)}
            found = kernel.results(inputs, {name: v.shape for name, v in wanted.items()})
            for bound, name in zip(bounds, wanted):
                self.assert_close({name: found[name]}, {name: wanted[name]}, bound, f"{kind} {name}")


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main(verbosity=2)
