"""Values of classes that are right on some rows (law F11 of docs/LowRank.md), as the compiler computes them, in NumPy:

    python3 benchmarks/lowrank/fitted.py [--keys 32768] [--depth 64] [--classes 512] [--rows 128] [--seeds 1,2,3]

Per family of keys the relative L2 error on 192 rows of sums over classes, and of fitted values with rows by a hash alone, with the
longest row of each half of a part, and drawn from the distance of scores, which is what the compiler does. The inverse is that
of the compiler too, in f32; what NumPy solves in f64 stands behind it.
"""
import argparse

import numpy as np

from families import FAMILIES, bf16, normal, subspace
from methods import scale_of

FAR, RIDGE, STEPS, LEAST = np.exp(-16.0), 3e-6, 14, 2.0 ** -10


def plane(rng, n, d, noise=0.0):
    keys = (d / 2) ** 0.5 * normal(rng, n, 2) @ subspace(rng, d, 2)
    return normal(rng, n, d), keys + noise * normal(rng, n, d)


MADE = {
    "plane": plane,
    "plane, noise": lambda rng, n, d: plane(rng, n, d, 0.004),
    **{name: FAMILIES[name].make for name in ("smooth-2", "low-rank-plus-noise", "huge-key", "smooth-4", "normal")},
}


def squared_distances(x, y):
    return np.maximum((x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * x @ y.T, 0)


def parts(n, count):
    edges = np.arange(count + 1) * n // count
    return list(zip(edges[:-1], edges[1:]))


def hashed(rng, n, count):
    return np.array([rng.integers(a, b) for a, b in parts(n, count)])


def drawn(rng, squared, count, power=4):
    """Of each part one with a probability proportional to a power of its distance."""
    weight = squared ** (power // 2) / rng.exponential(size=len(squared))
    return np.array([a + weight[a:b].argmax() for a, b in parts(len(squared), count)])


def choose_rows(rng, how, queries, keys, count):
    n = len(queries)
    if how == "hash":
        return hashed(rng, n, count)
    if how == "longest":
        length = (queries ** 2).sum(1)
        far = [a + length[a:a + (b - a + 1) // 2].argmax() for a, b in parts(n, count // 2)]
        return np.concatenate([hashed(rng, n, count // 2), far])
    few = keys[hashed(rng, n, 128)]
    scores = queries @ (few - few.mean(0)).T
    rows, fresh = [], hashed(rng, n, count // 4)
    nearest = np.full(n, np.inf)
    for _ in range(3):
        rows.append(fresh)
        nearest = np.minimum(nearest, squared_distances(scores, scores[fresh]).min(1))
        fresh = drawn(rng, nearest, count // 4, power=6)
    return np.concatenate([*rows, fresh])


def inverse(matrix):
    """By Newton's iteration, scaled; of the transposed result, as rounding makes X one of X·A = 1."""
    most = np.abs(matrix).sum(1).max()
    matrix = matrix + np.float32(RIDGE * most) * np.eye(len(matrix), dtype=np.float32)
    x = np.eye(len(matrix), dtype=np.float32) / np.float32(most * (1 + RIDGE))
    least = RIDGE
    for _ in range(STEPS):
        factor = 2 / (1 + max(least, LEAST))
        least = factor * least * (2 - factor * least)
        x = np.float32(2 * factor) * x - np.float32(factor ** 2) * ((x @ matrix) @ x)
    return x.T, matrix


class Head:
    def __init__(self, name, n, d, classes, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.queries, self.keys = (bf16(x) for x in MADE[name](rng, n, d))
        self.values, self.scale = bf16(normal(rng, n, d)), np.float32(scale_of(self.queries))
        first = hashed(rng, n, classes // 3)
        near = squared_distances(self.keys, self.keys[first]).min(1)
        self.centres = self.keys[np.concatenate([first, drawn(rng, near, classes - classes // 3)])]
        some = self.keys[hashed(rng, n, min(n, 4096))]
        sharpness = 4 / squared_distances(some, self.centres).min(1).mean()
        members, sums, odd = np.zeros(classes, np.float32), np.zeros((classes, d), np.float32), []
        for a in range(0, n, 4096):
            shares = np.exp(-sharpness / 2 * squared_distances(self.keys[a:a + 4096], self.centres))
            total = shares.sum(1, keepdims=True)
            shares = np.where(total > FAR, shares / np.maximum(total, FAR), 0)
            members += shares.sum(0)
            sums += bf16(shares).T @ self.values[a:a + 4096]
            odd.extend(a + np.nonzero(total[:, 0] <= FAR)[0])
        self.centres = np.concatenate([self.centres, self.keys[odd]])
        self.members = np.concatenate([members, np.ones(len(odd), np.float32)])
        self.means = bf16(np.concatenate([sums / np.maximum(members, 1e-20)[:, None], self.values[odd]]))
        self.test = rng.choice(n, 192, replace=False)
        self.wanted = self.exact(self.test)

    def exact(self, rows):
        scores = self.queries[rows] @ self.keys.T * self.scale
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True) @ self.values

    def shares(self, rows):
        scores = np.where(self.members > 0, self.queries[rows] @ self.centres.T * self.scale, np.float32(-1e30))
        weights = bf16(np.exp(scores - scores.max(1, keepdims=True)) * self.members)
        return weights / weights.sum(1, keepdims=True)

    def error(self, values):
        return np.linalg.norm(self.shares(self.test) @ values - self.wanted) / np.linalg.norm(self.wanted)

    def fit(self, how, count):
        rows = np.unique(choose_rows(self.rng, how, self.queries, self.keys, count))
        shares = self.shares(rows)
        wrong = self.exact(rows) - shares @ self.means
        x, matrix = inverse(shares @ shares.T)
        weighed = x @ wrong
        weighed = weighed + x @ (wrong - matrix @ weighed)
        solved = np.linalg.solve(matrix.astype(np.float64), wrong)
        return self.error(bf16(self.means + shares.T @ weighed)), self.error(self.means + shares.T @ solved)


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("keys", 32768), ("depth", 64), ("classes", 512), ("rows", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seeds", default="1,2,3")
    options = parser.parse_args()
    print("| family | sums over classes | hash | longest | drawn | drawn, f64 |\n|---|---:|---:|---:|---:|---:|")
    for name in MADE:
        found = []
        for seed in map(int, options.seeds.split(",")):
            head = Head(name, options.keys, options.depth, options.classes, seed)
            fits = [head.fit(how, options.rows) for how in ("hash", "longest", "drawn")]
            found.append([head.error(head.means), *(fit[0] for fit in fits), fits[-1][1]])
        print(f"| {name} | " + " | ".join(f"{x:.4f}" for x in np.median(found, 0)) + " |", flush=True)


if __name__ == "__main__":
    main()
