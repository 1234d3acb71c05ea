# RUN: %python %s
"""Kernels that let few keys stand for many where a sample allows it, head by head, against NumPy in float64."""
import json
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import plans
from plans import families

D = 16
SCALE = D ** -0.5
FROM = "--low-rank=512"

PLAIN = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : T[H, N, D] within %s relative sampled
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
# Heads that share keys, two results, keys whose axes stand in another order.
GROUPED = """
kernel k[H, G, N, M; T : float = f32, D = 16, E = 24](Q : T[H, N, D], K : T[M, G, D], V : T[G, M, E], scale : f32)
    -> (O : T[H, N, E] within %s relative sampled, lse : f32[H, N] within 1e-2 relative sampled)
  require H %% G == 0
{
  Kh  = [h < H, j < M, d < D] K[j, h / (H/G), d]
  Vh  = [h < H] V[h / (H/G)]
  S   = (Q +.* transpose(Kh)) * scale
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""
# No exponential: any function of the product, summed up with no denominator; the largest product.
SQUARES = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> (O : T[H, N, D] within %s relative sampled, most : f32[H, N] within 1e-2 relative sampled)
{
  S = (Q +.* transpose(K)) * scale
  O = (S * S / (1.0 + abs(S))) +.* V
  most = max/ S
}
"""


def keys_of(kind, rng, m, d=D):
    """Keys of a kind, and whether few can stand for them."""
    if kind == "repeated":
        return rng.standard_normal((m // 64, d))[rng.integers(0, m // 64, m)]
    if kind == "near":
        return rng.standard_normal((m // 64, d))[rng.integers(0, m // 64, m)] + 0.002 * rng.standard_normal((m, d))
    if kind == "uniform":
        return np.repeat(rng.standard_normal((1, d)), m, 0)
    if kind in ("odd", "strange"):  # with some that are like no others, and with too many such
        keys = keys_of("repeated", rng, m, d)
        others = rng.choice(m, m // (80 if kind == "odd" else 8), replace=False)
        keys[others] = 2 * rng.standard_normal((len(others), d))
        return keys
    if kind == "rare":
        weight = 1000.0 ** (-np.arange(m // 64) / (m // 64 - 1))
        return rng.standard_normal((m // 64, d))[rng.choice(m // 64, m, p=weight / weight.sum())]
    assert kind == "normal"
    return rng.standard_normal((m, d))


def inputs(kinds, n, m, heads=None, seed=0, d=D, e=D):
    rng = np.random.default_rng(seed)
    k = np.stack([keys_of(kind, rng, m, d) for kind in kinds])
    q = rng.standard_normal((heads or len(kinds), n, d))
    v = rng.standard_normal((len(kinds), m, e))
    return [x.astype(np.float32) for x in (q, k, v)]


def scores(q, k):
    q, k = q.astype(np.float64), np.repeat(k.astype(np.float64), len(q) // len(k), axis=0)
    return SCALE * q @ k.transpose(0, 2, 1)


def softmax(s, v):
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    v = np.repeat(v.astype(np.float64), len(s) // len(v), axis=0)
    return p @ v / total, (np.log(total) + top)[..., 0]


def errors(found, exact):
    axes = tuple(range(1, exact.ndim))
    return np.sqrt(((found - exact) ** 2).sum(axes) / (exact ** 2).sum(axes))


class LowRank(unittest.TestCase):

    kernels = {}

    def run_kernel(self, specification, arrays, shapes, *flags):
        key = (specification, flags)
        if key not in self.kernels:
            self.kernels[key] = mt.make_kernel(specification, flags=(FROM, "--decisions", *flags))
        q, k, v = arrays
        heads = q.shape[:1]
        told = {"O_plan": heads}
        for name in shapes:
            told[name + "_estimate"] = (*heads, 1)
        return self.kernels[key].run({"Q": q, "K": k, "V": v, "scale": SCALE}, {**shapes, **told})

    def check(self, title, kinds, run, name, exact, limit):
        delivered = errors(run[name].astype(np.float64), exact)
        for h, kind in enumerate(kinds):
            print(f"{title:10} {name:4} {kind:10} plan {run['O_plan'][h]}  error {delivered[h]:.2e} of {limit:.0e} allowed, "
                  f"estimated {run[name + '_estimate'][h]}")
        self.assertTrue((delivered <= limit).all(), delivered)

    def test_kinds(self):
        """Heads of several kinds in one run; the sizes are multiples of nothing."""
        kinds = ["repeated", "normal", "near", "uniform", "rare", "odd", "strange"]
        for n, m in ((515, 4103), (600, 2900)):
            arrays = inputs(kinds, n, m)
            run = self.run_kernel(PLAIN % 1e-2, arrays, {"O": arrays[0].shape})
            self.check(f"{n}x{m}", kinds, run, "O", softmax(scores(*arrays[:2]), arrays[2])[0], 1e-2)
            self.assertEqual([int(p > 0) for p in run["O_plan"]], [1, 0, 1, 1, 1, 1, 0], m)

    def test_families(self):
        """Those of benchmarks/accuracy: few keys stand for all where keys repeat, and diagonal attention, errors that hide from
        uniform samples and the others stay dense, with the bits that they have without the pass."""
        taken = {"clustered_keys", "low_rank_weights", "uniform"}
        dense = {"diagonal", "hidden_aligned", "hidden_keys", "hidden_rows", "normal"}
        others = {cls.name() for cls in families.Family.__subclasses__()} if mt.TARGET != "device" else {"sinks", "peaked"}
        names = sorted(taken | dense | others)
        arrays = plans.heads(names, 515, 4103, seed=5)
        run = self.run_kernel(PLAIN % 3e-2, arrays, {"O": arrays[0].shape})
        self.check("families", names, run, "O", softmax(scores(*arrays[:2]), arrays[2])[0], 3e-2)
        self.assertEqual(taken, {name for name, plan in zip(names, run["O_plan"]) if plan})
        plain = mt.make_kernel(PLAIN % 3e-2, flags=("--disable-rule=precision",)).run(
            {**dict(zip("QKV", arrays)), "scale": SCALE}, {"O": arrays[0].shape})
        for h, name in enumerate(names):
            if name not in taken:
                self.assertEqual(run["O"][h].tobytes(), plain["O"][h].tobytes(), name)

    def test_few(self):
        """Below the number of rows or keys nothing is tried, and the bits are those without the pass."""
        for n, m in ((511, 600), (600, 511), (0, 600), (600, 0), (1, 1)):
            arrays = inputs(["uniform", "normal"], n, max(m, 1))
            arrays = [arrays[0], arrays[1][:, :m], arrays[2][:, :m]]
            run = self.run_kernel(PLAIN % 1e-2, arrays, {"O": arrays[0].shape})
            self.assertEqual(list(run["O_plan"]), [0, 0], (n, m))
            self.assertTrue(np.isnan(run["O_estimate"]).all(), (n, m))
            plain = mt.make_kernel(PLAIN % 1e-2, flags=("--disable-rule=precision",)).run(
                {"Q": arrays[0], "K": arrays[1], "V": arrays[2], "scale": SCALE}, {"O": arrays[0].shape})
            self.assertEqual(run["O"].tobytes(), plain["O"].tobytes(), (n, m))

    def test_dense_bits(self):
        """A head without near keys has the bits that it has without the pass."""
        arrays = inputs(["normal"] * 2, 520, 1030)
        run = self.run_kernel(PLAIN % 1e-2, arrays, {"O": arrays[0].shape})
        self.assertEqual(list(run["O_plan"]), [0, 0])
        plain = mt.make_kernel(PLAIN % 1e-2, flags=("--disable-rule=precision",)).run(
            {"Q": arrays[0], "K": arrays[1], "V": arrays[2], "scale": SCALE}, {"O": arrays[0].shape})
        self.assertEqual(run["O"].tobytes(), plain["O"].tobytes())

    def test_grouped(self):
        """Heads that share keys, a row length other than that of values, two results."""
        kinds = ["repeated", "normal", "uniform"]
        q, k, v = inputs(kinds, 530, 3100, heads=6, e=24)
        arrays = (q, np.ascontiguousarray(k.transpose(1, 0, 2)), v)
        run = self.run_kernel(GROUPED % 1e-2, arrays, {"O": (6, 530, 24), "lse": (6, 530)})
        exact, lse = softmax(scores(q, k), v)
        kinds = np.repeat(kinds, 2)
        self.check("grouped", kinds, run, "O", exact, 1e-2)
        self.check("grouped", kinds, run, "lse", lse, 1e-2)
        self.assertEqual([int(p > 0) for p in run["O_plan"]], [1, 1, 0, 0, 1, 1])

    def test_any_function(self):
        kinds = ["repeated", "normal", "uniform"]
        arrays = inputs(kinds, 520, 3300)
        run = self.run_kernel(SQUARES % 1e-2, arrays, {"O": arrays[0].shape, "most": arrays[0].shape[:2]})
        s = scores(*arrays[:2])
        self.check("squares", kinds, run, "O", (s * s / (1 + abs(s))) @ arrays[2].astype(np.float64), 1e-2)
        self.check("squares", kinds, run, "most", s.max(-1), 1e-2)
        self.assertEqual([int(p > 0) for p in run["O_plan"]], [1, 0, 1])

    def test_narrow(self):
        """Elements of 16 bits, which tensor cores multiply: classes are found, summed up and used in tiles."""
        kinds = ["repeated", "normal", "near"]
        arrays = inputs(kinds, 520, 3000, d=64, e=64)
        specification = PLAIN.replace("f32, D = 16", "bf16, D = 64")
        run = self.run_kernel(specification % 1e-2, arrays, {"O": arrays[0].shape})
        run["O"] = mt.from_bf16(run["O"])
        q, k, v = (mt.from_bf16(mt.to_bf16(x)) for x in arrays)
        self.check("narrow", kinds, run, "O", softmax(scores(q, k), v)[0], 1e-2)
        self.assertEqual(list(run["O_plan"]), [1, 0, 1])

    def test_wrong_decision(self):
        """A plan that is given is checked where that is asked for."""
        arrays = inputs(["repeated", "near", "normal"], 520, 3300)
        exact = softmax(scores(*arrays[:2]), arrays[2])[0]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "plans.json")
            with open(path, "w") as file:
                json.dump({"plans": {"k.O": [1, 0, 1]}}, file)
            run = self.run_kernel(PLAIN % 1e-2, arrays, {"O": arrays[0].shape}, f"--plans={path}", "--check-plans")
        self.assertEqual(list(run["O_plan"]), [1, 0, 0])
        self.assertTrue((errors(run["O"], exact) <= 1e-2).all())

    def test_hidden(self):
        """Near keys whose few strangers decide the results: what is estimated says so."""
        rng = np.random.default_rng(3)
        q, k, v = inputs(["repeated", "repeated"], 520, 3300)
        k[1, ::97] = 6 * rng.standard_normal((len(k[1, ::97]), D))
        exact = softmax(scores(q, k), v)[0]
        run = self.run_kernel(PLAIN % 1e-2, (q, k, v), {"O": q.shape})
        self.check("hidden", ["repeated", "strangers"], run, "O", exact, 1e-2)
        self.assertEqual(list(run["O_plan"]), [1, 1])  # each of those is a class of its own

    def test_nan(self):
        """A key that is no number makes its head's results what they are without the pass."""
        q, k, v = inputs(["repeated", "repeated"], 520, 3300)
        k[1, 7, 3] = np.nan
        run = self.run_kernel(PLAIN % 1e-2, (q, k, v), {"O": q.shape})
        self.assertEqual(run["O_plan"][1], 0)
        self.assertTrue(np.isnan(run["O"][1]).all())
        self.assertTrue(np.isfinite(run["O"][0]).all())


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main()
