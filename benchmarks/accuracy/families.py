"""Input families for spending accuracy in attention.

Each family makes Q [N, D], K [M, D] and V [M, D] of one head in float32. What a row holds depends on the
seed, the batch entry, the head and the row alone, so that any range of rows can be made without the others
and in any order: arrays of 262144 rows are written without ever being in memory. Scores are
scale * Q K^T with scale = 1 / sqrt(D), weights P their softmax, the output O = P V.

The docstring of a family says what it is for, what its parameters are, and what is expected of it. Three
words there have one meaning throughout, and stand in `expects` for programs:

  eight_bits   Q, K, P and V in e4m3, one scale per head and no law, have a relative L2 error of at most 6e-2
  low_rank     P is within 3e-2 (Frobenius, relative) of a matrix of rank 40, at N = M = 1024
  dense        a method of low rank must decline here, and say so

    python3 benchmarks/accuracy/families.py --list
    python3 benchmarks/accuracy/families.py sinks --N 4096 --D 128 --seed 3 --out DIR
    python3 benchmarks/accuracy/families.py --mixed --N 1024 --statistics --out DIR
    build/bin/moa-run examples/sdpa.moa --set T=f32 Q=DIR/Q.npy K=DIR/K.npy V=DIR/V.npy scale=0.0884 -o O=DIR/O.npy

moa-run's `--check` calls families with large scores, such as `large_scores`, ill-conditioned in f32, which they are: the rounding of
a score of 80 is 4e-6.
"""
import argparse
import inspect
import math
import os
import sys
import zlib

import numpy as np

BLOCK = 256     # rows that share a generator


class Source:
    """Random numbers by row, from the words of a seed."""

    def __init__(self, *words):
        self.words = words

    def generator(self, tag, block=0):
        words = (*self.words, zlib.crc32(tag.encode()), block)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))

    def rows(self, tag, start, stop, draw):
        """Rows start … stop of what `draw(generator, BLOCK)` makes of each block."""
        first, last = start // BLOCK, -(-stop // BLOCK)
        if first >= last:
            return draw(self.generator(tag), BLOCK)[:0]
        made = np.concatenate([draw(self.generator(tag, b), BLOCK) for b in range(first, last)])
        return made[start - first * BLOCK:stop - first * BLOCK]

    def normal(self, tag, start, stop, width):
        return self.rows(tag, start, stop,
                         lambda g, rows: g.standard_normal((rows, width), np.float32))

    def integers(self, tag, start, stop, below):
        return self.rows(tag, start, stop, lambda g, rows: g.integers(0, below, rows))

    def direction(self, tag, width):
        """A unit vector."""
        vector = self.generator(tag).standard_normal(width)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def orthogonal(self, tag, width):
        """An orthogonal matrix, uniform over all of them."""
        q, r = np.linalg.qr(self.generator(tag).standard_normal((width, width)))
        return (q * np.sign(np.diag(r))).astype(np.float32)


def hadamard(order):
    """Sylvester's matrix of ±1, for a power of two."""
    if order < 1 or order & (order - 1):
        raise ValueError(f"a Hadamard matrix needs a power of two, but the order is {order}")
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def miss_probability(population, hidden, sample):
    """The probability that `sample` of `population` rows, drawn without replacement, meet none of `hidden`."""
    if sample > population - hidden:
        return 0.0
    log = sum(math.log1p(-hidden / (population - k)) for k in range(sample))
    return math.exp(log)


class Family:
    """What all families share: independent normal numbers unless a method is overridden."""

    expects = {}
    parameters = {}

    def __init__(self, n, m, d, seed=0, batch=0, head=0, **parameters):
        unknown = sorted(set(parameters) - set(self.parameters))
        if unknown:
            known = ", ".join(self.parameters) or "none"
            raise ValueError(f"family '{self.name()}' has no parameter '{unknown[0]}'; it has: {known}")
        self.n, self.m, self.d = n, m, d
        self.scale = 1 / math.sqrt(d)
        self.source = Source(seed, batch, head)
        for key, value in {**self.parameters, **parameters}.items():
            setattr(self, key, value)
        self.prepare()

    @classmethod
    def name(cls):
        return "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).lstrip("_")

    def prepare(self):
        """Makes what rows have in common."""

    def queries(self, start, stop):
        return self.source.normal("q", start, stop, self.d)

    def keys(self, start, stop):
        return self.source.normal("k", start, stop, self.d)

    def values(self, start, stop):
        return self.source.normal("v", start, stop, self.d)

    def arrays(self):
        """Q, K and V whole."""
        return (self.queries(0, self.n), self.keys(0, self.m), self.values(0, self.m))


class Normal(Family):
    """Independent normal numbers in Q, K and V; scores have deviation 1.

    For: the case that every estimate is first derived on. No parameters.
    Expected: e4m3 has 5.3e-2 = sqrt(2 + 1 + 1) * 0.0265 (two factors of the scores, weights, values, each with the
    rms relative error of e4m3), so 8 bits at 6e-2 and not at 3e-2; int8 scores with a scale per row 9e-3. The exponential of
    full-rank scores is full rank: no low rank."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}


class OutlierChannels(Family):
    """A few channels of K and Q are 10 to 50 times larger than the others.

    For: scales that one channel decides. Parameters: `channels` of them, gains log-uniform in `low` … `high`, the same
    for Q and K; Q is then scaled so that the scores have deviation `spread`.
    Expected: e4m3 keeps the relative error of each channel but the errors of few large products do not average:
    8e-2 at spread 2, so no 8 bits; int8 per row 1.4e-2 by its scores. An orthogonal rotation spreads the channels: e4m3
    scores 5 times better, int8 4 times. Scores are of rank `channels` nearly, weights not of low rank."""
    expects = {"eight_bits": False, "low_rank": False, "dense": True}
    parameters = {"channels": 4, "low": 10.0, "high": 50.0, "spread": 2.0}

    def prepare(self):
        generator = self.source.generator("channels")
        count = min(self.channels, self.d)
        self.large = np.sort(generator.choice(self.d, count, replace=False))
        self.gain = np.ones(self.d, np.float32)
        self.gain[self.large] = np.exp(generator.uniform(math.log(self.low), math.log(self.high), count))
        self.temper = self.spread / (self.scale * math.sqrt(float(np.sum(self.gain.astype(float) ** 4))))

    def queries(self, start, stop):
        return super().queries(start, stop) * (self.gain * np.float32(self.temper))

    def keys(self, start, stop):
        return super().keys(start, stop) * self.gain


class OffsetChannels(Family):
    """A few channels of K have a large mean that all keys share.

    For: subtracting the mean key, which changes no weight. Parameters: `channels`, `offset` in deviations.
    Expected: without it the rounding of the mean is noise in every score, 1e-1 in e4m3 and worse where one scale covers
    the row in int8; with it the same as `normal`, exactly."""
    expects = {"eight_bits": False, "low_rank": False, "dense": True}
    parameters = {"channels": 4, "offset": 20.0}

    def prepare(self):
        generator = self.source.generator("channels")
        self.large = np.sort(generator.choice(self.d, min(self.channels, self.d), replace=False))
        self.mean = np.zeros(self.d, np.float32)
        self.mean[self.large] = self.offset * generator.choice([-1, 1], len(self.large))

    def keys(self, start, stop):
        return super().keys(start, stop) + self.mean


class HugeKey(Family):
    """One key, at a random place, is `gain` times larger than the others.

    For: a scale per head that one row decides. Parameter: `gain`.
    Expected: about half of the rows see this key alone, the others never. One int8 scale per head rounds all other keys to a
    few levels; the relative L2 error of the head hardly shows it, since the rows that see one key are far larger than the averages
    of the others, and the component-wise error does. In e4m3 the scores of the huge key have errors of 2, and the few rows for which
    it weighs about as much as all others are wrong as a whole: 1e-1, no 8 bits."""
    expects = {"eight_bits": False, "low_rank": False, "dense": True}
    parameters = {"gain": 50.0}

    def prepare(self):
        self.place = int(self.source.generator("place").integers(max(self.m, 1)))

    def keys(self, start, stop):
        made = super().keys(start, stop)
        if start <= self.place < stop:
            made[self.place - start] *= self.gain
        return made


class NearTies(Family):
    """The `ties` largest scores of every row are equal up to `gap`; the others are about `margin` below.

    For: orders of scores that no format keeps, while the output depends little on them. Parameters: `ties`, `gap`, `margin`.
    The tied keys are spread evenly over the range.
    Expected: keys that are equal round equally, so that the errors of their scores drop out of the softmax; what is left is the
    rounding of V: 8 bits, 3e-2. A method that picks the largest keys by rounded scores picks others. Low rank: two kinds of keys,
    and the weight of the lower kind is small."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"ties": 64, "gap": 1e-3, "margin": 12.0}

    def prepare(self):
        self.common = self.source.direction("common", self.d) * np.float32(math.sqrt(self.d))
        self.step = max(self.m // max(self.ties, 1), 1)
        self.share = self.margin / (self.scale * self.d)

    def queries(self, start, stop):
        noise = super().queries(start, stop) * np.float32(0.5)
        noise -= np.outer(noise @ self.common / self.d, self.common)
        return noise + np.float32(self.share) * self.common

    def keys(self, start, stop):
        made = super().keys(start, stop) * np.float32(0.5)
        made -= np.outer(made @ self.common / self.d, self.common)
        index = np.arange(start, stop)
        tied = (index % self.step == 0) & (index // self.step < self.ties)
        # No query is longer than this but with a probability of 1e-9 for each.
        reach = math.sqrt(self.share ** 2 * self.d + 0.25 * (math.sqrt(self.d) + 7) ** 2)
        jitter = made[tied]
        jitter /= np.maximum(np.linalg.norm(jitter, axis=1, keepdims=True), 1e-30)
        made[tied] = self.common + jitter * np.float32(self.gap / (2.1 * self.scale * reach))
        return made


class ConstantValues(Family):
    """All rows of V are one vector, so that the output is that vector whatever the weights are.

    For: errors of weights that must cancel, and centring of V. No parameters.
    Expected: the rounding of the one vector, 2.7e-2 in e4m3, does not average: 8 bits at 3e-2; centring V makes every
    format exact. P is that of `normal`."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}

    def prepare(self):
        self.row = self.source.generator("row").standard_normal(self.d).astype(np.float32)

    def values(self, start, stop):
        return np.repeat(self.row[None], stop - start, 0)


class LargeScores(Family):
    """Scores of about +`magnitude` and -`magnitude`, half of each in every row.

    For: scores whose rounding is large beside 1, and exponents that underflow. Parameter: `magnitude`.
    Expected: a relative error of a score of 80 is an error of the weight by a factor: 2e-1 and more in e4m3, so no 8 bits
    in Q and K; 16 bits have 1e-2. Few keys carry a row: no low rank."""
    expects = {"eight_bits": False, "low_rank": False, "dense": True}
    parameters = {"magnitude": 80.0}

    def prepare(self):
        length = math.sqrt(self.magnitude / self.scale)
        self.common = self.source.direction("common", self.d) * np.float32(length)

    def signed(self, tag, made, start, stop):
        sign = self.source.integers(tag, start, stop, 2).astype(np.float32) * 2 - 1
        return made + np.outer(sign, self.common)

    def queries(self, start, stop):
        return self.signed("q sign", super().queries(start, stop), start, stop)

    def keys(self, start, stop):
        return self.signed("k sign", super().keys(start, stop), start, stop)


class ClusteredKeys(Family):
    """Keys near `clusters` centres, at a distance of `radius` times their length.

    For: low rank by grouping keys. Parameters: `clusters`, `radius`, `follow` (1: values follow their cluster, 0: they are independent).
    Expected: the columns of the weights of one cluster agree up to `radius`, so P has rank `clusters` within 3e-2: low rank.
    8 bits as `normal`: the errors of one cluster's keys agree, and so do what they are errors of."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"clusters": 16, "radius": 0.02, "follow": 0.0}

    def prepare(self):
        generator = self.source.generator("centres")
        self.centres = generator.standard_normal((self.clusters, self.d)).astype(np.float32)
        self.shared = generator.standard_normal((self.clusters, self.d)).astype(np.float32)

    def member(self, start, stop):
        """The cluster of each key."""
        return self.source.integers("member", start, stop, self.clusters)

    def keys(self, start, stop):
        noise = super().keys(start, stop)
        return self.centres[self.member(start, stop)] + np.float32(self.radius) * noise

    def values(self, start, stop):
        made = super().values(start, stop)
        part = np.float32(self.follow)
        return part * self.shared[self.member(start, stop)] + np.sqrt(1 - part * part) * made


class LowRankScores(Family):
    """Scores of exact rank `rank`, whose singular values fall as `decay` ** t; their deviation is `spread`.

    For: methods that take the rank of scores for that of weights. Parameters: `rank`, `decay`, `spread`. Q = A diag(decay^t) W and
    K = B W with normal A and B and orthonormal rows W.
    Expected: 8 bits as `normal`. The exponential of rank r is not of rank r; with the defaults its effective rank is 35:
    low rank holds, at a rank well above `rank`."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"rank": 4, "decay": 0.5, "spread": 1.0}

    def prepare(self):
        rank = min(self.rank, self.d)
        self.basis = self.source.orthogonal("basis", self.d)[:rank]
        fall = self.decay ** np.arange(rank)
        self.fall = (fall * self.spread / (self.scale * np.sqrt(np.sum(fall ** 2)))).astype(np.float32)
        # Lengths as those of normal rows, in both.
        self.balance = np.float32(math.sqrt(self.d / rank))

    def queries(self, start, stop):
        made = self.source.normal("q", start, stop, len(self.fall)) * (self.fall / self.balance)
        return made @ self.basis

    def keys(self, start, stop):
        return (self.source.normal("k", start, stop, len(self.fall)) * self.balance) @ self.basis


class LowRankWeights(Family):
    """Weights of exact rank `rank`, whose singular values are sigma_t / sigma_0 = `contrast` * decay ** t, t = 1 … rank - 1.

    For: a rank that is known, of weights, to compare estimates with. Parameters: `rank` (a power of two, at most D), `decay`,
    `contrast` (times the sum of decay ** t it must stay below 1). There are `rank` different keys, orthogonal to each other, so that the
    scores of a row can be chosen freely: exp(s) = 1 + contrast * sum over t of decay^t * a_it * h_tc for signs a and rows h of
    a Hadamard matrix; the sum of a row is M where `rank` divides M. The signs of different rows are random, so the singular values are within
    some rank / sqrt(N) of what is stated.
    Expected: low rank, as stated. 8 bits as `normal` or better, since equal keys round equally."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"rank": 16, "decay": 0.5, "contrast": 0.8}

    def prepare(self):
        if self.rank > self.d:
            raise ValueError(f"rank {self.rank} needs as many orthogonal keys, but D is {self.d}")
        self.fall = self.contrast * self.decay ** np.arange(1, self.rank)
        if self.fall.sum() >= 1:
            raise ValueError(f"contrast * (decay + decay^2 + …) is {self.fall.sum():.3g}, but weights are "
                             "positive only where it is below 1")
        self.signs = hadamard(self.rank)[1:].astype(float)
        self.basis = self.source.orthogonal("basis", self.d)[:self.rank]
        self.length = math.sqrt(self.d)

    def singular_values(self):
        """What the singular values of exp(S) are proportional to."""
        return np.concatenate([[1.0], self.fall])

    def queries(self, start, stop):
        sign = self.source.rows("q", start, stop, lambda g, rows: g.integers(0, 2, (rows, self.rank - 1))) * 2.0 - 1
        exponential = 1 + (sign * self.fall) @ self.signs
        return (np.log(exponential) / (self.scale * self.length)).astype(np.float32) @ self.basis

    def keys(self, start, stop):
        return np.float32(self.length) * self.basis[np.arange(start, stop) % self.rank]


class Uniform(Family):
    """Every key has the same weight: all keys are equal, or (`zero` = 1) all queries are 0.

    For: rank 1 with the largest entropy. Parameter: `zero`.
    Expected: only V is rounded: 8 bits, 2.7e-2; low rank, 1. A rule that takes the exponential of the entropy for the rank says M."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"zero": 0}

    def queries(self, start, stop):
        made = super().queries(start, stop)
        return made * np.float32(0 if self.zero else 1)

    def keys(self, start, stop):
        if self.zero:
            return super().keys(start, stop)
        row = self.source.generator("row").standard_normal(self.d).astype(np.float32)
        return np.repeat(row[None], stop - start, 0)


class Diagonal(Family):
    """Each query sees its own key: q_i = c k_i, keys of one length, s_ii = `peak`.

    For: full rank with the smallest entropy. Parameter: `peak`; query i follows key i mod M.
    Expected: P is the identity nearly, so it must stay dense; the error of large scores does not matter where one weight is 1:
    8 bits, 2.7e-2, the rounding of V. Holds for D of 32 and more; below, keys are not orthogonal enough."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"peak": 24.0}

    def keys(self, start, stop):
        made = super().keys(start, stop)
        return made * (math.sqrt(self.d) / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    def queries(self, start, stop):
        factor = np.float32(self.peak / (self.scale * self.d))
        parts = []
        while start < stop:
            place = start % self.m
            count = min(stop - start, self.m - place)
            parts.append(self.keys(place, place + count))
            start += count
        return np.concatenate(parts) * factor if parts else np.zeros((0, self.d), np.float32)


class HiddenRows(Family):
    """All rows are benign but `hidden` of them, whose queries are `gain` times larger.

    For: errors that a uniform sample of rows misses, with probability `miss(r)` for r rows: 0.77 for 64 of 2048 and 8 hidden.
    Parameters: `hidden`, `gain`, `calm` (the factor of the other queries), `block` (1: the hidden rows are neighbours).
    Expected: the hidden rows see one or two keys and their outputs are 30 times larger than the averages of the others, so they are most of the
    norm of the head, and in e4m3 nearly all of its error, 1e-1, while the others have 4e-2: no 8 bits. The largest norm of a row of Q, O(N D)
    work, shows them."""
    expects = {"eight_bits": False, "low_rank": False, "dense": True}
    parameters = {"hidden": 8, "gain": 8.0, "calm": 0.5, "block": 0}

    def prepare(self):
        generator = self.source.generator("hidden")
        count = min(self.hidden, self.n)
        if self.block:
            first = int(generator.integers(self.n - count + 1)) if self.n else 0
            self.places = np.arange(first, first + count)
        else:
            self.places = np.sort(generator.choice(self.n, count, replace=False))

    def miss(self, rows):
        """The probability that a uniform sample of `rows` rows holds no hidden one."""
        return miss_probability(self.n, len(self.places), rows)

    def within(self, start, stop):
        return self.places[(self.places >= start) & (self.places < stop)]

    def queries(self, start, stop):
        made = super().queries(start, stop) * np.float32(self.calm)
        made[self.within(start, stop) - start] *= np.float32(self.gain / self.calm)
        return made


class HiddenAligned(HiddenRows):
    """All rows are benign but `hidden` of them, which follow one key each; their norms are as all others'.

    For: residuals of low rank that neither a uniform sample of rows nor a norm shows. Parameters: `hidden`, `calm`, `block`, and `gain`, the
    length of all queries in deviations.
    Expected: a score cannot be larger than the norms allow, so that 8 bits are not at risk. A method of low rank that looks at a sample of rows
    sees near-uniform weights and is wrong by the whole of a hidden row: it must find them, or stay dense. P is not of low rank."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"hidden": 4, "gain": 1.5, "calm": 0.5, "block": 0}

    def prepare(self):
        super().prepare()
        self.target = self.source.generator("target").integers(0, max(self.m, 1), len(self.places))
        # Benign rows spend their length in a subspace that the keys hardly have.
        self.idle = self.source.direction("idle", self.d)

    def keys(self, start, stop):
        made = super().keys(start, stop)
        return made - np.outer(made @ self.idle, self.idle)

    def queries(self, start, stop):
        length = np.float32(self.gain * math.sqrt(self.d))
        made = Family.queries(self, start, stop) * np.float32(self.calm)
        made -= np.outer(made @ self.idle, self.idle)
        rest = np.sqrt(np.maximum(length ** 2 - np.sum(made * made, axis=1), 0))
        made += np.outer(rest, self.idle)
        for row, key in zip(self.places, self.target):
            if start <= row < stop:
                k = self.keys(key, key + 1)[0]
                made[row - start] = length * k / np.linalg.norm(k)
        return made


class HiddenKeys(Family):
    """All keys are benign but `hidden` neighbours that carry half of the weight of every row.

    For: samples of keys (Nystroem, random columns) that miss what matters, with probability `miss(r)` for r keys. Parameters:
    `hidden`, `calm`, and `odds`, the weight of the hidden keys over that of the others.
    Expected: 8 bits as `normal`. Low rank holds, one direction for the hidden keys and few for the others, but no method
    that samples keys finds it; exact norms of keys show them."""
    expects = {"eight_bits": True, "low_rank": True, "dense": False}
    parameters = {"hidden": 4, "odds": 1.0, "calm": 0.1}

    def prepare(self):
        count = min(self.hidden, self.m)
        first = int(self.source.generator("hidden").integers(self.m - count + 1)) if self.m else 0
        self.places = np.arange(first, first + count)
        self.common = self.source.direction("common", self.d)
        self.lift = math.log(max(self.m - count, 1) / max(count, 1) * self.odds)

    def miss(self, keys):
        """The probability that a uniform sample of `keys` keys holds no hidden one."""
        return miss_probability(self.m, len(self.places), keys)

    def queries(self, start, stop):
        made = super().queries(start, stop) * np.float32(self.calm)
        made -= np.outer(made @ self.common, self.common)
        return made + self.common * np.float32(math.sqrt(self.d) / 4)

    def keys(self, start, stop):
        made = super().keys(start, stop)
        made -= np.outer(made @ self.common, self.common)
        here = self.places[(self.places >= start) & (self.places < stop)]
        made[here - start] += self.common * np.float32(4 * self.lift)
        return made


class LowRankNoise(Family):
    """Rows of Q and K near a subspace of dimension `rank`, with noise of `noise` deviations beside it.

    For: a realistic head whose scores are of low rank up to noise. Parameters: `rank`, `noise`, `spread` of the scores.
    Expected: 8 bits as `normal` at this spread. Scores are of low rank within 10 percent, weights are not."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"rank": 16, "noise": 0.2, "spread": 1.0}

    def prepare(self):
        rank = min(self.rank, self.d)
        self.basis = self.source.orthogonal("basis", self.d)[:rank]
        self.length = math.sqrt(self.spread / (self.scale * math.sqrt(rank)))

    def near(self, tag, start, stop):
        inside = self.source.normal(tag, start, stop, len(self.basis)) @ self.basis
        return inside * np.float32(self.length) + np.float32(self.noise) * self.source.normal(tag + " noise", start, stop, self.d)

    def queries(self, start, stop):
        return self.near("q", start, stop)

    def keys(self, start, stop):
        return self.near("k", start, stop)


class Peaked(Family):
    """Each query follows one random key up to noise, so that few keys carry a row; the top score is about `peak`.

    For: heads that retrieve. Parameters: `peak`, `noise` (of the query, in deviations of the key).
    Expected: the scores that matter are those of aligned rows, sqrt(3) times as sensitive as independent ones of that size, but where one weight is
    nearly 1 an error of its score changes little: 3e-2 in e4m3, 8 bits. No low rank."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"peak": 10.0, "noise": 1.0}

    def queries(self, start, stop):
        target = self.source.integers("target", start, stop, self.m)
        keys = np.empty((stop - start, self.d), np.float32)
        for block in np.unique(target // BLOCK):
            rows = np.nonzero(target // BLOCK == block)[0]
            first = int(block) * BLOCK
            keys[rows] = self.keys(first, min(first + BLOCK, self.m))[target[rows] - first]
        made = keys + np.float32(self.noise) * super().queries(start, stop)
        return made * np.float32(self.peak / (self.scale * self.d))


class Diffuse(Family):
    """Small scores, of deviation `spread`.

    For: heads that average. Parameter: `spread`.
    Expected: the rounding of Q and K hardly matters, that of P and V does: 3.9e-2 in e4m3, so 8 bits; scores in e4m3 and
    16 bits beside 1.1e-2. With spread 0.1 weights are of low rank, at 0.3 linear in the scores, of rank D + 1 nearly."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"spread": 0.3}

    def queries(self, start, stop):
        return super().queries(start, stop) * np.float32(self.spread)


class Sinks(Family):
    """The first key takes about `share` of every row, and its value is `quiet` times one of the others: 0 unless it is given.

    For: attention sinks. Parameters: `share`, `quiet`.
    Expected: an error of the sink's score scales the whole row, by its share times the error of its score, beside what `normal` has: 1e-1 in e4m3, no
    8 bits there; int8 scores have 3e-2. (With `quiet` at 0.05 the output is mostly the sink's value, and e4m3 has 4e-2.) Weights in int8
    have a 127th of the sink's weight as their step, which is more than all others have: an error of 1. P is a column, of low rank, and a
    full-rank rest; the output is the rest, so a method that is right for P within 3e-2 is wrong for the output."""
    expects = {"eight_bits": False, "low_rank": True, "dense": True}
    parameters = {"share": 0.8, "quiet": 0.0}

    def prepare(self):
        self.common = self.source.direction("common", self.d)
        self.lift = math.log(max(self.m - 1, 1)) + 0.5 + math.log(self.share / (1 - self.share))

    def queries(self, start, stop):
        made = super().queries(start, stop)
        made -= np.outer(made @ self.common, self.common)
        return made + self.common * np.float32(math.sqrt(self.d) / 4)

    def keys(self, start, stop):
        made = super().keys(start, stop)
        if start == 0 < stop:
            made[0] = self.common * np.float32(4 * self.lift)
        return made

    def values(self, start, stop):
        made = super().values(start, stop)
        if start == 0 < stop:
            made[0] *= np.float32(self.quiet)
        return made


class LocalBand(Family):
    """Each query sees the keys around its own position: s_ij = peak * exp(-(i - j)^2 / (2 width^2)) nearly.

    For: local heads, and ranks that grow with N. Parameters: `width` in positions, `peak`, `noise`. Channels are cosines and sines of the
    position at frequencies drawn from a normal distribution of deviation 1 / width.
    Expected: 8 bits as `normal` (5e-2); P is a band, of rank N / width: it must stay dense."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"width": 16.0, "peak": 12.0, "noise": 0.2}

    def prepare(self):
        pairs = max(self.d // 2, 1)
        self.frequency = np.abs(self.source.generator("frequency").standard_normal(pairs)) / self.width
        self.length = math.sqrt(self.peak / (self.scale * pairs))

    def at(self, tag, start, stop, stretch):
        position = np.arange(start, stop)[:, None] * stretch
        angle = position * self.frequency
        made = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)[:, :self.d].astype(np.float32)
        if made.shape[1] < self.d:
            made = np.pad(made, ((0, 0), (0, self.d - made.shape[1])))
        return made * np.float32(self.length) + np.float32(self.noise) * self.source.normal(tag, start, stop, self.d)

    def queries(self, start, stop):
        return self.at("q", start, stop, self.m / max(self.n, 1))

    def keys(self, start, stop):
        return self.at("k", start, stop, 1.0)


class CoherentValues(Family):
    """The mean of V is large against its deviation.

    For: centring of V, and outputs that hardly depend on the weights. Parameter: `mean`, in deviations, of a normal vector.
    Expected: every row's output is the mean nearly and errors average over keys: 8 bits even at 1e-2 (2e-3 and less)."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"mean": 10.0}

    def prepare(self):
        self.middle = (self.mean * self.source.generator("mean").standard_normal(self.d)).astype(np.float32)

    def values(self, start, stop):
        return super().values(start, stop) + self.middle


class SmallSignal(Family):
    """One channel of Q is large and of no consequence; V follows a channel in which Q is small.

    For: integers against floats: one scale per row leaves few levels for the channels that matter, and errors of a query are the same for all
    keys, so that values that follow the keys do not average them. Parameters: `gain` of the channel, `follow` (how far V follows).
    Expected: e4m3 as `normal`, so 8 bits; int8 with a scale per row 1e-1, and 3e-2 after a rotation."""
    expects = {"eight_bits": True, "low_rank": False, "dense": True}
    parameters = {"gain": 50.0, "follow": 3.0}

    def prepare(self):
        self.along = self.source.direction("along", self.d)

    def queries(self, start, stop):
        made = super().queries(start, stop)
        made[:, 0] = self.gain
        return made

    def keys(self, start, stop):
        made = super().keys(start, stop)
        made[:, 0] /= np.float32(self.gain)
        return made

    def values(self, start, stop):
        channel = self.keys(start, stop)[:, min(1, self.d - 1)]
        return super().values(start, stop) + np.float32(self.follow) * np.outer(channel, self.along) * np.float32(math.sqrt(self.d))


FAMILIES = {c.name(): c for c in (
    Normal, OutlierChannels, OffsetChannels, HugeKey, NearTies, ConstantValues, LargeScores, ClusteredKeys,
    LowRankScores, LowRankWeights, Uniform, Diagonal, HiddenRows, HiddenAligned, HiddenKeys, LowRankNoise, Peaked,
    Diffuse, Sinks, LocalBand, CoherentValues, SmallSignal)}


def make(name, n, m=None, d=128, seed=0, batch=0, head=0, **parameters):
    """One head of a family; M is N unless it is given."""
    if name not in FAMILIES:
        raise ValueError(f"there is no family '{name}'; there are: {', '.join(FAMILIES)}")
    return FAMILIES[name](n, n if m is None else m, d, seed, batch, head, **parameters)


class Heads:
    """B x H heads, each of its own family; `names` is a family, or a list of which head h takes entry h mod its length."""

    def __init__(self, names, b, h, n, m=None, d=128, seed=0, **parameters):
        names = [names] if isinstance(names, str) else list(names)
        self.b, self.h, self.n, self.m, self.d = b, h, n, n if m is None else m, d
        self.names = [names[k % len(names)] for k in range(h)]
        self.heads = [[make(self.names[k], n, self.m, d, seed, i, k, **parameters) for k in range(h)] for i in range(b)]

    def shape(self, which):
        return (self.b, self.h, self.n if which == "Q" else self.m, self.d)

    def fill(self, which, target, step=16384):
        """Writes Q, K or V into an array of this shape, `step` rows at a time."""
        method = {"Q": "queries", "K": "keys", "V": "values"}[which]
        rows = self.shape(which)[2]
        for i, entry in enumerate(self.heads):
            for k, head in enumerate(entry):
                for start in range(0, rows, step):
                    stop = min(start + step, rows)
                    target[i, k, start:stop] = getattr(head, method)(start, stop)
        return target

    def arrays(self):
        return tuple(self.fill(w, np.empty(self.shape(w), np.float32)) for w in "QKV")

    def save(self, folder):
        """Writes Q.npy, K.npy and V.npy without holding them."""
        os.makedirs(folder, exist_ok=True)
        for which in "QKV":
            path = os.path.join(folder, which + ".npy")
            shape = self.shape(which)
            if 0 in shape:
                np.save(path, np.empty(shape, np.float32))
                continue
            file = np.lib.format.open_memmap(path, "w+", np.float32, shape)
            self.fill(which, file)
            file.flush()


def statistics(head, rows=64, seed=0):
    """What a head is like, from its weights on a sample of rows: a dictionary of numbers."""
    generator = np.random.default_rng(seed)
    picked = np.sort(generator.choice(head.n, min(rows, head.n), replace=False))
    queries = np.concatenate([head.queries(i, i + 1) for i in picked]).astype(float)
    keys, values = head.keys(0, head.m).astype(float), head.values(0, head.m)
    scores = head.scale * queries @ keys.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    logs = np.log(np.where(weights > 0, weights, 1))
    whole = head.queries(0, head.n)
    return {
        "q max/rms": float(np.abs(whole).max() / np.sqrt(np.mean(whole ** 2) + 1e-30)),
        "k max/rms": float(np.abs(keys).max() / np.sqrt(np.mean(keys ** 2) + 1e-30)),
        "k mean/rms": float(np.linalg.norm(keys.mean(0)) / np.sqrt(np.sum(keys ** 2) / head.m + 1e-30)),
        "v mean/dev": float(np.linalg.norm(values.mean(0)) / np.sqrt(np.sum(values.var(0)) + 1e-30)),
        "score dev": float(scores.std(1).mean()),
        "score max": float(np.abs(scores).max()),
        "entropy": float(-np.sum(weights * logs, axis=1).mean()),
        "keys in effect": float((1 / np.sum(weights ** 2, axis=1)).mean()),
    }


def print_statistics(heads):
    made = [statistics(head) for head in heads.heads[0]]
    print(f"{'family':18s}" + "".join(f"{key:>15s}" for key in made[0]))
    for name, row in zip(heads.names, made):
        print(f"{name:18s}" + "".join(f"{value:15.4g}" for value in row.values()))


def parse_parameters(words):
    result = {}
    for word in words:
        name, equal, value = word.partition("=")
        if not equal:
            raise ValueError(f"'--set {word}' is not NAME=VALUE")
        number = float(value)
        result[name] = int(number) if number == int(number) and "." not in value else number
    return result


def list_families():
    for name, family in FAMILIES.items():
        print(name + "  (" + ", ".join(f"{k}={v}" for k, v in family.parameters.items()) + ")")
        for line in inspect.getdoc(family).splitlines():
            print("    " + line if line else "")
        print()


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Arrays Q, K and V of input families, as .npy files for moa-run.")
    parser.add_argument("family", nargs="*", help="a family; with several, head h is of the h-th (mod their number)")
    parser.add_argument("--list", action="store_true", help="say what families there are")
    parser.add_argument("--mixed", action="store_true", help="one head of every family, or of every one that is named")
    for name, default in (("B", 1), ("H", None), ("N", 2048), ("M", None), ("D", 128), ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the family")
    parser.add_argument("--out", metavar="DIR", help="where to write Q.npy, K.npy and V.npy")
    parser.add_argument("--statistics", action="store_true", help="print what the heads of the first batch entry are like")
    options = parser.parse_args(arguments)
    if options.list:
        list_families()
        return 0
    names = options.family or (list(FAMILIES) if options.mixed else [])
    if not names or not (options.out or options.statistics):
        parser.error("expects a family or --mixed, and --out DIR or --statistics (--list says what families there are)")
    count = options.H or (len(names) if options.mixed or len(names) > 1 else 1)
    try:
        heads = Heads(names, options.B, count, options.N, options.M, options.D, options.seed,
                      **parse_parameters(options.set))
    except ValueError as error:
        print(f"families.py: {error}", file=sys.stderr)
        return 1
    if options.out:
        heads.save(options.out)
        print(f"{options.out}: Q {heads.shape('Q')}, K and V {heads.shape('K')}; heads: {', '.join(heads.names)}; "
              f"scale {1 / math.sqrt(options.D):.9g}")
    if options.statistics:
        print_statistics(heads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
