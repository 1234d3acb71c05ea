# RUN: %python %s
"""The study of folds with fewer keys or rows (benchmarks/lowrank): bounds that docs/Accuracy/LowRank.md proves
hold on random inputs, exact cases are exact, and the decision is dense where it has to be."""
import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.environ["MOA_SOURCE_ROOT"], "benchmarks", "lowrank"))

from adaptive import Adaptive  # noqa: E402
from families import FAMILIES, bf16, inputs, normal  # noqa: E402
from methods import (CertifiedTiles, FittedCentres, KeySummaries, RowSummaries, conjugate_gradients,  # noqa: E402
                     exact_rows, reference, relative_error)

N, D = 1024, 32
ROUNDING = 2.0 ** -8  # of weights in bf16, relative to the weighted mean of |V|


def clustered(rng, classes, radius):
    keys = normal(rng, classes, D)[rng.integers(0, classes, N)] + radius * normal(rng, N, D)
    return normal(rng, N, D), keys, normal(rng, N, D)


class Bounds(unittest.TestCase):

    def test_rows_stay_within_the_certified_bound(self):
        for seed, (classes, radius, order) in enumerate([(16, 0.02, 0), (16, 0.1, 0), (64, 0.2, 0),
                                                         (4, 0.05, 1), (4, 0.3, 1)]):
            Q, K, V = clustered(np.random.default_rng(seed), classes, radius)
            method = KeySummaries(4 * classes if not order else classes, order)
            error = np.linalg.norm(method(Q, K, V) - reference(Q, K, V), axis=1)
            bound = method.certified(Q)
            mean_norm = np.linalg.norm(V, axis=1).max()
            self.assertTrue(np.all(error <= bound + ROUNDING * mean_norm), (seed, error.max()))
            if radius <= 0.05:  # the bound says something: it is far below the trivial 2·max |V|
                self.assertLess(np.median(bound), mean_norm, seed)

    def test_a_wrong_sum_leaves_the_bound(self):
        Q, K, V = clustered(np.random.default_rng(9), 16, 0.005)
        method = KeySummaries(64)
        method.fit(Q, K, V)
        method.values[:, :-1] += 0.5
        error = np.linalg.norm(method.apply(Q) - reference(Q, K, V), axis=1)
        self.assertTrue(np.any(error > method.certified(Q) + ROUNDING * np.linalg.norm(V, axis=1).max()))

    def test_tiles_stay_within_their_budget(self):
        for name, budgets in (("local", (1e-1, 1e-2)), ("clusters", (1e-1,)), ("normal", (1e-2,))):
            Q, K, V = inputs(name, N, D)
            for budget in budgets:
                method = CertifiedTiles(32, budget, sort=name != "local")
                error = np.linalg.norm(method(Q, K, V) - reference(Q, K, V), axis=1).max()
                self.assertLessEqual(error, (budget + 1e-5) * np.linalg.norm(V, axis=1).max(), name)
                if name == "local":
                    self.assertLess(method.share_near, 0.7)

    def test_denominators_are_bounded_below_by_the_means(self):
        """Jensen: a class has at least the weight of its mean, whatever its radius is."""
        Q, K, V = clustered(np.random.default_rng(3), 8, 0.7)
        method = KeySummaries(8)
        method.fit(Q, K, V)
        lse = reference(Q, K, V, with_lse=True)[1]
        S = method.scores(Q).astype(np.float64)
        self.assertTrue(np.all(np.log(np.exp(S).sum(1)) <= lse + 1e-5))


class Exact(unittest.TestCase):

    def test_equal_keys_and_equal_rows_lose_nothing(self):
        for name, method in (("known-rank", KeySummaries(128)), ("repeated-rows", RowSummaries(128)),
                             ("uniform", KeySummaries(8))):
            Q, K, V = inputs(name, N, D)
            self.assertLess(relative_error(method(Q, K, V), exact_rows(Q, K, V)[0]), 3e-3, name)

    def test_a_matrix_of_the_rank_of_its_centres_is_fitted(self):
        """16 different rows give rank 16: 64 centres of arbitrary keys carry all of them."""
        rng = np.random.default_rng(5)
        Q, K, V = bf16(normal(rng, 16, D)[rng.integers(0, 16, N)]), bf16(normal(rng, N, D)), normal(rng, N, D)
        fitted, plain = FittedCentres(64, steps=60)(Q, K, V), KeySummaries(64)(Q, K, V)
        wanted = reference(Q, K, V)
        self.assertLess(relative_error(fitted, wanted), 1e-2)
        self.assertGreater(relative_error(plain, wanted), 0.1)

    def test_error_of_a_row_from_its_residual(self):
        """F7: with the residual ρ of (O, 1), found - O = (ρ - O·ρ₀)/(1 + ρ₀)."""
        Q, K, V = inputs("smooth-4", N, D)
        method = FittedCentres(64)
        method.fit(Q, K, V)
        O, lse = reference(Q, K, V, with_lse=True)
        sums = np.exp(method.scores(Q) - lse[:, None]) @ method.values.astype(np.float64)
        rho, rho0 = sums[:, :-1] - O, sums[:, -1:] - 1
        found = sums[:, :-1] / sums[:, -1:]
        np.testing.assert_allclose(found - O, (rho - O * rho0) / (1 + rho0), atol=1e-9)

    def test_conjugate_gradients_solve(self):
        A = np.random.default_rng(1).standard_normal((60, 20))
        R = np.random.default_rng(2).standard_normal((20, 3))
        G = A.T @ A + np.eye(20)
        np.testing.assert_allclose(G @ conjugate_gradients(G, R, 40), R, atol=1e-8)


class Decision(unittest.TestCase):

    def decide(self, name, size=4096):
        Q, K, V = inputs(name, size, D)
        head = Adaptive()
        with np.errstate(all="ignore"):
            head.fit(Q, K, V)
        sample = np.arange(0, size, 8)
        found = head.apply(Q)[sample] if head.plan[0] == "RowSummaries" else head.apply(Q[sample])
        return head, relative_error(found, reference(Q[sample], K, V))

    def test_dense_where_it_must_be(self):
        for name, known in FAMILIES.items():
            if known.must_stay_dense:
                head, error = self.decide(name, 2048)
                self.assertEqual(head.plan[0], "Dense", (name, head.found, head.estimate))
                self.assertLess(error, 5e-3, name)

    def test_whatever_few_rows_see_is_right(self):
        for name in ("hidden-far", "hidden-near"):
            Q, K, V = inputs(name, 2048, D)
            head = Adaptive()
            with np.errstate(all="ignore"):
                head.fit(Q, K, V)
            self.assertLessEqual(relative_error(head.apply(Q), reference(Q, K, V)), 1e-2, (name, head.plan))

    def test_fewer_keys_or_rows_where_they_do(self):
        for name, plan in (("clusters", "KeySummaries"), ("known-rank", "KeySummaries"),
                           ("repeated-rows", "RowSummaries"),
                           ("uniform", "PilotCentres"), ("huge-key", "PilotCentres")):
            head, error = self.decide(name)
            self.assertEqual(head.plan[0], plan, (name, head.found, head.estimate))
            self.assertLessEqual(error, 1e-2, name)

    def test_expansion_is_as_wrong_as_second_moments_say(self):
        for strength in (0.5, 1, 3):
            Q, K, V = inputs("diffuse", 2048, D)
            Q = bf16(strength * Q)
            head = Adaptive()
            head.look(Q, K, V)
            error = relative_error(KeySummaries(1, 1, 1)(Q, K, V), reference(Q, K, V))
            self.assertLess(head.found["expansion"], error * 1.5)
            self.assertGreater(head.found["expansion"] + 2 * ROUNDING, error / 1.5)

    def test_a_candidate_that_is_wrong_on_the_checked_rows_is_refused(self):
        Q, K, V = inputs("normal", 2048, D)
        head = Adaptive()
        head.candidate = lambda N, M: KeySummaries(64)
        head.fit(Q, K, V)
        self.assertGreater(head.estimate, 0.1)
        self.assertEqual(head.plan[0], "Dense")

    def test_rows_that_few_look_at_are_suspects(self):
        """Centres that ignore what 1 row in 1000 sees: second moments of the displacements find it."""
        Q, K, V = inputs("hidden-near", 2048, D)
        u = np.linalg.svd(K, full_matrices=False)[2][0]
        ordinary = np.abs(Q @ u) < 1
        self.assertEqual(np.count_nonzero(~ordinary), 2)
        method = KeySummaries(256)
        method.fit(Q[ordinary], K, V)
        error = ((method.apply(Q) - reference(Q, K, V)) ** 2).sum(1)
        self.assertGreater(error[~ordinary].min(), 100 * np.median(error))
        self.assertLessEqual(set(np.flatnonzero(~ordinary)), set(Adaptive().suspects(method, Q, K)))


if __name__ == "__main__":
    unittest.main()
