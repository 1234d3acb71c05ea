# RUN: %python %s
"""Folds beyond sums weighted by exponentials, each in one pass, against NumPy.

States that start again when their maximum grows (positions and weights of the largest
element), moments by separation (variance, skewness, covariance, entropy), norms, and
monoids of the specification; far from the origin, with masks, over nothing.
"""
import re
import unittest

import numpy as np

import moa_testing as mt

from row_folds import N, RowFolds, emit, rows, weights


class Folds(RowFolds):

    def test_position_of_the_largest(self):
        spec = rows("m = max/ x\n  at = min/ mask([i, j] x[i, j] == m[i], [i < N, j < M] j)",
                    results="m : T[N], at : i32[N]")
        self.run_case(spec, lambda x: {"m": x.max(-1), "at": x.argmax(-1).astype(np.int64)})

    def test_weights_of_the_largest(self):
        """Equal largest elements share the weight."""
        spec = rows("v = floor(2 * x)\n  e = select(v >= [i, _] (max/ v)[i], 1.0, 0.0)\n"
                    "  O = (e /@(1,0) (+/ e)) +.* w",
                    "x : T[N, M], w : T[M, 8]", "O : T[N, 8]")

        def expected(x, w):
            v = np.floor(2 * x)
            e = (v == v.max(-1, keepdims=True)).astype(np.float64)
            return {"O": e / e.sum(-1, keepdims=True) @ w}

        self.run_case(spec, expected)

    def test_smallest_in_magnitude(self):
        spec = rows("a = abs(x)\n  m = min/ a\n  O = +/ select(a <= [i, _] m[i], x, 0)")
        self.run_case(spec, lambda x: {"O": np.where(
            abs(x) == abs(x).min(-1, keepdims=True), x, 0).sum(-1)})

    def test_variance(self):
        spec = rows("d = x -@(1,0) mean(x)\n  O = mean(d * d)")
        self.run_case(spec, lambda x: {"O": x.var(-1)}, lengths=(2, 67, 300))

    def test_variance_far_from_the_origin(self):
        """Nothing of the size of the mean cancels."""
        spec = rows("d = x -@(1,0) mean(x)\n  O = mean(d * d)")
        self.run_case(spec, lambda x: {"O": x.var(-1)}, lengths=(67, 300), shift=1e4)

    def test_third_moment(self):
        spec = rows("d = x -@(1,0) mean(x)\n  O = mean(d * d * d) + mean(pow(d, 4))")

        def expected(x):
            d = x - x.mean(-1, keepdims=True)
            return {"O": (d ** 3).mean(-1) + (d ** 4).mean(-1)}

        self.run_case(spec, expected, lengths=(67, 300), bound={"f32": 2e-5, "f64": 1e-13})

    def test_covariance(self):
        spec = rows("O = mean((x -@(1,0) mean(x)) * (y -@(1,0) mean(y))) + 3",
                    "x : T[N, M], y : T[N, M]")

        def expected(x, y):
            return {"O": ((x - x.mean(-1, keepdims=True)) *
                          (y - y.mean(-1, keepdims=True))).mean(-1) + 3}

        self.run_case(spec, expected)

    def test_entropy(self):
        spec = rows("p = softmax(x)\n  O = -(+/ (p * log(p)))")

        def expected(x):
            e = np.exp(x - x.max(-1, keepdims=True))
            p = e / e.sum(-1, keepdims=True)
            return {"O": -(p * np.log(p)).sum(-1)}

        self.run_case(spec, expected, lengths=(67, 300))

    def test_elements_of_little_weight(self):
        """They may be far from a weighted mean: nothing may be measured from them."""
        def expected(x, y):
            p = weights(x)
            d = y - (p * y).sum(-1, keepdims=True)
            return {"O": (p * d * d).sum(-1), "w": -(p * np.log(np.maximum(p, 1e-300))).sum(-1)}

        spec = rows("p = softmax(x)\n  d = y -@(1,0) (+/ (p * y))\n  O = +/ (p * d * d)\n"
                    "  w = -(+/ (p * max(log(p), -1000.0)))", "x : T[N, M], y : T[N, M]", "O : T[N], w : T[N]")
        for kind, bound in (("f32", 4e-6), ("f64", 1e-13)):
            kernel = mt.make_kernel(spec, T=kind)
            for place in (0, 7, 66):
                rng = np.random.default_rng(place)
                x, y = rng.standard_normal((2, 5, 67))
                x[:, place], y[:, place] = [-1e9, -40, -30, -20, -15], [3e4, 1e4, 3e3, 1e3, 100]
                seen = kernel.seen_by_kernel({"x": x, "y": y})
                found = kernel.results({"x": x, "y": y}, {"O": (5,), "w": (5,)})
                self.assert_close(found, expected(seen["x"], seen["y"]), bound, f"{kind} {place}")

    def backward(self, spec, mask=None, extra=()):
        """Attention, and how the scores of a row move its product with dO."""
        def expected(Q, K, V, dO):
            s = Q @ K.T / 4
            keep = np.ones(s.shape, bool) if mask is None else mask(*np.indices(s.shape))
            with np.errstate(invalid="ignore"):
                top = np.where(keep, s, -np.inf).max(-1, keepdims=True)
                e = np.where(keep, np.exp(s - np.where(np.isfinite(top), top, 0)), 0)
                y = np.nan_to_num(e / e.sum(-1, keepdims=True))
            ga = dO @ V.T
            corr = (y * ga).sum(-1)
            found = {"O": y @ V, "corr": corr,
                     "dQ": (y * (ga - corr[:, None])) @ K / 4}
            return {name: found[name] for name in ("O", "corr", *extra)}

        return expected

    HEAD = "Q : T[N, 16], K : T[M, 16], V : T[M, 16], dO : T[N, 16]"

    def check_backward(self, scores, extra, passes, mask=None):
        """f64 to 1e-12."""
        outputs = "O : T[N, 16], corr : T[N]" + (", dQ : T[N, 16]" if extra else "")
        spec = rows(f"Y = softmax({scores})\n  O = Y +.* V\n  ga = dO +.* transpose(V)\n"
                    "  corr = +/ (Y * ga)\n" +
                    ("  dQ = (Y * (ga -@(1,0) corr) * 0.25) +.* K" if extra else ""),
                    self.HEAD, outputs)
        self.run_case(spec, self.backward(spec, mask, extra), passes=passes,
                      lengths=(67, 300) if extra else (1, 2, 67, 300),  # of one key dQ is 0
                      bound={"f32": 4e-6, "f64": 1e-12})
        return spec

    SCORES = "(Q +.* transpose(K)) * 0.25"

    def test_correction_of_the_backward_pass_is_read_off_the_product(self):
        """corr = Σ Y·(dO·V) = dO·O, behind the fold that has O: no product with dO in it."""
        spec = self.check_backward(self.SCORES, (), passes=2)  # over M, and over 16
        if mt.TARGET == "cpu":
            text = re.split(r'(?m)^      %\S+ = onf\.fold ', emit(spec, "onf", "T=f64"))
            self.assertEqual(["load %dO" in part for part in text], [False, False, True])

    def test_correction_where_rows_may_see_nothing(self):
        self.check_backward(f"mask([i, j] j < 3 * i - 2, {self.SCORES})", (), passes=2,
                            mask=lambda i, j: j < 3 * i - 2)

    def test_gradient_of_queries(self):
        """Σ Y·(ga − corr)·K = Σ Y·ga·K − corr·Σ Y·K: attention and its gradient in one pass."""
        self.check_backward(self.SCORES, ("dQ",), passes=2)

    def test_gradient_of_queries_where_rows_may_see_nothing(self):
        self.check_backward(f"mask([i, j] j < 3 * i - 2, {self.SCORES})", ("dQ",), passes=2,
                            mask=lambda i, j: j < 3 * i - 2)

    def test_product_with_a_projection_is_one_pass(self):
        """Σ dO·(Y·V) = Σ Y·(dO·V) where nothing else needs Y·V."""
        spec = rows(f"corr = +/ (dO * (softmax({self.SCORES}) +.* V))", self.HEAD, "corr : T[N]")
        full = self.backward(spec)
        self.run_case(spec, lambda **x: {"corr": full(**x)["corr"]},
                      bound={"f32": 4e-6, "f64": 1e-12})

    def test_slope_that_reads_the_product_is_one_pass(self):
        """The inner sum reads O, which only the end of the range gives; the state has it."""
        spec = rows(f"Y = softmax({self.SCORES})\n  O = Y +.* V\n"
                    "  corr = +/ (Y * ((O - dO) +.* transpose(V)))",
                    self.HEAD, "O : T[N, 16], corr : T[N]")
        full = self.backward(spec)

        def expected(Q, K, V, dO):
            o = full(Q, K, V, dO)["O"]
            return {"O": o, "corr": ((o - dO) * o).sum(-1)}

        self.run_case(spec, expected, passes=2, bound={"f32": 4e-6, "f64": 1e-12})

    def test_scores_equal_to_the_largest(self):
        """What is computed again where it is read has the bits that the largest has."""
        spec = ("kernel hits[N, M; D = 24, T : float = f32](x : T[N, D], R : T[M, D]) -> hit : i32[N, M] {\n"
                "  s = x +.* transpose(R)\n  hit = [i, e] select(s[i, e] == max/ s[i], 1, 0)\n}\n")
        for kind, d in (("f32", 2), ("f32", 24), ("f32", 128), ("f32", 257), ("f32", 640),
                        ("f64", 24)):
            kernel = mt.make_kernel(spec, T=kind, D=d)
            for n, m in ((1, 5), (9, 1), (37, 67), (200, 5)):
                rng = np.random.default_rng(n)
                inputs = {"x": rng.standard_normal((n, d)), "R": rng.standard_normal((m, d))}
                scores = inputs["x"] @ inputs["R"].T
                found = kernel.results(inputs, {"hit": (n, m)})["hit"]
                np.testing.assert_array_equal(found, scores == scores.max(1, keepdims=True), f"{kind} {d} {n} {m}")

    def test_selected_exponentials(self):
        """A selection whose sides vanish at the singular point does so, too."""
        self.check_row("m = max/ x\n  O = +/ select(y > 0, exp(x -@(1,0) m), 0)",
                       lambda x, y: np.where(y > 0, np.exp(x - x.max(-1, keepdims=True)), 0).sum(-1),
                       lengths=(67, 300))

    def test_low_powers_of_weights(self):
        for n in (2, 3, 4):
            with self.subTest(n):
                self.check_row(f"O = +/ (pow(softmax(x), {n}.0) * y)",
                               lambda x, y: (weights(x) ** n * y).sum(-1), lengths=(67, 300))

    def test_higher_powers_of_weights(self):
        """A power above 4 is taken of the quotient, as that of its divisor may leave the range."""
        self.check_row("O = +/ (pow(softmax(x), 5.0) * y)", lambda x, y: (weights(x) ** 5 * y).sum(-1),
                       lengths=(67, 300), passes=2)

    def test_roots_of_weights(self):
        def expected(x, y):
            p, q = weights(x), weights(y)
            return {"a": np.sqrt(p * q).sum(-1), "b": np.sqrt(p).sum(-1), "c": (p ** 1.5).sum(-1)}

        spec = rows("p = softmax(x)\n  q = softmax(y)\n  a = +/ sqrt(p * q)\n  b = +/ pow(p, 0.5)\n"
                    "  c = +/ pow(p, 1.5)", "x : T[N, M], y : T[N, M]", "a : T[N], b : T[N], c : T[N]")
        for shift in (0.0, 500.0, -500.0):
            self.run_case(spec, expected, shift=shift, bound={"f32": 4e-6, "f64": 1e-12})

    def test_squares_of_weights_without_the_largest(self):
        """Where a divisor leaves the largest element out it may be tiny, and its square nothing."""
        spec = ("kernel sub[N, M; T : float = f32](x : T[N, M]) -> O : T[N] {\n"
                "  e = exp(x -@(1,0) (max/ x))\n"
                "  l = +/ mask([_, j] j > 0, e)\n"
                "  p = e /@(1,0) l\n"
                "  O = +/ mask([_, j] j > 0, p * p)\n}\n")
        kernel = mt.make_kernel(spec, T="f32")
        x = np.random.default_rng(5).standard_normal((4, 20))
        x[:, 0] += 60
        expected = (weights(x[:, 1:]) ** 2).sum(-1)
        found = kernel.results({"x": x}, {"O": (4,)})["O"]
        np.testing.assert_allclose(found, expected, rtol=2e-5)

    def test_distances_from_the_least(self):
        """A difference from an extreme is not measured from another element."""
        spec = ("kernel least[N, M; T : float = f32](x : T[N, M]) -> O : T[N] {\n"
                "  l = min/ x\n"
                "  O = +/ ((x -@(1,0) l) /@(1,0) ((max/ x) - l))\n}\n")
        kernel = mt.make_kernel(spec, T="f32")
        x = np.random.default_rng(6).standard_normal((3, 5000)).astype(np.float32)
        x[1, 0] = 1e7
        y = x.astype(np.float64) - x.min(-1, keepdims=True)
        found = kernel.results({"x": x}, {"O": (3,)})["O"]
        np.testing.assert_allclose(found, (y / y.max(-1, keepdims=True)).sum(-1), rtol=2e-6)

    def test_powers_of_shares(self):
        """What may be above 1 follows its sum by R3."""
        self.check_row("O = +/ (pow(abs(x) /@(1,0) (+/ abs(x)), 3.0) * y)",
                       lambda x, y: ((abs(x) / abs(x).sum(-1, keepdims=True)) ** 3 * y).sum(-1),
                       lengths=(67, 300))

    def test_selected_weights(self):
        for body in ("O = +/ select(y > 0, softmax(x) * 3, 0)",
                     "O = 3 * (+/ mask(y > 0, softmax(x)))"):
            with self.subTest(body):
                self.check_row(body, lambda x, y: 3 * np.where(y > 0, weights(x), 0).sum(-1),
                               lengths=(67, 300))

    def test_selections_of_nothing(self):
        """A selection that picks nothing is 0 in rows of −∞ and of +∞ as well, where one that
        picks something is NaN."""
        for body in ("O = +/ select(y > 0, softmax(x) * 3, 0)", "O = +/ mask(y > 0, softmax(x))",
                     "m = max/ x\n  O = +/ select(y > 0, exp(x -@(1,0) m), 0)"):
            spec = rows(body, "x : T[N, M], y : T[N, M]")
            with self.subTest(body):
                kernel = mt.make_kernel(spec, T="f64")
                x = np.random.default_rng(4).standard_normal((6, 40))
                x[0] = x[1] = -np.inf
                x[2, 5] = x[3, 5] = np.inf
                y = np.ones((6, 40))
                y[[0, 2, 4]] = -1
                found = kernel.results({"x": x, "y": y}, {"O": (6,)})["O"]
                np.testing.assert_array_equal(np.isnan(found), [False, True, False, True,
                                                                False, False])
                np.testing.assert_array_equal(found[[0, 2, 4]], 0)

    def test_references_that_overflow(self):
        """A maximum of +∞, at the first element, later and at the last: NaN as written."""
        spec = rows("O = +/ (softmax(x) * y)", "x : T[N, M], y : T[N, M]")
        kernel = mt.make_kernel(spec, T="f32")
        x = np.random.default_rng(5).standard_normal((4, 300))
        y = np.ones((4, 300))
        for row, place in enumerate((0, 150, 299)):
            x[row, place] = np.inf
        found = kernel.results({"x": x, "y": y}, {"O": (4,)})["O"]
        np.testing.assert_array_equal(np.isnan(found), [True, True, True, False])

    def test_weighted_variance(self):
        def expected(x, y):
            p = weights(x)
            d = y - (p * y).sum(-1, keepdims=True)
            return (p * d * d).sum(-1)

        self.check_row("p = softmax(x)\n  d = y -@(1,0) (+/ (p * y))\n  O = +/ (p * d * d)",
                       expected, lengths=(67, 300), bound={"f32": 1e-5, "f64": 1e-13})

    def test_divergence(self):
        def expected(x, y):
            p = weights(x)
            return (p * (np.log(p) - np.log(weights(y)))).sum(-1)

        self.check_row("p = softmax(x)\n  q = softmax(y)\n  O = +/ (p * (log(p) - log(q)))",
                       expected, lengths=(67, 300), bound={"f32": 1e-5, "f64": 1e-13})

    def test_entropy_of_masked_rows(self):
        def expected(x):
            keep = np.arange(x.shape[1]) <= 3 * np.arange(N)[:, None] + 3
            z = np.where(keep, x, -np.inf)
            p = weights(z)
            return -(p * np.where(keep, np.log(np.where(keep, p, 1)), 0)).sum(-1)

        self.check_row("z = mask([i, j] j <= 3 * i + 3, x)\n  l = logsumexp(z)\n"
                       "  O = -(+/ (softmax(z) * (z -@(1,0) l)))", expected, "x : T[N, M]",
                       lengths=(67, 300), bound={"f32": 4e-6, "f64": 1e-13})

    def test_powers_of_distances_far_from_the_origin(self):
        """However the square is written, what is left has nothing of the mean's size."""
        def expected(x):
            d = x - x.mean(-1, keepdims=True)
            p = weights(x)
            e = x - (p * x).sum(-1, keepdims=True)
            return {"a": (d ** 2).mean(-1), "b": (d ** 4).mean(-1), "c": (d * d - 0.25).mean(-1),
                    "e": (p * e * e).sum(-1)}

        spec = rows("d = x -@(1,0) mean(x)\n  p = softmax(x)\n  a = mean(pow(d, 2))\n  b = mean(pow(d, 4))\n"
                    "  c = mean(d * d - 0.25)\n  e = +/ (p * pow(x -@(1,0) (+/ (p * x)), 2))",
                    results="a : T[N], b : T[N], c : T[N], e : T[N]")
        for shift in (0.0, 50.0, 1000.0):
            self.run_case(spec, expected, lengths=(67, 300), shift=shift,
                          bound={"f32": 4e-6, "f64": 1e-12}, block=32)

    def test_power_of_run_time(self):
        """Provably positive, it separates: (|x|/m)^p = |x|^p·(1/m)^p."""
        spec = rows("m = max/ abs(x)\n  q = max(p, 1)\n"
                    "  O = m * pow(+/ pow(abs(x) /@(1,0) m, q), 1 / q)", "x : T[N, M], p : T")
        for kind in ("f32", "f64"):
            kernel = mt.make_kernel(spec, T=kind)
            if mt.TARGET == "cpu":
                self.assert_passes(spec, kind, 1)
            for p in (1.0, 2.5, 7.0):
                x = np.random.default_rng(1).standard_normal((N, 300)) * 1e15
                seen = kernel.seen_by_kernel({"x": x, "p": p})
                found = kernel.results({"x": x, "p": p}, {"O": (N,)})
                wanted = (abs(seen["x"] / 1e15) ** p).sum(-1) ** (1 / p) * 1e15
                self.assert_close(found, {"O": wanted}, {"f32": 4e-6, "f64": 1e-13}[kind], f"{p}")

    def test_covariance_with_a_carried_axis(self):
        """No products inside that a second pass would repeat: the states are not doubled."""
        spec = rows("O = (x -@(1,0) mean(x)) +.* w", "x : T[N, M], w : T[M, 8]", "O : T[N, 8]")
        self.run_case(spec, lambda x, w: {"O": (x - x.mean(-1, keepdims=True)) @ w},
                      lengths=(67, 300), passes=2, bound={"f32": 1e-5, "f64": 1e-13})

    def test_extremes_of_weights(self):
        """What does not depend on the index leaves maxima and minima, if it is not negative."""
        def expected(x, y):
            p = weights(x)
            return {"a": p.max(-1), "b": p.min(-1), "c": (p * y).max(-1), "d": (p * y).min(-1)}

        spec = rows("p = softmax(x)\n  a = max/ p\n  b = min/ p\n  c = max/ (p * y)\n  d = min/ (p * y)",
                    "x : T[N, M], y : T[N, M]", "a : T[N], b : T[N], c : T[N], d : T[N]")
        for shift in (0.0, 500.0, -500.0):
            self.run_case(spec, expected, shift=shift, bound={"f32": 4e-6, "f64": 1e-12})

    def test_extremes_of_logarithms_of_weights(self):
        def expected(x):
            log = x - x.max(-1, keepdims=True)
            log = log - np.log(np.exp(log).sum(-1, keepdims=True))
            return {"a": log.min(-1), "b": log.max(-1) - 2 * log.min(-1)}

        spec = rows("l = x -@(1,0) logsumexp(x)\n  a = min/ l\n"
                    "  b = max/ [i < N, j < M] (max/ l)[i] - 2 * l[i, j]",
                    results="a : T[N], b : T[N]")
        self.run_case(spec, expected, bound={"f32": 4e-6, "f64": 1e-12})

    def test_extremes_of_standard_scores(self):
        def expected(x):
            z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.25)
            return {"O": z.max(-1), "o": z.min(-1)}

        spec = rows("c = x -@(1,0) mean(x)\n  z = c *@(1,0) rsqrt(mean(c * c) + 0.25)\n"
                    "  O = max/ z\n  o = min/ z", results="O : T[N], o : T[N]")
        self.run_case(spec, expected, bound={"f32": 4e-6, "f64": 1e-13})

    def test_extremes_of_masked_weights(self):
        """Over nothing a maximum is the identity, whatever would have left it."""
        def expected(x, w):
            keep = np.arange(x.shape[1])[None] < 3 * np.arange(N)[:, None] - 2
            s = np.where(keep, x, -np.inf)
            with np.errstate(invalid="ignore"):
                p = np.exp(s - s.max(-1, keepdims=True))
                p = p / p.sum(-1, keepdims=True)
            pw = np.where(keep[..., None], p[..., None] * w[None], -np.inf)
            return {"O": pw.max(1), "o": np.where(keep, p, np.inf).min(-1)}

        spec = rows("p = softmax(mask([i, j] j < 3 * i - 2, x))\n  O = p max.* w\n  o = min/ p",
                    "x : T[N, M], w : T[M, 8]", "O : T[N, 8], o : T[N]")
        self.run_case(spec, expected, bound={"f32": 4e-6, "f64": 1e-12})

    def test_powers_of_weights(self):
        """exp(x - max x) is at most 1: its square loses nothing without the divisor."""
        def expected(x, w):
            q = weights(x) ** 2
            return {"O": q @ w, "R": (q / q.sum(-1, keepdims=True)) @ w}

        spec = rows("p = softmax(x)\n  q = p * p\n  O = q +.* w\n  R = (q /@(1,0) (+/ q)) +.* w",
                    "x : T[N, M], w : T[M, 8]", "O : T[N, 8], R : T[N, 8]")
        for shift in (0.0, 500.0):
            self.run_case(spec, expected, shift=shift, bound={"f32": 4e-6, "f64": 1e-12})

    def test_absolute_deviation_takes_another_pass(self):
        spec = rows("O = +/ abs(x -@(1,0) mean(x))")
        self.run_case(spec, lambda x: {"O": abs(x - x.mean(-1, keepdims=True)).sum(-1)}, passes=2)

    def test_norms(self):
        spec = rows("m = max/ abs(x)\n  O = m * pow(+/ pow(abs(x) /@(1,0) m, 3), 1 / 3.0)")
        self.run_case(spec, lambda x: {"O": (abs(x) ** 3).sum(-1) ** (1 / 3)})

    def test_products_scaled_by_their_maxima(self):
        spec = rows("a = max/ abs(x)\n  b = max/ abs(y)\n"
                    "  s = +/ ((x /@(1,0) a) * (y /@(1,0) b))\n  O = a * b * s",
                    "x : T[N, M], y : T[N, M]")
        self.run_case(spec, lambda x, y: {"O": (x * y).sum(-1)},
                      bound={"f32": 1e-5, "f64": 1e-13})

    def test_monoids_of_the_specification(self):
        spec = rows("O = reduce(logadd, mask(x > 0, x), 1)\n  b = reduce(either, k, 1)\n"
                    "  h = reduce(hypotenuse, abs(x), 0)\n  g = inner(logadd, +, x, transpose(x))",
                    "x : T[N, M], k : i32[N, M]", "O : T[N], b : i32[N], h : T[M], g : T[N, N]",
                    """
monoid logadd(x, y) identity -inf {
  m = max(x, y)
  return select(m == -inf, m, m + log(exp(x - m) + exp(y - m)))
}
monoid either(x, y) identity 0 { return x | y }
monoid hypotenuse(x, y) identity 0 { return sqrt(x * x + y * y) }
""")

        def expected(x, k):
            with np.errstate(divide="ignore"):
                o = np.log(np.where(x > 0, np.exp(x), 0).sum(-1))
            pairs = x[:, None, :] + x[None, :, :]
            return {"O": o, "b": np.bitwise_or.reduce(k.astype(np.int64), axis=-1),
                    "h": np.sqrt((x * x).sum(0)), "g": np.log(np.exp(pairs).sum(-1))}

        self.run_case(spec, expected, lengths=(1, 67), passes=2,  # over two ranges
                      bound={"f32": 4e-6, "f64": 1e-13})


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main(verbosity=2)
