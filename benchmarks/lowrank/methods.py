"""Evaluations of the fold O_i = sum_j e^(s_ij) V_j / sum_j e^(s_ij), s_ij = scale·(q_i·k_j).

Each method is a class: `fit(Q, K, V)` makes what is stored between the passes, `apply(Q)` gives
O for all rows, `cost(N, M, D)` counts the work of both. Arrays are float32, as on the GPU, and the
weights that multiply stored sums are rounded to bf16 (`contract`). `reference` is in float64.
No method but `Dense` and `RangeFinder(sampled=False)` forms N·M scores.
"""
from dataclasses import dataclass

import numpy as np

from families import bf16


# Costs.

@dataclass
class Cost:
    """Counted work of one head: flops on tensor cores and in f32, exponentials, operations of the
    ordinary units per element of a product, bytes of device memory, launches in a row. A sum of
    costs is one stage after the other: `seconds` adds what each takes by its scarcest unit."""
    tensor: float = 0
    single: float = 0
    exps: float = 0
    alu: float = 0
    bytes: float = 0
    launches: int = 0
    seconds: float = -1

    def __post_init__(self):
        if self.seconds < 0:
            self.seconds = max(self.tensor / 650e12, self.single / 25e12, self.exps / (16 * 132 * 1.6e9),
                               self.alu / (128 * 132 * 1.6e9), self.bytes / 4.2e12)

    def __add__(self, other):
        return Cost(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))

    def milliseconds(self, heads=16):
        """Modelled time per head where `heads` heads run at a time and share the launches."""
        return 1e3 * (self.seconds + 2e-6 * self.launches / heads)


def dense_cost(N, M, D):
    return Cost(tensor=4 * N * M * D, exps=N * M, bytes=4 * (N + M) * D, launches=1)


def seeds_cost(M, D, C, rounds):
    """Distances of M keys to C seeds; the keys are read once per round."""
    return Cost(tensor=2 * M * C * D, alu=3 * M * C, bytes=2 * M * D * rounds, launches=rounds)


def sums_cost(M, D, C):
    """Sums of keys and values over C classes, as contractions with [class(j) = c]."""
    return Cost(tensor=4 * M * C * D, alu=2 * M * C, bytes=4 * M * D, launches=1)


# Pieces that several methods share.

def scale_of(Q):
    return np.float32(Q.shape[1] ** -0.5)


def blocks(n, size=1024):
    return (slice(i, min(i + size, n)) for i in range(0, n, size))


def reference(Q, K, V, with_lse=False):
    """O, and the logarithms of the denominators, in float64, a block of rows at a time."""
    K, V = K.astype(np.float64), V.astype(np.float64)
    O, lse = np.empty((len(Q), V.shape[1])), np.empty(len(Q))
    for b in blocks(len(Q), 512):
        S = Q[b].astype(np.float64) @ K.T * float(scale_of(Q))
        top = S.max(1, keepdims=True)
        A = np.exp(S - top)
        total = A.sum(1, keepdims=True)
        O[b], lse[b] = A @ V / total, (top + np.log(total))[:, 0]
    return (O, lse) if with_lse else O


def exact_rows(Q, K, V):
    """O and log-sum-exp of some rows, as the dense kernel computes them: f32, weights in bf16."""
    O, lse = np.empty((len(Q), V.shape[1]), np.float32), np.empty(len(Q), np.float32)
    for b in blocks(len(Q), 512):
        S = Q[b] @ K.T * scale_of(Q)
        top = S.max(1, keepdims=True)
        A = np.exp(S - top)
        total = A.sum(1, keepdims=True)
        O[b], lse[b] = bf16(A) @ V / total, (top + np.log(total))[:, 0]
    return O, lse


def contract(S, values):
    """Rows of sum_c e^(S_ic)·values_c over the last column's same sum, weights rounded to bf16."""
    P = np.exp(S - S.max(1, keepdims=True))
    sums = bf16(P) @ values
    return sums[:, :-1] / sums[:, -1:]


def relative_error(found, wanted):
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def hashed(index, salt):
    """Numbers in (0, 1) from integers, by the finalizer of MurmurHash3: no generator's state."""
    x = np.asarray(index).astype(np.uint32) + np.uint32((salt * 0x9E3779B9) & 0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x.astype(np.float64) + 0.5) / 2.0 ** 32


def spread_rows(N, count, salt):
    """One index from each of `count` equal blocks of 0 .. N-1, at a hashed place in it."""
    count = min(count, N)
    edges = np.arange(count + 1) * N // count
    place = hashed(np.arange(count), salt)
    return edges[:-1] + (place * np.diff(edges)).astype(np.int64)


def second_moment(X):
    """Covariance of rows of X."""
    centred = X - X.mean(0)
    return centred.T @ centred / np.float32(len(X))


def nearest(X, G, centres):
    """The class of each row x: argmin over c of (x - c)ᵀG(x - c), and that least value."""
    Gc = centres @ G
    half = 0.5 * (Gc * centres).sum(1)
    label, best = np.empty(len(X), np.int64), np.empty(len(X), np.float32)
    for b in blocks(len(X), 4096):
        score = X[b] @ Gc.T - half
        label[b] = score.argmax(1)
        best[b] = np.take_along_axis(score, label[b][:, None], 1)[:, 0]
    return label, np.maximum(((X @ G) * X).sum(1) - 2 * best, 0)


def draw_seeds(X, G, count, rounds=8, weight=None):
    """Indices of `count` rows of X far from one another in the metric G.

    A round draws one row per block of consecutive rows: the largest (weight·distance²)² / e with
    e exponentially distributed by a hash of the index, which picks a row with a probability
    proportional to (weight·distance²)², distances being those to the seeds of the rounds before.
    """
    N = len(X)
    per_round = max(count // rounds, 1)
    edges = np.arange(per_round + 1) * N // per_round
    distance = np.ones(N, np.float32)
    weight = np.ones(N, np.float32) if weight is None else weight
    seeds = []
    for t in range(rounds):
        key = 2 * np.log(np.maximum(weight * distance, 1e-30)) - np.log(-np.log(hashed(np.arange(N), t)))
        new = np.array([a + key[a:b].argmax() for a, b in zip(edges[:-1], edges[1:])])
        seeds.append(new)
        d = nearest(X, G, X[new])[1]
        distance = d if t == 0 else np.minimum(distance, d)
    return np.concatenate(seeds)


def class_sums(label, X, C):
    """Sums of the rows of X by class: the contraction of [label_j = c] with X."""
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(C))
    sums = np.add.reduceat(np.concatenate([X[order], np.zeros((1, X.shape[1]), X.dtype)]),
                           np.minimum(starts, len(X)), axis=0)
    sums[np.bincount(label, minlength=C) == 0] = 0
    return sums


class Method:
    """What all methods have: a name and the number of centres, columns or features."""

    def __init__(self, rank):
        self.rank = rank

    def __call__(self, Q, K, V):
        self.fit(Q, K, V)
        return self.apply(Q)


# (0) The fold as it is.

class Dense(Method):
    def fit(self, Q, K, V):
        self.K, self.V = K, V

    def apply(self, Q):
        return exact_rows(Q, self.K, self.V)[0]

    def cost(self, N, M, D):
        return dense_cost(N, M, D)


# (a) Cross approximation.

class CrossApproximation(Method):
    """ACA with partial pivoting of e^(s_ij - a_i), a_i the largest score of the row among the
    pivots' start; the next row is the one where the last column's residual is largest."""

    def fit(self, Q, K, V):
        N, scale = len(Q), scale_of(Q)
        shift = (Q @ K[spread_rows(len(K), 64, 1)].T).max(1) * scale
        self.left = np.zeros((N, self.rank), np.float32)
        right = np.zeros((self.rank, len(K)), np.float32)
        used, i = np.zeros(N, bool), 0
        for r in range(self.rank):
            row = np.exp(np.minimum(Q[i] @ K.T * scale - shift[i], 60)) - self.left[i, :r] @ right[:r]
            j = np.abs(row).argmax()
            if abs(row[j]) < 1e-12:
                break
            column = np.exp(np.minimum(Q @ K[j] * scale - shift, 60)) - self.left[:, :r] @ right[:r, j]
            self.left[:, r], right[r] = column, row / row[j]
            used[i] = True
            i = np.where(used, -1, np.abs(column)).argmax()
        self.values = right @ np.concatenate([V, np.ones((len(V), 1), np.float32)], 1)

    def apply(self, Q):
        sums = bf16(self.left) @ self.values
        return sums[:, :-1] / sums[:, -1:]

    def cost(self, N, M, D):
        r = self.rank
        return Cost(single=(N + M) * (2 * r * D + r * r), tensor=2 * (N + M) * r * D, exps=(N + M) * r,
                    bytes=4 * (N + M) * r * r / 2, launches=3 * r)


# (b) Nyström.

class Nystrom(Method):
    """A ≈ A[:, J]·A[I, J]⁺·A[I, :] with landmarks J among keys and I among rows, each row of the
    matrix scaled by its largest score over J; singular values below cut·largest are dropped."""

    def __init__(self, rank, landmarks="seeds", cut=1e-4):
        self.rank, self.landmarks, self.cut = rank, landmarks, cut

    def choose(self, X, G, salt):
        if self.landmarks == "uniform":
            return X[spread_rows(len(X), self.rank, salt)]
        if self.landmarks == "leverage":  # of X itself, the cheap stand-in for the matrix's
            X2 = X @ np.linalg.pinv(X.T @ X)
            key = np.log(np.maximum((X2 * X).sum(1), 1e-12)) - np.log(-np.log(hashed(np.arange(len(X)), salt)))
            return X[np.argsort(-key)[:self.rank]]
        centres = X[draw_seeds(X, G, self.rank)]
        if self.landmarks == "k-means":
            for _ in range(2):
                label = nearest(X, G, centres)[0]
                count = np.bincount(label, minlength=len(centres))[:, None]
                centres = np.where(count, class_sums(label, X, len(centres)) / np.maximum(count, 1), centres)
        return centres.astype(np.float32)

    def fit(self, Q, K, V):
        scale = scale_of(Q)
        self.J = self.choose(K, second_moment(Q), 3) * scale
        I = self.choose(Q, second_moment(K), 4)
        core = I @ self.J.T
        top = core.max(1, keepdims=True)
        sums = np.empty((len(I), V.shape[1] + 1), np.float32)
        for b in blocks(len(I), 256):
            A = np.exp(np.minimum(I[b] @ K.T * scale - top[b], 60))
            sums[b] = np.concatenate([bf16(A) @ V, A.sum(1, keepdims=True)], 1)
        self.values = np.linalg.pinv(np.exp(core - top), rcond=self.cut) @ sums

    def apply(self, Q):
        return contract(Q @ self.J.T, self.values)

    def cost(self, N, M, D):
        C = self.rank
        choose = (seeds_cost(M, D, C, 8) + seeds_cost(N, D, C, 8)) if self.landmarks != "uniform" else Cost()
        if self.landmarks == "k-means":
            choose = choose + sums_cost(M, D, C) + sums_cost(N, D, C)
        return (choose + dense_cost(C, M, D) + Cost(single=25 * C ** 3, launches=4 * C)  # the SVD's sweeps
                + dense_cost(N, C, D))


# (c) Range finding.

class RangeFinder(Method):
    """Q₀ = orth(A·Ω), A ≈ Q₀·Q₀ᵀ·A with a normal Ω of r columns: every step reads all scores. With
    `sampled`, Ω selects r columns, and Q₀ᵀA is fitted on 2·r exactly computed rows."""

    def __init__(self, rank, sampled=False):
        self.rank, self.sampled = rank, sampled

    def fit(self, Q, K, V):
        scale, r = scale_of(Q), self.rank
        ones = np.ones((len(V), 1), np.float32)
        if self.sampled:
            J = K[spread_rows(len(K), r, 5)]
            S = Q @ J.T * scale
            A = np.exp(S - S.max(1, keepdims=True))
            self.basis = np.linalg.qr(A)[0]
            I = spread_rows(len(Q), 2 * r, 6)
            rows = np.exp(np.minimum(Q[I] @ K.T * scale - S[I].max(1, keepdims=True), 60))
            sums = rows @ np.concatenate([V, ones], 1)
            self.values = np.linalg.lstsq(self.basis[I], sums, rcond=1e-4)[0]
            return
        S = Q @ K.T * scale
        A = np.exp(S - S.max(1, keepdims=True))
        sketch = np.random.default_rng(7).standard_normal((len(K), r)).astype(np.float32)
        self.basis = np.linalg.qr(A @ sketch)[0]
        self.values = (self.basis.T @ A) @ np.concatenate([V, ones], 1)

    def apply(self, Q):
        sums = bf16(self.basis) @ self.values
        return sums[:, :-1] / sums[:, -1:]

    def cost(self, N, M, D):
        r = self.rank
        if self.sampled:
            return (dense_cost(2 * r, M, D) + Cost(tensor=2 * N * r * D + 2 * N * r * D, exps=N * r,
                    single=2 * N * r * r + 8 * r ** 3, bytes=8 * N * r, launches=4 * r))
        both = Cost(tensor=4 * N * M * D + 4 * N * M * r, exps=2 * N * M, launches=2)
        return both + Cost(tensor=2 * (N + M) * r * D, single=2 * N * r * r, bytes=8 * N * r, launches=2 * r)


# (d) Sums over classes of keys and their moments.

class KeySummaries(Method):
    """Every class c of keys stands as its mean κ_c with the number n_c and the mean of V, to order
    0; to order 1 with the matrix T_c = sum_j (k_j - κ_c)V_jᵀ: e^(q·k) ≈ e^(q·κ)(1 + q·(k - κ))."""

    def __init__(self, rank, order=0, rounds=8):
        self.rank, self.order, self.rounds = rank, order, rounds

    def fit(self, Q, K, V):
        C, scale = self.rank, scale_of(Q)
        metric = second_moment(Q)
        seeds = draw_seeds(K, metric, C, min(self.rounds, C))
        self.label = nearest(K, metric, K[seeds])[0]
        n = np.bincount(self.label, minlength=C).astype(np.float32)[:, None]
        self.centres = class_sums(self.label, K, C) / np.maximum(n, 1)
        self.values = np.concatenate([class_sums(self.label, V, C) / np.maximum(n, 1),
                                      np.ones((C, 1), np.float32)], 1)
        self.bias = np.where(n[:, 0] > 0, np.log(np.maximum(n[:, 0], 1)), -np.inf).astype(np.float32)
        if self.order:
            self.moments = np.zeros((C, K.shape[1], V.shape[1]), np.float32)
            for c in range(C):
                mine = self.label == c
                self.moments[c] = (K[mine] - self.centres[c]).T @ V[mine] * scale / max(n[c, 0], 1)
        self.radius = np.zeros(C, np.float32)
        np.maximum.at(self.radius, self.label, np.linalg.norm(K - self.centres[self.label], axis=1))
        self.norms = np.bincount(self.label, np.linalg.norm(V, axis=1), C) / np.maximum(n[:, 0], 1)

    def scores(self, Q):
        return Q @ self.centres.T * scale_of(Q) + self.bias

    def apply(self, Q):
        S = self.scores(Q)
        if not self.order:
            return contract(S, self.values)
        P = np.exp(S - S.max(1, keepdims=True))
        sums = bf16(P) @ self.values  # the first moment of the weights is 0 around the mean
        for c in range(self.rank):
            sums[:, :-1] += P[:, c:c + 1] * bf16(Q @ bf16(self.moments[c]))
        return sums[:, :-1] / sums[:, -1:]

    def certified(self, Q):
        """Per row a bound of |O - exact| that needs no exact row: docs/Accuracy/LowRank.md, F3 and F4."""
        S = self.scores(Q).astype(np.float64)
        P = np.exp(S - S.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
        eta = np.linalg.norm(Q, axis=1)[:, None] * self.radius * float(scale_of(Q))
        lost = np.expm1(eta) - (eta if self.order else 0)
        total = (P * lost).sum(1)
        wrong = (P * lost) @ self.norms + np.linalg.norm(self.apply(Q), axis=1) * total
        return np.where(total < 1, wrong / np.maximum(1 - total, 1e-12), np.inf)

    def fit_cost(self, N, M, D):
        C = self.rank
        total = seeds_cost(M, D, C, min(self.rounds, C)) + sums_cost(M, D, C)
        return total + Cost(tensor=2 * M * D * D, launches=1) if self.order else total

    def cost(self, N, M, D):
        C = self.rank
        total = self.fit_cost(N, M, D) + dense_cost(N, C, D)
        return total + Cost(tensor=2 * N * C * D * D, alu=2 * N * C * D) if self.order else total


class CertifiedTiles(Method):
    """Keys in the order of their classes, rows in the order of theirs, tiles of 64 rows: per tile
    of rows every class of keys is taken to order 0 or computed, by bounds that hold for all of its
    keys, so that the certified error of a row stays below budget·max |V_j|."""

    def __init__(self, rank, budget=1e-2, sort=True):
        self.rank, self.budget, self.sort = rank, budget, sort

    def fit(self, Q, K, V):
        C = self.rank
        self.K, self.V = K, V
        if self.sort:
            inner = KeySummaries(C)
            inner.fit(Q, K, V)
            self.label, self.centres = inner.label, inner.centres
            rows = draw_seeds(Q, second_moment(K), C)
            self.order = np.argsort(nearest(Q, second_moment(K), Q[rows])[0], kind="stable")
        else:
            self.label = np.arange(len(K)) * C // len(K)
            self.order = np.arange(len(Q))
            self.centres = class_sums(self.label, K, C) / np.bincount(self.label, minlength=C)[:, None]
        self.count = np.bincount(self.label, minlength=C).astype(np.float32)
        distance = np.linalg.norm(K - self.centres[self.label], axis=1)
        self.radius = np.zeros(C, np.float32)
        np.maximum.at(self.radius, self.label, distance)
        self.values = np.concatenate([class_sums(self.label, V, C), self.count[:, None]], 1)

    def bounds(self, Q):
        """Per row and class: s_ic, η_ic ≥ |s_ij - s_ic|, the certified share u_ic of the class
        (upper bound over Jensen's lower bound of the denominator) and what order 0 may cost."""
        scale = scale_of(Q)
        S = Q @ self.centres.T * scale
        eta = np.linalg.norm(Q, axis=1)[:, None] * self.radius * scale * np.float32(1.0001) + np.float32(1e-6)
        weight = S + np.log(np.maximum(self.count, 1e-30))
        low = weight.max(1, keepdims=True)
        low = low + np.log(np.exp(weight - low).sum(1, keepdims=True))
        share = np.exp(np.minimum(weight + eta - low, 80))
        order0 = np.exp(np.minimum(weight - low, 0)) * np.expm1(np.minimum(eta, 80))
        return S, eta, share, order0

    def apply(self, Q):
        O = np.empty((len(Q), self.V.shape[1]), np.float32)
        members = [np.flatnonzero(self.label == c) for c in range(self.rank)]
        self.near = 0
        for t in range(0, len(Q), 64):
            rows = self.order[t:t + 64]
            S, _, share, order0 = self.bounds(Q[rows])
            # Sums of |e^(s_ij) - e^(s_ic)| over a class, in denominators: at most order0, and at most
            # both sums, each at most the share; numerator and denominator are wrong by as much.
            cost = 2 * np.minimum(2 * share, order0).max(0)
            cheapest = np.argsort(cost, kind="stable")
            spent = np.cumsum(cost[cheapest])
            near = cheapest[spent > self.budget / (1 + self.budget)]
            summed = np.setdiff1d(np.flatnonzero(self.count), near)
            j = np.concatenate([members[c] for c in near] + [np.empty(0, np.int64)]).astype(np.int64)
            self.near += len(rows) * len(j)
            s = np.concatenate([Q[rows] @ self.K[j].T * scale_of(Q), S[:, summed]], 1)
            P = np.exp(s - s.max(1, keepdims=True))
            sums = P[:, :len(j)] @ np.concatenate([self.V[j], np.ones((len(j), 1), np.float32)], 1)
            sums += P[:, len(j):] @ self.values[summed]
            O[rows] = sums[:, :-1] / sums[:, -1:]
        self.share_near = self.near / (len(Q) * len(self.K))
        return O

    def cost(self, N, M, D):
        C, total = self.rank, Cost()
        if self.sort:
            total = seeds_cost(M, D, C, 8) + seeds_cost(N, D, C, 8) + sums_cost(M, D, C)
            total = total + Cost(bytes=8 * (N + M) * D, launches=4)
        return (total + dense_cost(N, C, D) + Cost(tensor=2 * N * C * D, alu=6 * N * C, launches=1)
                + Cost(tensor=4 * N * M * D * self.share_near, exps=N * M * self.share_near))


# (e) Positive random features.

class RandomFeatures(Method):
    """FAVOR+: e^(q·k) = E[φ(q)·φ(k)], φ(x) = e^(ω·x - |x|²/2), with orthogonal blocks of ω."""

    def fit(self, Q, K, V):
        rng, D = np.random.default_rng(11), Q.shape[1]
        parts = [np.linalg.qr(rng.standard_normal((D, D)))[0].T * np.linalg.norm(rng.standard_normal((D, D)), axis=1)[:, None]
                 for _ in range(-(-self.rank // D))]
        self.omega = np.concatenate(parts)[:self.rank].astype(np.float32)
        F = K @ self.omega.T * scale_of(Q) ** 0.5 - 0.5 * scale_of(Q) * (K * K).sum(1, keepdims=True)
        self.values = bf16(np.exp(F - F.max())).T @ np.concatenate([V, np.ones((len(V), 1), np.float32)], 1)

    def apply(self, Q):
        return contract(Q @ self.omega.T * scale_of(Q) ** 0.5, self.values)

    def cost(self, N, M, D):
        return Cost(tensor=4 * (N + M) * self.rank * D, exps=(N + M) * self.rank,
                    bytes=4 * (N + M) * D, launches=2)


# (f) Classes of rows.

class RowSummaries(Method):
    """Every class of rows has the result of its mean row, computed exactly."""

    def fit(self, Q, K, V):
        C, metric = self.rank, second_moment(K)
        seeds = draw_seeds(Q, metric, C, min(8, C))
        self.label = nearest(Q, metric, Q[seeds])[0]
        n = np.bincount(self.label, minlength=C)[:, None]
        self.values = exact_rows(bf16(class_sums(self.label, Q, C) / np.maximum(n, 1)), K, V)[0]

    def apply(self, Q):
        return self.values[self.label]

    def fit_cost(self, N, M, D):
        C = self.rank
        return (seeds_cost(N, D, C, 8) + Cost(tensor=2 * N * C * D, alu=N * C, launches=1)
                + dense_cost(C, M, D))

    def cost(self, N, M, D):
        return self.fit_cost(N, M, D) + Cost(bytes=4 * N * D, launches=1)


# (g) Sums over classes, corrected by least squares on exactly computed rows.

def conjugate_gradients(G, R, steps):
    """X with G·X ≈ R, from 0, one step length per column of R."""
    X, P, Z = np.zeros_like(R), R.copy(), R.copy()
    size = (Z * Z).sum(0)
    for _ in range(steps):
        GP = G @ P
        length = size / np.maximum((P * GP).sum(0), 1e-30)
        X += length * P
        Z -= length * GP
        new = (Z * Z).sum(0)
        P = Z + new / np.maximum(size, 1e-30) * P
        size = new
    return X


class FittedCentres(KeySummaries):
    """The sums of KeySummaries, changed as little as makes them right on `2·rank` exactly computed
    rows: min |E·(X₀ + dX) - Y|² + μ|dX|² with E_ic = e^(s_ic - lse_i), columns scaled to length 1, by
    conjugate gradients on the Gram matrix in f32. The seeds' weights are the keys' mean squared
    weights in 64 of the rows, so that heavy keys stand alone."""

    def __init__(self, rank, steps=30, ridge=1e-3, rounds=8, rows=None):
        super().__init__(rank, 0, rounds)
        self.steps, self.ridge, self.rows = steps, ridge, rows or 2 * rank

    def fit(self, Q, K, V):
        self.choose_centres(Q, K, V, self.rank)
        some = self.pick_rows(Q, K, self.rows)
        self.correct(Q[some], *exact_rows(Q[some], K, V))

    def choose_centres(self, Q, K, V, C):
        scale, metric = scale_of(Q), second_moment(Q)
        some = Q[spread_rows(len(Q), 64, 21)]
        lse = exact_rows(some, K, V)[1]
        mass = np.sqrt((np.exp(some @ K.T * scale - lse[:, None]) ** 2).mean(0))
        self.seeds = draw_seeds(K, metric, C, self.rounds, mass)
        self.label = nearest(K, metric, K[self.seeds])[0]
        n = np.bincount(self.label, minlength=C).astype(np.float32)[:, None]
        self.centres = class_sums(self.label, K, C) / np.maximum(n, 1)
        self.values = np.concatenate([class_sums(self.label, V, C) / np.maximum(n, 1),
                                      np.ones((C, 1), np.float32)], 1)
        self.bias = np.where(n[:, 0] > 0, np.log(np.maximum(n[:, 0], 1)), -1e30).astype(np.float32)

    def pick_rows(self, Q, K, count):
        """Half of the rows evenly, half far from one another."""
        even = spread_rows(len(Q), count // 2, 22)
        far = draw_seeds(Q, second_moment(K), count - count // 2, 4)
        return np.concatenate([even, far])

    def correct(self, rows, wanted, lse):
        E = np.exp(self.scores(rows) - lse[:, None])
        length = 1 / np.maximum(np.linalg.norm(E, axis=0), 1e-20)
        E *= length
        Y = np.concatenate([wanted, np.ones((len(rows), 1), np.float32)], 1)
        missing = Y - (E / length) @ self.values
        G = E.T @ E + np.float32(self.ridge ** 2 * self.rank) * np.eye(self.rank, dtype=np.float32)
        self.values = self.values + length[:, None] * conjugate_gradients(G, E.T @ missing, self.steps)

    def fit_cost(self, N, M, D):
        C, L = self.rank, self.rows
        solve = Cost(single=2 * L * C * C + 4 * L * C * (D + 1) + self.steps * 2 * C * C * (D + 1),
                     launches=4)  # columns of X are solved apart from each other, all steps in one launch
        choose = dense_cost(64, M, D) + Cost(tensor=128 * M * D, exps=64 * M, launches=1)
        return (super().fit_cost(N, M, D) + choose + seeds_cost(N, D, L // 2, 4)
                + dense_cost(L, M, D) + solve)
