# RUN: %python %s
"""Kernels that choose how many bits their contractions take, head by head, against NumPy in float64.

The families are those of benchmarks/accuracy. What is delivered is printed beside what is allowed, and beside
what the kernel estimated of it."""
import json
import os
import sys
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import plans

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import families  # noqa: E402

LIMIT = 6e-2
D = 16
SCALE = D ** -0.5
# Where 8 bits are too few, a GPU takes 16 (halves.py), of which 6e-2 allows any.
ON_GPU = plans.ON_GPU
LEFT = 2 if ON_GPU else 0

PLAIN = plans.plain("%s relative sampled")
GROUPED = """
kernel k[H, G, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[G, M, D], V : T[G, M, D], scale : f32)
    -> (O : T[H, N, D] within %s relative sampled, lse : f32[H, N] within 1e-2 relative sampled)
  require H %% G == 0
{
  Kh  = [h < H] K[h / (H/G)]
  Vh  = [h < H] V[h / (H/G)]
  S   = mask([_, i, j] j <= i + (M - N), (Q +.* transpose(Kh)) * scale)
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""


SHARED = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], scale : f32) -> O : f32[H, N, D] within %s relative sampled
{ O = softmax((Q +.* transpose(K)) * scale) +.* K }
"""


def attention(q, k, v, visible=None):
    """O and the log-sum-exp; a row without keys has 0 and −∞."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = SCALE * q @ k.transpose(0, 2, 1)
    if visible is not None:
        s = np.where(visible, s, -np.inf)
    top = np.maximum(s.max(-1, keepdims=True, initial=-np.inf), -1e300)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, p @ v / total, 0), (np.log(total) + top)[..., 0]


def heads(names, n, m, d=D, seed=0):
    made = [families.make(name, n, m, d, seed=seed, head=h).arrays() for h, name in enumerate(names)]
    return [np.stack(arrays) for arrays in zip(*made)]


def errors(found, exact):
    """Relative L2 errors by head, over what is finite."""
    axes = tuple(range(1, exact.ndim))
    off = np.where(np.isfinite(exact), found.astype(np.float64) - np.where(np.isfinite(exact), exact, 0), 0)
    size = np.where(np.isfinite(exact), exact, 0)
    norm = np.sqrt((size ** 2).sum(axes))
    return np.sqrt((off ** 2).sum(axes)) / np.where(norm > 0, norm, 1)


class Precision(unittest.TestCase):

    kernels = {}

    @classmethod
    def kernel(cls, specification, *flags):
        """One compilation for all sizes and inputs."""
        key = (specification, flags)
        if key not in cls.kernels:
            cls.kernels[key] = mt.make_kernel(specification, flags=flags)
        return cls.kernels[key]

    def run_kernel(self, specification, arrays, *flags):
        kernel = self.kernel(specification, *flags)
        q, k, v = arrays
        count = 3 if ON_GPU or "--plans" in flags else 1
        shapes = {"O": q.shape, "lse": q.shape[:2], "O_plan": q.shape[:1],
                  "O_estimate": (len(q), count), "lse_estimate": (len(q), count)}
        return kernel.run({"Q": q, "K": k, "V": v, "scale": SCALE}, shapes)

    def check(self, title, names, run, exact, epsilon, output="O"):
        delivered = errors(run[output], exact)
        for h, name in enumerate(names):
            estimates = ", ".join(f"{e:.1e}" for e in run[output + "_estimate"][h])
            print(f"{title:12} {output:4} {name:18} plan {run['O_plan'][h]}  error {delivered[h]:.2e} of {epsilon:.0e} "
                  f"allowed, estimated {estimates}")
        self.assertTrue((delivered <= epsilon).all(), delivered)
        return delivered

    def test_families(self):
        """Heads of several plans in one run."""
        names = ["normal", "offset_channels", "large_scores", "coherent_values", "small_signal", "hidden_rows"]
        arrays = heads(names, 512, 512)
        run = self.run_kernel(PLAIN % LIMIT, arrays, "--decisions")
        self.check("plain", names, run, attention(*arrays)[0], LIMIT)
        self.assertEqual(list(run["O_plan"]), [1, 1, LEFT, 1, LEFT, LEFT])

    def test_large_keys(self):
        """Keys that are 300 times larger, one of them or half: the few rows in which keys weigh about as much as such a one
        are off by much, and samples seldom have them, so that 8 bits are not taken whatever the sample says."""
        rng = np.random.default_rng(3)
        q, k = (rng.standard_normal((16, 600, D)).astype(np.float32) for _ in range(2))
        k[:10, 5] *= 300
        k[10:12, :300] *= 300
        run = self.kernel(SHARED % LIMIT, "--decisions").run(
            {"Q": q, "K": k, "scale": SCALE}, {"O": q.shape, "O_plan": (16,), "O_estimate": (16, 3 if ON_GPU else 1)})
        self.check("shared", [f"head {h}" for h in range(16)], run, attention(q, k, k)[0], LIMIT)
        self.assertTrue(np.isinf(run["O_estimate"][:12, 0]).all())
        self.assertTrue(np.isfinite(run["O_estimate"][12:, 0]).all())
        self.assertNotIn(1, run["O_plan"][:12])
        self.assertEqual(list(run["O_plan"][12:]), [1] * 4)

    def test_grouped_causal(self):
        """Heads that share keys, rows without keys, sizes that no tile divides, two results."""
        for n, m in ((300, 517), (401, 257)):
            names = ["normal", "diffuse", "peaked", "large_scores"]
            q = heads(names, n, m)[0]
            k, v = heads(["normal", "huge_key"], n, m, seed=5)[1:]
            visible = np.arange(m) <= np.arange(n)[:, None] + (m - n)
            exact, lse = attention(q, k, v, visible)
            run = self.run_kernel(GROUPED % LIMIT, (q, k, v), "--decisions")
            title = f"{n} x {m}"
            self.check(title, names, run, exact, LIMIT)
            self.check(title, names, run, lse, 1e-2, output="lse")
            self.assertTrue((np.isneginf(run["lse"]) == np.isneginf(lse)).all())
            self.assertIn(1, run["O_plan"])

    def test_few(self):
        """Few rows, few keys, none: nothing is estimated, and the bits are those without the pass."""
        for n, m in ((255, 300), (300, 255), (0, 300), (300, 0)):
            arrays = heads(["normal", "peaked"], max(n, 1), max(m, 1))
            arrays = [arrays[0][:, :n], arrays[1][:, :m], arrays[2][:, :m]]
            run = self.run_kernel(PLAIN % LIMIT, arrays, "--decisions")
            self.assertEqual(list(run["O_plan"]), [0, 0], (n, m))
            self.assertTrue(np.isnan(run["O_estimate"]).all(), (n, m))
            plain = self.run_kernel(PLAIN % LIMIT, arrays, "--disable-rule=precision")
            self.assertEqual(run["O"].tobytes(), plain["O"].tobytes(), (n, m))

    def test_few_masked(self):
        """The same with a mask, whose tiles are listed beforehand."""
        for n, m in ((100, 300), (257, 255), (1, 256)):
            q = heads(["normal"] * 2, n, m)[0]
            k, v = heads(["normal"], n, m)[1:]
            run = self.run_kernel(GROUPED % LIMIT, (q, k, v), "--decisions")
            self.assertEqual(list(run["O_plan"]), [0, 0], (n, m))
            exact = attention(q, k, v, np.arange(m) <= np.arange(n)[:, None] + (m - n))[0]
            self.assertTrue((errors(run["O"], exact) < 1e-5).all(), (n, m))

    def test_small_values(self):
        """Errors of results whose squares f32 does not hold are not estimated."""
        arrays = heads(["large_scores", "normal"], 300, 300)
        arrays[2] = (arrays[2] * 1e-22).astype(np.float32)
        run = self.run_kernel(PLAIN % LIMIT, arrays, "--decisions")
        self.assertEqual(list(run["O_plan"]), [0, 0])
        self.assertTrue((errors(run["O"], attention(*arrays)[0]) < 1e-4).all())

    def test_one_array(self):
        """Rows that are the keys are left alone: they would be rounded less the keys' mean. 16 bits take them."""
        specification = """
kernel k[H, N; T : float = f32, D = 16](X : T[H, N, D], V : T[H, N, D], scale : f32)
    -> O : T[H, N, D] within 6e-2 relative sampled
{ O = softmax((X +.* transpose(X)) * scale) +.* V }
"""
        x, _, v = heads(["offset_channels"] * 2, 300, 300)
        run = self.kernel(specification).run({"X": x, "V": v, "scale": SCALE}, {"O": x.shape})
        self.assertTrue((errors(run["O"], attention(x, x, v)[0]) < (LIMIT if ON_GPU else 1e-4)).all())

    def test_tables(self):
        """A table is kept to, also one that is wrong, unless it is checked: then it gives the bits of decisions that are the same."""
        arrays = heads(["normal", "small_signal", "diffuse"], 300, 320)
        exact = attention(*arrays)[0]
        first = self.run_kernel(PLAIN % LIMIT, arrays, "--decisions")
        self.assertEqual(list(first["O_plan"]), [1, LEFT, 1])
        with tempfile.TemporaryDirectory() as directory:
            table = os.path.join(directory, "plans.json")
            with open(table, "w") as file:
                json.dump({"plans": {"k.O": [1, 1, 0]}}, file)
            wrong = self.run_kernel(PLAIN % LIMIT, arrays, "--plans", table)
            found = self.run_kernel(PLAIN % LIMIT, arrays, "--plans", table, "--check-plans", "--decisions")
        delivered = errors(wrong["O"], exact)
        print("wrong table: errors", delivered)
        # Of a table the scales are of all rows, not of a part that the sample checks.
        self.assertLess(delivered[0], LIMIT)
        self.assertGreater(delivered[1], LIMIT)
        self.assertLessEqual(delivered[2], 1e-5)
        # Of a table the plans are a GPU's.
        self.assertEqual(list(found["O_plan"]), [1, 2, 0])
        self.assertEqual(first["O"][:2 if ON_GPU else 1].tobytes(), found["O"][:2 if ON_GPU else 1].tobytes())
        self.assertEqual(wrong["O"][2].tobytes(), found["O"][2].tobytes())

    def test_beyond(self):
        """One element that is much larger than those that a scale was found from, in a row, a key or a value."""
        n, m = 600, 1100
        q, k, v = heads(["normal"] * 5, n, m)
        # No 512th of the rows, nor of the keys, and none of the first 8 of a 128th of the keys.
        seen = {s * m // 512 for s in range(512)} & {13}
        self.assertFalse(seen or {s * n // 512 for s in range(512)} & {6})
        self.assertFalse(any(p * m // 128 <= 16 < p * m // 128 + 8 for p in range(128)))
        q[1, 6, 3] = 3 * np.abs(q[1]).max()
        k[2, 13, 3] = 3 * np.abs(k[2]).max()
        v[3, 16, 3] = 8 * np.abs(v[3]).max()
        v[4, 16, 3] = np.nan
        run = self.run_kernel(PLAIN % LIMIT, (q, k, v), "--decisions")
        if ON_GPU:
            self.assertEqual(list(run["O_plan"]), [1, LEFT, LEFT, LEFT, 0])
        exact = attention(q, k, v)[0]
        self.assertTrue((errors(run["O"][:4], exact[:4]) < LIMIT).all())
        self.assertTrue(np.isnan(run["O"][4, :, 3]).all())

    def test_not_finite(self):
        """An infinity or a NaN among the keys of a head leaves it as it is written."""
        arrays = heads(["normal", "normal", "normal"], 300, 300)
        arrays[1][0, 7, 3] = np.nan
        arrays[1][1, 7, 3] = np.inf
        run = self.run_kernel(PLAIN % LIMIT, arrays, "--decisions")
        self.assertEqual(list(run["O_plan"]), [0, 0, 1])
        plain = self.run_kernel(PLAIN % LIMIT, arrays, "--disable-rule=precision")
        self.assertEqual(run["O"][:2].tobytes(), plain["O"][:2].tobytes())


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
