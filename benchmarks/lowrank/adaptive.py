"""The decision, per head and without asking the host: an expansion about the mean key, sums over
classes of keys, results of classes of rows, fitted centres, or the dense fold.

The pilot works with few centres on all keys and rows; from what it finds one candidate follows, or
none. The candidate is accepted if it is right on rows that are computed exactly and took no part
in making it. Everything the decision reads is made by folds over N·(a constant) elements.
"""
import numpy as np

from methods import (Cost, Dense, FittedCentres, KeySummaries, Method, RowSummaries, dense_cost,
                     draw_seeds, exact_rows, nearest, scale_of, second_moment, seeds_cost,
                     spread_rows, sums_cost)

PILOT_KEYS, PILOT_ROWS, PILOT_STEPS = 128, 64, 16
EVEN_ROWS, HELD_OUT = 96, 64
CHECK_EVEN, CHECK_SUSPECT = 256, 64


def pilot_rounds(M):
    """Rounds of the pilot's seeds: 2 more passes over the keys where they cost below 0.3 %."""
    return 2 if M < 65536 else 4


def coverage(X, seeds, metric, tolerance):
    """The share of rows of X, other than the seeds taken from them, within `tolerance` of a seed."""
    squared = nearest(X, metric, seeds)[1]
    near = np.count_nonzero(squared <= tolerance ** 2) - len(seeds)
    return max(near, 0) / max(len(X) - len(seeds), 1)


def classes_behind(seeds, share):
    """How many classes there are if `seeds` of them account for `share` of all elements."""
    return seeds / share if share > 0 else np.inf


def trimmed_error(found, wanted):
    """Relative L2 error without the sixteenth of the rows that are most wrong: rows far from all others
    are what more centres are for, and the pilot is to tell what these would do."""
    wrong = np.sort(((found - wanted) ** 2).sum(1))
    return float(np.sqrt(wrong[:len(wrong) - len(wrong) // 16].sum() / (wanted ** 2).sum()))


def round_up(x, unit=64):
    return int(-(-x // unit) * unit)


class Adaptive(Method):
    """Decides and evaluates one head for a relative L2 error of `epsilon`.

    `plan` is the decision: (name, number of centres); `found` what the pilot saw; `estimate` the
    error of the candidate on the check rows, None where there was none.
    """

    def __init__(self, epsilon=1e-2, share=0.95):
        self.epsilon, self.share = epsilon, share

    # The pilot.

    # "expansion" is the expected error of order 1 about the mean key: t²/2 with normal t has the
    # standard deviation E[t²]/sqrt(2), and E[t²] is the inner product of the second moments.

    def look(self, Q, K, V):
        N, scale, tolerance = len(Q), scale_of(Q), 0.9 * self.epsilon
        row_metric, key_metric = second_moment(K), second_moment(Q)
        quarter = spread_rows(N, N // 4, 34)
        row_seeds = quarter[draw_seeds(Q[quarter], row_metric, PILOT_ROWS, 2)]
        even = spread_rows(N, EVEN_ROWS, 31)
        fresh = np.setdiff1d(spread_rows(N, HELD_OUT, 32), np.concatenate([even, row_seeds]))
        pilot = PilotCentres(PILOT_KEYS, PILOT_STEPS, pilot_rounds(len(K)))
        pilot.fit_on(Q, K, V, np.concatenate([even, row_seeds]))
        wanted = exact_rows(Q[fresh], K, V)[0]
        variance = float((row_metric * key_metric).sum()) * float(scale) ** 2
        self.found = {
            "expansion": variance / 2 ** 0.5,
            "key classes": classes_behind(PILOT_KEYS, coverage(K, K[pilot.seeds], key_metric, tolerance / scale)),
            "row classes": classes_behind(PILOT_ROWS, coverage(Q[quarter], Q[row_seeds], row_metric, tolerance / scale)),
            "pilot error": trimmed_error(pilot.apply(Q[fresh]), wanted),
        }
        self.pilot = pilot

    def candidate(self, N, M):
        """The one method that the pilot's findings point at, or None."""
        expansion, keys, rows, error = self.found.values()
        if error <= 0.6 * self.epsilon:
            return self.pilot
        if expansion <= 0.8 * self.epsilon:
            return KeySummaries(1, order=1, rounds=1)
        if keys <= M / 24:
            return KeySummaries(min(round_up(4 * keys), M // 16))
        if rows <= N / 24:
            return RowSummaries(min(round_up(4 * rows), N // 16))
        more = max(M // 65536, 1)  # rare rows are farther from others the more there are
        for times, C in ((1, 256 * more), (5, 512 * more)):
            if error <= times * self.epsilon and C <= M // 32:
                return FittedCentres(C)
        return None

    # The check.

    def suspects(self, method, Q, K):
        """Of each of CHECK_SUSPECT blocks of rows the one for which the displacement of keys (or of
        the row) from their centres changes scores most, by second moments over all of them."""
        if isinstance(method, RowSummaries):
            counts = np.maximum(np.bincount(method.label, minlength=method.rank), 1)
            centres = np.stack([np.bincount(method.label, q, method.rank) for q in Q.T], 1) / counts[:, None]
            moved, metric = Q - centres[method.label].astype(np.float32), second_moment(K)
        else:
            delta = K - method.centres[method.label]
            moved, metric = Q, delta.T @ delta / np.float32(len(K))
        change = ((moved @ metric) * moved).sum(1)
        edges = np.arange(CHECK_SUSPECT + 1) * len(Q) // CHECK_SUSPECT
        return np.array([a + change[a:b].argmax() for a, b in zip(edges[:-1], edges[1:])])

    def check(self, method, Q, K, V):
        """Relative error on even rows, to which a sixteenth of the suspects' is added."""
        even = spread_rows(len(Q), CHECK_EVEN, 33)
        rows = np.concatenate([even, self.suspects(method, Q, K)])
        wanted = exact_rows(Q[rows], K, V)[0]
        found = method.apply(Q)[rows] if isinstance(method, RowSummaries) else method.apply(Q[rows])
        wrong = ((found - wanted) ** 2).sum(1)
        n = len(even)
        return float(np.sqrt((wrong[:n].mean() + wrong[n:].mean() / 16) / (wanted[:n] ** 2).sum(1).mean()))

    # The head.

    def fit(self, Q, K, V):
        self.look(Q, K, V)
        self.method, self.estimate = self.candidate(len(Q), len(K)), None
        if self.method is not None:
            if self.method is not self.pilot:
                self.method.fit(Q, K, V)
            self.estimate = self.check(self.method, Q, K, V)
            self.tried = self.method
        if self.estimate is None or not self.estimate <= self.share * self.epsilon:
            self.method = Dense(0)
            self.method.fit(Q, K, V)
        self.plan = (type(self.method).__name__, self.method.rank)

    def apply(self, Q):
        return self.method.apply(Q)

    @staticmethod
    def detection_cost(N, M, D):
        """What every head pays: second moments, seeds, the exact rows, the pilot's fit."""
        C, L = PILOT_KEYS, EVEN_ROWS + PILOT_ROWS
        moments = Cost(tensor=(2 * N + 2.5 * M + 0.5 * N) * D * D, bytes=2 * (N + M) * D, launches=2)
        solve = Cost(single=2 * L * C * C + 4 * L * C * (D + 1) + PILOT_STEPS * 2 * C * C * (D + 1), launches=4)
        return (moments + seeds_cost(M, D, C, pilot_rounds(M)) + seeds_cost(N / 4, D, PILOT_ROWS, 2) + sums_cost(M, D, C)
                + dense_cost(L + HELD_OUT, M, D)
                + Cost(tensor=128 * M * D, exps=64 * M, launches=1) + solve)

    def cost(self, N, M, D):
        check = dense_cost(CHECK_EVEN + CHECK_SUSPECT, M, D) + Cost(tensor=2 * (N + M) * D * D, launches=3)
        total = self.detection_cost(N, M, D) + self.method.cost(N, M, D)
        if self.estimate is None:
            return total
        wasted = self.tried.fit_cost(N, M, D) if self.tried is not self.method else Cost()
        return total + check + wasted


class PilotCentres(FittedCentres):
    """FittedCentres with few steps and rounds, fitted on rows that are given."""

    def __init__(self, rank, steps, rounds):
        super().__init__(rank, steps, rounds=rounds)

    def fit_on(self, Q, K, V, some):
        self.choose_centres(Q, K, V, self.rank)
        self.correct(Q[some], *exact_rows(Q[some], K, V))

    def fit_cost(self, N, M, D):
        return Cost()  # it is the pilot's
