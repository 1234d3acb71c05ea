# RUN: %python %s
"""Few keys for many where rows see the keys up to one that moves with them, against NumPy in float64."""
import json
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt
from low_rank import FROM, SCALE, errors, inputs, scores

CAUSAL = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : T[H, N, D] within 1e-2 relative sampled
{ O = softmax(mask([_, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)) +.* V }
"""
# An offset per head that is read, heads that share keys, two results, keys whose axes stand in another order.
GROUPED = """
kernel k[H, G, N, M; T : float = f32, D = 16, E = 24](
    Q : T[H, N, D], K : T[M, G, D], V : T[G, M, E], scale : f32, past : i32[H])
    -> (O : T[H, N, E] within 1e-2 relative sampled, lse : f32[H, N] within 1e-2 relative sampled)
  require H % G == 0
{
  Kh  = [h < H, j < M, d < D] K[j, h / (H/G), d]
  Vh  = [h < H] V[h / (H/G)]
  S   = mask([h, i, j] j - past[h] <= i, (Q +.* transpose(Kh)) * scale)
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""
# No exponential: sums and an extreme of any function; keys in front of the row's own, without it.
SQUARES = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> (O : T[H, N, D] within 1e-2 relative sampled, most : f32[H, N] within 1e-2 relative sampled)
{
  S = (Q +.* transpose(K)) * scale
  O = mask([_, i, j] i + (M - N) > j, S * S / (1.0 + abs(S))) +.* V
  most = max/ mask([_, i, j] i + (M - N) > j, S)
}
"""


def seen(s, offset):
    """Scores of keys j <= i + offset, of all others minus infinity; the offset may have one number per head."""
    i, j = np.arange(s.shape[1])[:, None], np.arange(s.shape[2])
    return np.where(j <= i + np.reshape(offset, (-1, 1, 1)), s, -np.inf)


def softmax(s, v):
    """Of rows that see nothing 0, and minus infinity for the logarithm."""
    top = s.max(-1, keepdims=True)
    p = np.exp(s - np.where(np.isinf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    v = np.repeat(v.astype(np.float64), len(s) // len(v), axis=0)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    return p @ v / np.where(total == 0, 1, total), lse


class Causal(unittest.TestCase):

    kernels = {}

    def run_kernel(self, specification, arrays, shapes, *flags, **more):
        key = (specification, flags)
        if key not in self.kernels:
            self.kernels[key] = mt.make_kernel(specification, flags=(FROM, "--decisions", *flags))
        q, k, v = arrays
        told = {"O_plan": q.shape[:1]}
        for name in shapes if not flags or "--check-plans" in flags else ():
            told[name + "_estimate"] = (len(q), 1)
        return self.kernels[key].run({"Q": q, "K": k, "V": v, "scale": SCALE, **more}, {**shapes, **told})

    def check(self, title, run, name, exact, plans, limit=1e-2):
        delivered = errors(run[name].astype(np.float64), exact)
        print(f"{title:10} {name:4} plans {run['O_plan']}  errors {delivered} of {limit:.0e} allowed, "
              f"estimated {run[name + '_estimate'][:, 0]}")
        self.assertTrue((delivered <= limit).all(), delivered)
        self.assertEqual([int(p > 0) for p in run["O_plan"]], plans, title)
        self.assertEqual([int(e <= limit) for e in run[name + "_estimate"][:, 0]], plans, title)

    def test_kinds(self):
        """As many rows as keys; rows behind a long past; rows that see nothing; sizes that no block divides."""
        kinds, plans = ["repeated", "normal", "near", "uniform", "rare", "odd", "strange"], [1, 0, 1, 1, 1, 1, 0]
        for n, m in ((2900, 2900), (515, 4103), (4200, 3000)):
            arrays = inputs(kinds, n, m)
            run = self.run_kernel(CAUSAL, arrays, {"O": arrays[0].shape})
            exact = softmax(seen(scores(*arrays[:2]), m - n), arrays[2])[0]
            self.check(f"{n}x{m}", run, "O", exact, plans)
            self.assertTrue((run["O"][:, :max(n - m, 0)] == 0).all())  # of no key

    def test_order(self):
        """Equal keys stand together, so that most classes are not there for most rows, and scores are large: what a
        row does not see must not be the reference of its exponentials."""
        q, k, v = inputs(["repeated"] * 2, 2900, 2900, seed=1)
        q[1] *= 40
        for h in range(2):
            k[h] = k[h][np.lexsort(k[h].T)]
        run = self.run_kernel(CAUSAL, (q, k, v), {"O": q.shape})
        s = scores(q, k)
        self.assertGreater(s[1].max(), 200)  # e^200 is no f32
        self.check("order", run, "O", softmax(seen(s, 0), v)[0], [1, 1])

    def test_few(self):
        """Fewer of rows or keys than are asked for: the bits are as without the pass."""
        for n, m in ((511, 2000), (2000, 511), (0, 600), (1, 1)):
            arrays = inputs(["uniform", "normal"], n, m)
            run = self.run_kernel(CAUSAL, arrays, {"O": arrays[0].shape})
            self.assertEqual(list(run["O_plan"]), [0, 0], (n, m))
            self.assertTrue(np.isnan(run["O_estimate"]).all(), (n, m))
            plain = mt.make_kernel(CAUSAL, flags=("--disable-rule=precision",)).run(
                {"Q": arrays[0], "K": arrays[1], "V": arrays[2], "scale": SCALE}, {"O": arrays[0].shape})
            self.assertEqual(run["O"].tobytes(), plain["O"].tobytes(), (n, m))

    def test_grouped(self):
        """Offsets of heads, one of which lets rows see all keys; heads that share keys; two results."""
        past = np.array([0, 700, 2500, 40, 3100, 1], np.int32)
        q, k, v = inputs(["repeated", "normal", "uniform"], 700, 3100, heads=6, e=24)
        arrays = (q, np.ascontiguousarray(k.transpose(1, 0, 2)), v)
        run = self.run_kernel(GROUPED, arrays, {"O": (6, 700, 24), "lse": (6, 700)}, past=past)
        exact, lse = softmax(seen(scores(q, k), past), v)
        self.check("grouped", run, "O", exact, [1, 1, 0, 0, 1, 1])
        self.check("grouped", run, "lse", lse, [1, 1, 0, 0, 1, 1])

    def test_long_blocks(self):
        """Blocks of more rows than there are keys: in later ones rows see all, or in all but the last one none."""
        past = np.array([0, -8000, 3, 0], np.int32)
        q, k, v = inputs(["uniform", "repeated", "repeated", "normal"], 8500, 520, e=24)
        arrays = (q, np.ascontiguousarray(k.transpose(1, 0, 2)), v)
        run = self.run_kernel(GROUPED, arrays, {"O": (4, 8500, 24), "lse": (4, 8500)}, past=past)
        exact, lse = softmax(seen(scores(q, k), past), v)
        self.check("long", run, "O", exact, [1, 1, 1, 0])
        self.assertTrue((run["lse"][1, :8000] == -np.inf).all())
        run["lse"][1, :8000] = lse[1, :8000] = 0
        self.check("long", run, "lse", lse, [1, 1, 1, 0])

    def test_any_function(self):
        arrays = inputs(["repeated", "normal", "uniform"], 1200, 3300)
        run = self.run_kernel(SQUARES, arrays, {"O": arrays[0].shape, "most": arrays[0].shape[:2]})
        s = scores(*arrays[:2])
        masked = seen(s, 3300 - 1200 - 1)
        squares = np.where(np.isinf(masked), 0, s * s / (1 + abs(s)))
        self.check("squares", run, "O", squares @ arrays[2].astype(np.float64), [1, 0, 1])
        self.check("squares", run, "most", masked.max(-1), [1, 0, 1])

    def test_narrow(self):
        """Elements of 16 bits, which tensor cores multiply, with rows that see nothing and with a past."""
        specification = CAUSAL.replace("f32, D = 16", "bf16, D = 64")
        for n, m in ((2200, 1300), (530, 3000)):
            arrays = inputs(["repeated", "normal", "near"], n, m, d=64, e=64)
            run = self.run_kernel(specification, arrays, {"O": arrays[0].shape})
            run["O"] = mt.from_bf16(run["O"])
            q, k, v = (mt.from_bf16(mt.to_bf16(x)) for x in arrays)
            self.check("narrow", run, "O", softmax(seen(scores(q, k), m - n), v)[0], [1, 0, 1])

    def test_wrong_decision(self):
        """A plan that is given is checked where that is asked for, and taken where it is not."""
        arrays = inputs(["repeated", "near", "normal"], 2900, 2900)
        exact = softmax(seen(scores(*arrays[:2]), 0), arrays[2])[0]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "plans.json")
            with open(path, "w") as file:
                json.dump({"plans": {"k.O": [1, 0, 1]}}, file)
            run = self.run_kernel(CAUSAL, arrays, {"O": arrays[0].shape}, f"--plans={path}", "--check-plans")
        self.assertEqual(list(run["O_plan"]), [1, 0, 0])
        self.assertTrue((errors(run["O"], exact) <= 1e-2).all())

    def test_hidden(self):
        """Values that few classes cannot have: of the second head those of equal keys differ late, where rows see them."""
        q, k, v = inputs(["repeated", "near"], 2900, 2900)
        k[1, 1450:] += 0.3 * np.random.default_rng(5).standard_normal(k[1, 1450:].shape).astype(np.float32)
        exact = softmax(seen(scores(q, k), 0), v)[0]
        run = self.run_kernel(CAUSAL, (q, k, v), {"O": q.shape})
        self.assertEqual(list(run["O_plan"]), [1, 0])
        self.assertTrue((errors(run["O"], exact) <= 1e-2).all())

    def test_nan(self):
        """A key that is no number makes no results that do not see it what they are not."""
        q, k, v = inputs(["repeated", "repeated"], 2900, 2900)
        exact = softmax(seen(scores(q, k), 0), v)[0]
        k[1, 2000, 3] = np.nan
        run = self.run_kernel(CAUSAL, (q, k, v), {"O": q.shape})
        self.assertEqual(list(run["O_plan"]), [1, 0])
        self.assertTrue(np.isnan(run["O"][1, 2000:]).all())
        self.assertTrue((errors(run["O"][:, :1900], exact[:, :1900]) <= 1e-2).all())

    def test_nan_value(self):
        """The same of a value; the plan is given, so that the sample has no say."""
        q, k, v = inputs(["repeated"], 2900, 2900)
        exact = softmax(seen(scores(q, k), 0), v)[0]
        v[0, 2000, 3] = np.nan
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "plans.json")
            with open(path, "w") as file:
                json.dump({"plans": {"k.O": [1]}}, file)
            run = self.run_kernel(CAUSAL, (q, k, v), {"O": q.shape}, f"--plans={path}")
        self.assertEqual(list(run["O_plan"]), [1])
        self.assertTrue(np.isnan(run["O"][0, 2000:, 3]).all())
        self.assertTrue((errors(run["O"][:, :1900], exact[:, :1900]) <= 1e-2).all())


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main()
