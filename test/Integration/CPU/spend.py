# RUN: %python %s
"""Scores in 8 bits, or scores and sums in bf16, where speed is asked for on a CPU (--spend), head by head, against NumPy in
float64."""
import unittest

import numpy as np

import moa_testing as mt
import plans
import shared_budget
from plans import errors

LIMIT, D = 3e-2, 64
PLAIN = """kernel k[H, N, M; D = 64](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within 3e-2 relative sampled
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
GROUPED = plans.grouped(d=D) % "3e-2 relative sampled"


def attention(q, k, v, visible=True):
    return plans.attention(q, k, v, D ** -0.5, visible)[0]


def heads(names, n, m):
    return plans.heads(names, n, m, D, seed=0)


# It has dot products of bytes and none of bf16.
BYTES = "cascadelake"


def has_byte_dots():
    return plans.without_bf16() == BYTES


def has_bf16_dots():
    return {"amx_tile", "amx_bf16"} <= plans.processor_words() or {"AuthenticAMD", "avx512_bf16"} <= plans.processor_words()


@unittest.skipIf(mt.TARGET != "cpu", "about plans for CPUs")
class Spend(unittest.TestCase):
    processor = plans.without_bf16() if mt.TARGET == "cpu" else None

    def run_kernel(self, specification, arrays, *flags):
        q, k, v = arrays
        kernel = mt.Kernel(specification, flags=flags, processor=self.processor)
        return kernel.run({"Q": q, "K": k, "V": v, "scale": D ** -0.5},
                          {"O": q.shape, "O_plan": q.shape[:1], "O_estimate": (len(q), 1)})

    def test_heads(self):
        """Heads that take 8 bits, and heads that do not, which have the bits of the kernel as written."""
        names = ["normal", "offset_channels", "large_scores", "diffuse", "small_signal"]
        arrays = heads(names, 300, 517)
        run = self.run_kernel(PLAIN, arrays, "--spend=256", "--decisions")
        found = errors(run["O"], attention(*arrays))
        for name, plan, estimate, error in zip(names, run["O_plan"], run["O_estimate"][:, 0], found):
            print(f"{name:18} plan {plan}  error {error:.2e} of {LIMIT:.0e} allowed, estimated {estimate:.2e}")
        self.assertTrue((found <= LIMIT).all(), found)
        self.assertEqual(list(run["O_plan"]), [1, 1, 0, 1, 0])
        self.assertTrue((found[run["O_plan"] == 1] > 1e-4).all(), found)
        plain = self.run_kernel(PLAIN, arrays)
        for h in np.flatnonzero(run["O_plan"] == 0):
            self.assertEqual(run["O"][h].tobytes(), plain["O"][h].tobytes(), names[h])

    def test_rows_of_zeros(self):
        """A row of zeros is the smallest of its part, not one that a sample takes for the largest."""
        q, k, v = heads(["normal"] * 24, 300, 333)
        rng = np.random.default_rng(5)
        q = (q * np.exp(1.2 * rng.standard_normal(q.shape[:2]))[..., None]).astype(np.float32)
        runs = {}
        for padding in (0, 1e-20):
            padded = q.copy()
            padded[:, ::2] *= np.float32(padding)
            runs[padding] = run = self.run_kernel(PLAIN.replace("3e-2", "1e-2"), (padded, k, v), "--spend=256", "--decisions")
            found = errors(run["O"], attention(padded, k, v))
            self.assertTrue((found <= 1e-2).all(), found)
        self.assertEqual(list(runs[0]["O_plan"]), list(runs[1e-20]["O_plan"]))
        np.testing.assert_allclose(runs[0]["O_estimate"], runs[1e-20]["O_estimate"], rtol=1e-3)

    def test_factor_of_the_row(self):
        """Rows are compared by what their scores are, with a factor beside the sum."""
        text = PLAIN.replace("scale : f32)", "scale : f32, t : f32[H, N])").replace("* scale", "* [h, i, _] t[h, i]")
        q, k, v = heads(["normal"] * 24, 300, 333)
        t = np.full(q.shape[:2], D ** -0.5, np.float32)
        t[:, 77] *= 40  # No row that a hash picks in every head.
        plain = mt.Kernel(PLAIN, flags=("--spend=256", "--decisions"), processor=self.processor)
        factor = mt.Kernel(text, flags=("--spend=256", "--decisions"), processor=self.processor)
        outputs = {"O": q.shape, "O_plan": q.shape[:1], "O_estimate": (len(q), 1)}
        run = factor.run({"Q": q, "K": k, "V": v, "scale": 1.0, "t": t}, outputs)
        scaled = (q * t[..., None]).astype(np.float32)
        same = plain.run({"Q": scaled, "K": k, "V": v, "scale": 1.0}, outputs)
        np.testing.assert_allclose(run["O_estimate"], same["O_estimate"], rtol=0.05)
        self.assertTrue((errors(run["O"], plans.attention(scaled, k, v, 1.0, True)[0]) <= LIMIT).all())

    def test_grouped_causal(self):
        q = heads(["normal"] * 4, 300, 320)[0]
        k, v = heads(["normal", "diffuse"], 300, 320)[1:]
        run = self.run_kernel(GROUPED, (q, k, v), "--spend=256", "--decisions")
        exact = attention(q, k, v, np.arange(320) <= np.arange(300)[:, None] + 20)
        self.assertTrue((errors(run["O"], exact) <= LIMIT).all())
        self.assertIn(1, run["O_plan"])

    @unittest.skipUnless(mt.TARGET == "cpu" and has_byte_dots(), "this processor has no dot products of bytes")
    def test_where_it_pays(self):
        """A model says where it is tried: 180·N·M > 8·(14·(14·M + 9·N)·64 + 160·128·M), N > 1826 where N = M."""
        kernel = mt.Kernel(PLAIN, flags=("--spend", "--decisions"), processor=BYTES)
        for n, plan in ((1800, 0), (1850, 1)):
            q, k, v = heads(["normal"], n, n)
            run = kernel.run({"Q": q, "K": k, "V": v, "scale": D ** -0.5},
                             {"O": q.shape, "O_plan": (1,), "O_estimate": (1, 1)})
            self.assertEqual(list(run["O_plan"]), [plan], n)
            self.assertLessEqual(errors(run["O"], attention(q, k, v))[0], LIMIT)

    @unittest.skipUnless(mt.TARGET == "cpu" and has_byte_dots(), "this processor has no dot products of bytes")
    def test_pilot(self):
        """Of long nests few rows and keys come first: a head that is near enough there takes what the sample allows, whatever
        the others are, and with the bits that it has without them."""
        alone = None
        n, m = 3000, 4400  # more than 200·128·512 pairs
        tried = mt.Kernel(PLAIN, flags=("--spend",), processor=BYTES)
        plain = mt.Kernel(PLAIN, processor=BYTES)
        for names, taken in ((["normal"], [1]), (["large_scores"] * 3, [0, 0, 0]),
                             (["normal", "large_scores", "small_signal"], [1, 0, 0]),
                             (["normal", "large_scores"], [1, 0]), (["large_scores", "normal", "diffuse"], [0, 1, 1])):
            with self.subTest(names=names):
                arrays = heads(names, n, m)
                values = dict(zip("QKV", arrays), scale=D ** -0.5)
                found, written = (k.run(values, {"O": arrays[0].shape})["O"] for k in (tried, plain))
                differs = [int((a != b).any()) for a, b in zip(found, written)]
                self.assertEqual(differs, taken)
                off = errors(found, attention(*arrays))
                self.assertTrue((off <= LIMIT).all(), off)
                self.assertTrue((off[np.array(taken) == 1] > 1e-4).all(), off)
                if names[0] == "normal":
                    alone = found[0] if alone is None else alone
                    np.testing.assert_array_equal(found[0], alone)


@unittest.skipUnless(mt.TARGET == "cpu" and has_bf16_dots(), "this processor has no dot products of bf16 that are faster than f32")
class SpendBf16(unittest.TestCase):
    processor = "sapphirerapids" if mt.TARGET == "cpu" and "amx_bf16" in plans.processor_words() else None

    def run_kernel(self, specification, arrays, *flags):
        q, k, v = arrays
        kernel = mt.Kernel(specification, flags=flags, processor=self.processor)
        return kernel.run({"Q": q, "K": k, "V": v, "scale": D ** -0.5},
                          {"O": q.shape, "O_plan": q.shape[:1], "O_estimate": (len(q), 1)})

    def test_heads(self):
        """Heads whose error is below the tolerance take bf16, others have the bits of the kernel as written."""
        names = ["normal", "offset_channels", "large_scores", "diffuse", "small_signal"]
        arrays = heads(names, 300, 517)
        exact = attention(*arrays)
        plain = self.run_kernel(PLAIN, arrays)
        for limit, plans_of in ((3e-2, [1, 1, 1, 1, 1]), (6e-3, [1, 0, 0, 1, 0]), (1e-3, [0, 0, 0, 0, 0])):
            run = self.run_kernel(PLAIN.replace("3e-2", str(limit)), arrays, "--spend=256", "--decisions")
            found = errors(run["O"], exact)
            for name, plan, estimate, error in zip(names, run["O_plan"], run["O_estimate"][:, 0], found):
                print(f"{name:18} plan {plan}  error {error:.2e} of {limit:.0e} allowed, estimated {estimate:.2e}")
            self.assertTrue((found <= limit).all(), found)
            self.assertEqual(list(run["O_plan"]), plans_of)
            self.assertTrue((found[run["O_plan"] == 1] > 1e-4).all(), found)
            for h in np.flatnonzero(run["O_plan"] == 0):
                self.assertEqual(run["O"][h].tobytes(), plain["O"][h].tobytes(), names[h])

    def test_grouped_causal(self):
        q = heads(["normal"] * 4, 300, 320)[0]
        k, v = heads(["normal", "diffuse"], 300, 320)[1:]
        run = self.run_kernel(GROUPED, (q, k, v), "--spend=256", "--decisions")
        exact = attention(q, k, v, np.arange(320) <= np.arange(300)[:, None] + 20)
        self.assertTrue((errors(run["O"], exact) <= LIMIT).all())
        self.assertTrue((run["O_plan"] == 1).all())

    def test_huge_key(self):
        """A key whose scores are off by more than the tolerance in few rows, which a sample may not have: estimates say nothing of it."""
        arrays = heads(["normal"] * 8, 512, 700)
        for h in range(1, 8):
            arrays[1][h, 31 * h] *= 100
        run = self.run_kernel(PLAIN.replace("3e-2", "6e-3"), arrays, "--spend=256", "--decisions")
        self.assertEqual(list(run["O_plan"]), [1] + 7 * [0])
        self.assertTrue(np.isinf(run["O_estimate"][1:]).all())
        self.assertTrue((errors(run["O"], attention(*arrays)) <= 6e-3).all())

    def test_mixed_types(self):
        """Inputs of bf16 stay as they are, what is of f32 is rounded; with nothing of f32 there is no plan."""
        for types in (("bf16", "f32", "f32"), ("f32", "bf16", "bf16"), ("f32", "f32", "bf16"), ("bf16", "bf16", "f32")):
            with self.subTest(types=types):
                specification = PLAIN
                for name, kind in zip("QKV", types):
                    specification = specification.replace(f"{name} : f32", f"{name} : {kind}")
                arrays = heads(["normal", "offset_channels", "diffuse"], 300, 517)
                exact = attention(*(mt.from_bf16(mt.to_bf16(a)).astype(np.float64) if kind == "bf16" else a
                                    for a, kind in zip(arrays, types)))
                # Weights are of bf16 as written where values are.
                for limit, taken in ((3e-2, [1, 1, 1]), (4e-3, [1, 0, 1])):
                    run = self.run_kernel(specification.replace("3e-2", str(limit)), arrays, "--spend=256", "--decisions")
                    found = errors(run["O"], exact)
                    print(types, limit, run["O_plan"], found, run["O_estimate"][:, 0])
                    self.assertTrue((found <= limit).all(), found)
                    self.assertEqual(list(run["O_plan"]), taken)
                    self.assertLess(found[0], 4e-3)  # 8 bits are off by 9e-3

    def test_subnormal(self):
        """Dot products of bf16 take subnormal numbers for 0: where that is seen, heads are computed as written."""
        q, k, v = heads(["normal"] * 6, 300, 517)
        tiny = np.array([1, 1e-36, 1e-38, 1e-39, 1e-41, 0])[:, None, None]
        arrays = q, k, v * tiny
        plain, run = self.run_kernel(PLAIN, arrays), self.run_kernel(PLAIN, arrays, "--spend=256", "--decisions")
        self.assertEqual(list(run["O_plan"]), [1, 0, 0, 0, 0, 0])
        self.assertEqual(run["O"][1:].tobytes(), plain["O"][1:].tobytes())
        # Scores as they were, of rows that are subnormal.
        large = np.minimum(1 / np.maximum(tiny, 1e-36), 1e36)
        for arrays in ((q * tiny, k * large, v), (q * large, k * tiny, v)):
            run = self.run_kernel(PLAIN, arrays, "--spend=256", "--decisions")
            found = errors(run["O"], attention(*(a.astype(np.float32).astype(np.float64) for a in arrays)))
            self.assertTrue((found <= LIMIT).all(), found)

    def test_subnormal_bounded(self):
        """A bound holds for them too: what is taken for 0 is below the least number that errors are measured by."""
        specification = PLAIN.replace("3e-2 relative sampled", "0.5")
        q, k, v = heads(["normal"] * 4, 300, 317)
        v = (v * np.array([1, 1e-36, 1e-38, 1e-40])[:, None, None]).astype(np.float32).astype(np.float64)
        kernel = mt.Kernel(specification, flags=("--spend=256", "--decisions"), processor=self.processor)
        run = kernel.run({"Q": q, "K": k, "V": v, "scale": D ** -0.5}, {"O": q.shape, "O_plan": (4,), "O_bound": (4, 2)})
        self.assertEqual(list(run["O_plan"]), [1, 1, 1, 1])
        exact, magnitude = attention(q, k, v), attention(q, k, np.abs(v))
        self.assertTrue((np.abs(run["O"] - exact) <= np.maximum(0.5 * magnitude, 2.0 ** -80)).all())
        self.assertTrue((np.abs(run["O"] - exact)[0] > 1e-4 * magnitude[0]).any())

    def test_few_keys_first(self):
        """With --low-rank a head takes few keys, else bf16."""
        arrays = shared_budget.inputs(["repeated", "normal", "tiny"], 520, 2060)
        q, k, v = arrays
        kernel = mt.Kernel(shared_budget.PLAIN, flags=(*shared_budget.FLAGS, "--decisions"), processor=self.processor)
        run = kernel.run({"Q": q, "K": k, "V": v, "scale": shared_budget.SCALE},
                         {"O": q.shape, "O_plan": (3,), "O_estimate": (3, 2)})
        self.assertEqual(list(run["O_plan"]), [1, 2, 0])
        found = errors(run["O"], shared_budget.attention(*arrays)[0])
        self.assertTrue((found <= shared_budget.LIMIT).all(), found)
        self.assertTrue(1e-4 < found[1] < 6e-3, found)

    def test_where_it_pays(self):
        """A model says where it is tried: 128·N·M > 4·(14·(28·M + 9·N)·64 + 160·128·M), N > 1676 where N = M."""
        kernel = mt.Kernel(PLAIN, flags=("--spend", "--decisions"), processor=self.processor)
        for n, plan in ((1660, 0), (1690, 1)):
            q, k, v = heads(["normal"], n, n)
            run = kernel.run({"Q": q, "K": k, "V": v, "scale": D ** -0.5},
                             {"O": q.shape, "O_plan": (1,), "O_estimate": (1, 1)})
            self.assertEqual(list(run["O_plan"]), [plan], n)
            self.assertLessEqual(errors(run["O"], attention(q, k, v))[0], LIMIT)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
