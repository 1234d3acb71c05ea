# RUN: %python %s
"""Kernels that take few keys for many at some heads, fewer bits at others, and neither at the rest, within one tolerance,
against NumPy in float64."""
import json
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import plans as plan_support

D = 16
SCALE = D ** -0.5
LIMIT = 6e-2
FLAGS = ("--low-rank=512", "--spend=256")
# A CPU has scores of 8 bits only, a GPU 16 bits and sums of two floats too.
ON_GPU = mt.TARGET in ("device", "cuda")
LEFT = 3 if ON_GPU else 0

PLAIN = f"""
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within {LIMIT} relative sampled
{{ O = softmax((Q +.* transpose(K)) * scale) +.* V }}
"""
# Heads that share keys, two results.
GROUPED = f"""
kernel k[H, G, N, M; D = 16](Q : f32[H, N, D], K : f32[G, M, D], V : f32[G, M, D], scale : f32)
    -> (O : f32[H, N, D] within {LIMIT} relative sampled, lse : f32[H, N] within 1e-2 relative sampled)
  require H % G == 0
{{
  S   = (Q +.* transpose([h < H] K[h / (H/G)])) * scale
  O   = softmax(S) +.* [h < H] V[h / (H/G)]
  lse = logsumexp(S)
}}
"""


def head(kind, rng, n, m):
    """Rows, keys and values of one head."""
    q, k, v = (rng.standard_normal((x, D)) for x in (n, m, m))
    if kind == "repeated":
        k = rng.standard_normal((16, D))[rng.integers(0, 16, m)]
    elif kind == "large":  # scores of which 8 bits lose too much
        q, k = 6 * q, 6 * k
    elif kind == "tiny":  # values of whose squares f32 holds nothing, so that no sample says anything
        v = v * 1e-22
    else:
        assert kind == "normal"
    return q, k, v


def inputs(kinds, n, m):
    rng = np.random.default_rng(1)
    return [np.stack(x).astype(np.float32) for x in zip(*(head(kind, rng, n, m) for kind in kinds))]


def attention(q, k, v, visible=True):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = np.where(visible, SCALE * q @ k.transpose(0, 2, 1), -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    return p @ v / total, (np.log(total) + top)[..., 0]


def errors(found, exact):
    axes = tuple(range(1, exact.ndim))
    return np.sqrt(((found.astype(np.float64) - exact) ** 2).sum(axes) / (exact ** 2).sum(axes))


class SharedBudget(unittest.TestCase):

    kernels = {}

    @classmethod
    def run_kernel(cls, specification, arrays, *flags, plans=4 if ON_GPU else 2):
        key = (specification, flags)
        if key not in cls.kernels:
            # Of a CPU that has no plan of bf16.
            settings = {"processor": plan_support.without_bf16()} if mt.TARGET == "cpu" else {}
            cls.kernels[key] = mt.make_kernel(specification, flags=flags, **settings)
        q, k, v = arrays
        shapes = {"O": q.shape, "lse": q.shape[:2], "O_plan": q.shape[:1], "O_estimate": (len(q), plans),
                  "lse_estimate": (len(q), plans)}
        return cls.kernels[key].run({"Q": q, "K": k, "V": v, "scale": SCALE}, shapes)

    def check(self, kinds, run, exact, limit=LIMIT, output="O"):
        """Every head is within the tolerance, by an estimate of its own plan that is too."""
        delivered = errors(run[output], exact)
        for h, kind in enumerate(kinds):
            estimates = run[output + "_estimate"][h]
            print(f"{output:4} {kind:10} plan {run['O_plan'][h]}  error {delivered[h]:.2e} of {limit:.0e} allowed, estimated",
                  ", ".join(f"{e:.1e}" for e in estimates))
            if run["O_plan"][h]:
                self.assertLessEqual(estimates[run["O_plan"][h] - 1], limit)
        self.assertTrue((delivered <= limit).all(), delivered)

    def test_kinds(self):
        """Few keys come first, then fewer bits, then the kernel as written."""
        kinds = ["repeated", "normal", "large", "tiny"]
        arrays = inputs(kinds, 520, 2060)
        run = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions")
        self.check(kinds, run, attention(*arrays)[0])
        self.assertEqual(list(run["O_plan"]), [1, 2, LEFT, 0])
        # What the first pass takes the second one does not look at.
        self.assertTrue(np.isnan(run["O_estimate"][0, 1:]).all())
        self.assertFalse(np.isnan(run["O_estimate"][1:, 1:]).any())
        self.assertTrue(np.isnan(run["O_estimate"][1:3, 0]).all())
        # Each head has the bits that it has where the pass that took it is alone, or none.
        few = self.run_kernel(PLAIN, arrays, FLAGS[0])
        bits = self.run_kernel(PLAIN, arrays, FLAGS[1])
        none = self.run_kernel(PLAIN, arrays, "--disable-rule=precision")
        for h, alone in enumerate((few, bits, bits, none)):
            self.assertEqual(run["O"][h].tobytes(), alone["O"][h].tobytes(), kinds[h])
        self.assertNotEqual(run["O"][0].tobytes(), none["O"][0].tobytes())
        self.assertNotEqual(run["O"][1].tobytes(), none["O"][1].tobytes())

    def test_sizes(self):
        """Each pass has sizes of its own from which it is tried."""
        kinds = ["repeated", "normal"]
        for n, m, plans in ((300, 2060, [2, 2]), (520, 400, [2, 2]), (200, 2060, [0, 0]), (0, 300, [0, 0]), (520, 1100, [1, 2])):
            arrays = [x[:, :size] for x, size in zip(inputs(kinds, max(n, 1), m), (n, m, m))]
            run = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions")
            self.assertEqual(list(run["O_plan"]), plans, (n, m))
            if n:
                self.check(kinds, run, attention(*arrays)[0])

    def test_few_keys_from_fewer(self):
        """Where few keys are tried and fewer bits are not."""
        kinds = ["repeated", "normal"]
        arrays = inputs(kinds, 520, 2060)
        run = self.run_kernel(PLAIN, arrays, FLAGS[0], "--spend=4096", "--decisions")
        self.check(kinds, run, attention(*arrays)[0])
        self.assertEqual(list(run["O_plan"]), [1, 0])
        self.assertTrue(np.isnan(run["O_estimate"][:, 1:]).all())

    def test_grouped(self):
        """Heads that share keys, of which one takes few of them and another one does not."""
        kinds = ["repeated", "repeated", "noisy, short rows", "noisy", "normal", "normal"]
        q, k, v = inputs(["repeated"] * 6, 520, 2060)
        k, v = k[:3], v[:3]
        rng = np.random.default_rng(2)
        k[1] += (0.02 * rng.standard_normal(k[1].shape)).astype(np.float32)
        k[2] = rng.standard_normal(k[2].shape)
        q[2] *= 0.2
        run = self.run_kernel(GROUPED, (q, k, v), *FLAGS, "--decisions")
        exact, lse = attention(q, k, v)
        self.check(kinds, run, exact)
        self.check(kinds, run, lse, 1e-2, "lse")
        self.assertEqual(list(run["O_plan"]), [1, 1, 1, 2, 2, 2])

    @unittest.skipUnless(os.path.exists(os.path.join(mt.BINARY_ROOT, "bin", "moa-run")), "moa-run, which calibrates, is not here")
    def test_tables(self):
        """A table has the plans of both passes; one that is wrong is kept to, unless it is checked."""
        kinds = ["repeated", "normal", "large", "tiny", "repeated"]
        arrays = inputs(kinds, 520, 2060)
        exact = attention(*arrays)[0]
        with tempfile.TemporaryDirectory() as directory:
            path = lambda name: os.path.join(directory, name)
            with open(path("k.moa"), "w", encoding="utf-8") as file:
                file.write(PLAIN)
            words = [f"scale={SCALE!r}"]
            for name, array in zip("QKV", arrays):
                np.save(path(name + ".npy"), array)
                words.append(f"{name}={path(name + '.npy')}")
            made = mt.tool("moa-run", path("k.moa"), *FLAGS, *words, "--calibrate", path("plans.json"))
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(path("plans.json"), encoding="utf-8") as file:
                found = json.load(file)
            # Those of a file are a GPU's.
            self.assertEqual(found["plans"], {"k.O": [1, 2, 3, 0, 1]})
            self.assertEqual([text[:7] for text in found["meaning"]["k.O"]], [f"plan {p}:" for p in (1, 2, 3, 4)])
            kept = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions", "--plans", path("plans.json"))
            self.assertEqual(list(kept["O_plan"]), [1, 2, 3, 0, 1])
            self.assertNotIn("O_estimate", kept)
            self.assertTrue((errors(kept["O"], exact) <= LIMIT).all())

            def given(name, plans):
                with open(path(name), "w", encoding="utf-8") as file:
                    json.dump({"plans": {"k.O": plans}}, file)
                return "--plans", path(name)

            wrong = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions", *given("wrong.json", [2, 0, 2, 0]))
            self.assertEqual(list(wrong["O_plan"]), [2, 0, 2, 0, 0])
            delivered = errors(wrong["O"], exact)
            self.assertGreater(delivered[2], LIMIT)
            self.assertLess(delivered[1], 1e-5)
            checked = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions", *given("checked.json", [1, 1, 2, 1, 2]),
                                      "--check-plans", plans=4)
            self.check(kinds, checked, exact)
            self.assertEqual(list(checked["O_plan"]), [1, 2, 3, 0, 2])
            # Plan 3 is none of few keys alone, and 5 is none of both.
            for flags, number, most in (((FLAGS[0],), 2, 1), (FLAGS, 5, 4)):
                refused = mt.tool("moa-codegen", path("k.moa"), *flags, *given("none.json", [0, number]), "-o", path("k.o"))
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(f"there is no plan '{number}' for 'O'; there are 0 to {most}", refused.stderr)

    def test_not_finite(self):
        """A NaN or an infinity among the keys of a head leaves it as it is written."""
        arrays = inputs(["repeated", "normal", "normal", "repeated"], 520, 2060)
        arrays[1][0, 7, 3] = np.nan
        arrays[1][1, 7, 3] = np.inf
        run = self.run_kernel(PLAIN, arrays, *FLAGS, "--decisions")
        self.assertEqual(list(run["O_plan"]), [0, 0, 2, 1])
        plain = self.run_kernel(PLAIN, arrays, "--disable-rule=precision")
        self.assertEqual(run["O"][:2].tobytes(), plain["O"][:2].tobytes())


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
