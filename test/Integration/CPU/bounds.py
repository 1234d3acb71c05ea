# RUN: %python %s
# RUN: env MOA_TEST_TARGET=device %python %s
"""Tolerances that hold for every input: plans are taken where a bound on their errors, computed by the kernel from
magnitudes of its inputs, allows it. Against NumPy in float64, on the families of benchmarks/accuracy.

Plans are a GPU's; on a CPU a table asks for them."""
import numpy as np

import moa_testing as mt
import plans
from plans import NOT_SHOWN, families

ROWS, D = 260, 16
SCALE = D ** -0.5
UNDERFLOW = 2.0 ** -80

PLAIN = """
kernel k[H, N, M; T : float = f32, D = 16](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
GROUPED = plans.grouped()
NARROW = PLAIN.replace("O : f32", "O : f16")
# The analysis cannot tell what K is rounded for: all is bf16.
SHARED = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], scale : f32) -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* K }
"""
# Log-sum-exp may be 0, so that no bound is relative to it.
TWO = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> (O : f32[H, N, D] within %s, lse : f32[H, N] within 1)
{
  S   = (Q +.* transpose(K)) * scale
  O   = softmax(S) +.* V
  lse = logsumexp(S)
}
"""


NORMALISED = """
def rms(x : [d]) { return x / sqrt((+/ (x * x)) / 16.0 + 1e-6) }
""" + PLAIN.replace("Q +.* transpose(K)", "rms(Q) +.* transpose(rms(K))").replace("* scale", "* scale / 16")
COSINE = NORMALISED.replace(" / 16.0 + 1e-6", "").replace("* scale / 16", "* scale")


def normalised(q, k, v, eps):
    """Both specifications have the same scores but for eps."""
    with np.errstate(invalid="ignore"):
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + D * eps) for x in (q.astype(np.float64), k.astype(np.float64)))
    return attention(q, k, v, 1)


def attention(q, k, v, scale=SCALE, visible=True):
    return plans.attention(q, k, v, scale, visible)


def errors(found, exact, magnitude, least=UNDERFLOW):
    """The largest error of an element by head, relative to its magnitude, of those that are above the least number."""
    off = np.abs(found.astype(np.float64) - exact)
    return np.where(off > least, off / np.maximum(magnitude, 1e-300), 0).max((1, 2))


def arrays_of(names, n=ROWS, m=ROWS):
    return plans.heads(names, n, m, seed=11)


class Bound(plans.PlansTest):

    def run_kernel(self, text, inputs, table=True, scale=SCALE, count=2, **settings):
        flags = ("--decisions",) + (("--plans", self.table) if table else ())
        heads = inputs["Q"].shape[0]
        shapes = {"O": inputs["Q"].shape, "lse": inputs["Q"].shape[:2], "O_plan": (heads,),
                  "O_bound": (heads, 1 + count), "lse_bound": (heads, 1 + count)}
        return self.run_and_check_code(self.make_kernel(text, *flags, **settings), {**inputs, "scale": scale}, shapes)

    def check(self, names, run, exact, magnitude, epsilon, least=UNDERFLOW):
        """What is delivered is within what is allowed, and within the bound, and decisions are what bounds say."""
        found = errors(run["O"], exact, magnitude, least)
        for h, name in enumerate(names):
            bounds, plan = run["O_bound"][h], run["O_plan"][h]
            print(f"{name:20} plan {plan:2}  error {found[h]:.1e} of {epsilon:.0e}, bounds {bounds}")
            taken = next((p for p in range(1, len(bounds)) if bounds[p] <= epsilon),
                         0 if bounds[0] <= epsilon else NOT_SHOWN)
            self.assertEqual(plan, taken, name)
            self.assertLessEqual(found[h], bounds[max(plan, 0)], name)
            if plan != NOT_SHOWN:
                self.assertLessEqual(found[h], epsilon, name)
            self.assertGreater(bounds[0], 2.0 ** -24)
        return found

    def test_families(self):
        """Every family; some take the plan, some have no bound at all."""
        names = sorted(cls.name() for cls in families.Family.__subclasses__())
        names = [name for name in names if families.make(name, 4, 4, D).arrays()[0].shape == (4, D)]
        q, k, v = arrays_of(names)
        for epsilon in (6e-2, 2e-2):
            run = self.run_kernel(PLAIN % epsilon, {"Q": q, "K": k, "V": v})
            self.check(names, run, *attention(q, k, v), epsilon)
            self.assertIn(1, run["O_plan"])
            self.assertNotIn(1, run["O_plan"][np.isinf(run["O_bound"][:, 1])])
            self.assertIn(2, run["O_plan"])  # of sums of two floats, whose bounds are near that of the nest as written
            self.assertLess((run["O_bound"][:, 2] - run["O_bound"][:, 0]).min(), 2e-4)

    def test_code(self):
        """Without decisions the code says whether all bounds are small enough, and where one is not."""
        names = ["diffuse", "large_scores", "normal", "diffuse"]
        q, k, v = arrays_of(names)
        k[3, 5, 2] = np.inf
        bounds = self.run_kernel(PLAIN % 2e-2, {"Q": q, "K": k, "V": v}, table=False,
                                 count=0 if mt.TARGET in ("cpu", "record") else 2)["O_bound"][:, 0]
        self.assertTrue(np.isinf(bounds[3]) and (bounds[:3] < 1).all())
        epsilon = f"{np.sqrt(bounds[0] * bounds[1]):.3e}"  # between them
        kernel = self.make_kernel(PLAIN % epsilon)
        kernel.accepted = (mt.OK, mt.NOT_SHOWN)
        for heads in ([0], [1], [3], [2, 0], [0, 1, 3], [0, 0, 3], []):
            beyond = [i for i, h in enumerate(heads) if not bounds[h] <= float(epsilon)]
            kernel.run({"Q": q[heads], "K": k[heads], "V": v[heads], "scale": SCALE}, {"O": q[heads].shape})
            self.assertEqual(kernel.code, mt.NOT_SHOWN if beyond else mt.OK, heads)
            if beyond and kernel.told is not None:
                self.assertIn(f"at [{beyond[0]}], and too large at {len(beyond)} of {len(heads)} indices of [H]", kernel.told)
                bound = bounds[heads[beyond[0]]]
                self.assertIn(f"is {bound:.2e} at" if np.isfinite(bound) else "no bound on its errors holds", kernel.told)

    def test_results_in_f16(self):
        """Results whose least numbers are large: what may be below them is half of what a tolerance allows. Values of
        all sizes, so that results are normal numbers, fall below these, and below the least."""
        names = sorted(cls.name() for cls in families.Family.__subclasses__())
        names = [name for name in names if families.make(name, 4, 4, D).arrays()[0].shape == (4, D)]
        q, k, v = arrays_of(names)
        rng = np.random.default_rng(7)
        v = v / np.abs(v).max((1, 2), keepdims=True) * np.float32(2.0) ** rng.integers(-30, 6, (len(names), 1, D))
        v = v.astype(np.float32)
        exact, magnitude = attention(q, k, v)
        self.assertTrue((magnitude < 2.0 ** -25).any() and (magnitude > 1).any())
        for epsilon in (6e-2, 1e-3):
            run = self.run_kernel(NARROW % epsilon, {"Q": q, "K": k, "V": v}, count=2 if epsilon > 2.0 ** -7 else 1)
            self.check(names, run, exact, magnitude, epsilon, least=2.0 ** -24)
            self.assertEqual(run["O"].dtype, np.float16)
            # Without the least number nothing would be shown: elements that are all error.
            self.assertGreaterEqual(errors(run["O"], exact, magnitude, least=0).max(), 1)
            if epsilon == 1e-3:  # the rounding of f16 twice
                self.assertEqual(set(run["O_plan"]), {NOT_SHOWN})
                continue
            self.assertEqual(set(run["O_plan"]), {1, 2})
            self.assertGreater(run["O_bound"].min(), 2 * 2.0 ** -11)
            self.assertLess(run["O_bound"].min(), 2 * 2.0 ** -11 + 1e-3)

    def test_weights_in_f16(self):
        """Inputs of f16 round weights to it, where they underflow: an error that is relative to nothing but the sum of
        |V|, and shown to be below the least number only where that is."""
        q, k, v = (x.astype(np.float16).astype(np.float32) for x in arrays_of(["diffuse"]))
        for size, plan in ((2.0 ** -13, 0), (1, NOT_SHOWN)):
            values = (v * np.float32(size)).astype(np.float16).astype(np.float32)
            run = self.run_kernel(NARROW % 6e-2, {"Q": q, "K": k, "V": values}, table=False, count=0, T="f16")
            self.check(["diffuse"], run, *attention(q, k, values), 6e-2, least=2.0 ** -24)
            self.assertEqual(list(run["O_plan"]), [plan])

    def test_f16_beyond_its_range(self):
        """Of a head whose values f16 does not hold nothing is shown, and the other one is what it is without that."""
        q, k, v = arrays_of(["diffuse"] * 2)
        v /= np.abs(v).max()
        for largest, plan in ((60000, 1), (66000, NOT_SHOWN)):
            v[1, 7, 3] = largest
            run = self.run_kernel(NARROW % 6e-2, {"Q": q, "K": k, "V": v})
            self.assertEqual(list(run["O_plan"]), [1, plan])
            self.assertEqual(list(np.isinf(run["O_bound"][:, 0])), [False, plan == NOT_SHOWN])

    def test_adversarial(self):
        """Inputs whose roundings all have one sign and whose weights are as far off as weights can be."""
        rng = np.random.default_rng(5)
        q = np.full((4, ROWS, D), 1 + 2.0 ** -11 - 2.0 ** -20, np.float32)
        k = np.full((4, ROWS, D), -(1 + 2.0 ** -11 - 2.0 ** -20), np.float32)
        k[:, 7] *= -1
        v = np.full((4, ROWS, D), 1 + 2.0 ** -8 - 2.0 ** -20, np.float32)
        v[1] *= rng.choice([-1, 1], (ROWS, D)).astype(np.float32)
        v[2, :, 3] = 0
        v[2, 9, 3] = 1e-30  # one element alone is what the error is relative to
        v[3] *= np.float32(2.0) ** rng.integers(-60, 15, (ROWS, D)).astype(np.float32)
        q[3] *= rng.choice([-1, 1], (ROWS, D)).astype(np.float32)
        for scale in (0.01, 0.1, 1.0):
            run = self.run_kernel(PLAIN % 6e-2, {"Q": q, "K": k, "V": v}, scale=scale)
            found = self.check(["alike", "signs", "single", "spread"], run, *attention(q, k, v, scale), 6e-2)
            if scale == 0.1:
                self.assertEqual(list(run["O_plan"]), [1, 1, 1, 1])
                self.assertGreater(found[0], 2.0 ** -9)

    def test_normalised(self):
        """Rows and keys over norms of theirs: scores are bounded by what stands beside the norms, whatever the size of the
        inputs, and rows of nothing have no bound where nothing stands there."""
        for text, size, plan in ((NORMALISED, 1e6, 1), (NORMALISED, 1e-9, 1), (COSINE, 1e6, 1), (COSINE, 1e-9, 1)):
            q, k, v = arrays_of(["diffuse", "large_scores", "normal"])
            q, k = q * np.float32(size), k / np.float32(size)
            q[2, 7] = 0
            run = self.run_kernel(text % 6e-2, {"Q": q, "K": k, "V": v}, scale=1)
            exact, magnitude = normalised(q, k, v, 1e-6 if text is NORMALISED else 0)
            if text is COSINE:  # 0/0, and nothing is shown of that head
                exact[2, 7], magnitude[2, 7] = 0, 1
                self.assertTrue(np.isnan(run["O"][2, 7]).all() and np.isinf(run["O_bound"][2]).all())
                run["O"][2, 7] = 0
                run["O_bound"][2] = np.inf
            self.check(["diffuse", "large_scores", "normal"], run, exact, magnitude, 6e-2)
            self.assertEqual(list(run["O_plan"]), [plan, plan, NOT_SHOWN if text is COSINE else plan])

    def test_grouped(self):
        """Heads that share keys, masks, sizes that no tile divides."""
        q = arrays_of(["diffuse", "uniform", "diffuse", "normal"], 280, 261)[0]
        k, v = arrays_of(["diffuse", "normal"], 280, 261)[1:]
        visible = np.arange(261) <= np.arange(280)[:, None] + (261 - 280)
        run = self.run_kernel(GROUPED % 6e-2, {"Q": q, "K": k, "V": v})
        self.check(["a", "b", "c", "d"], run, *attention(q, k, v, visible=visible), 6e-2)
        self.assertIn(1, run["O_plan"])

    def test_shared(self):
        """One input in contractions of both kinds: bf16 throughout."""
        q, k, _ = arrays_of(["diffuse", "normal"])
        run = self.run_kernel(SHARED % 6e-2, {"Q": q * np.float32(0.2), "K": k})
        self.check(["diffuse", "normal"], run, *attention(q * np.float32(0.2), k, k), 6e-2)
        self.assertIn(1, run["O_plan"])

    def test_not_finite(self):
        """Nothing is shown of a head with an infinity or a NaN; it has the bits without the pass. Another one has the
        bits and the bounds that it has without these."""
        q, k, v = arrays_of(["diffuse"] * 3)
        whole = self.run_kernel(PLAIN % 6e-2, {"Q": q, "K": k, "V": v})
        k[0, 7, 3], v[1, 2, 2] = np.nan, np.inf
        run = self.run_kernel(PLAIN % 6e-2, {"Q": q, "K": k, "V": v})
        self.assertEqual(list(run["O_plan"]), [NOT_SHOWN, NOT_SHOWN, 1])
        self.assertTrue(np.isinf(run["O_bound"][:2]).all())
        for name in ("O", "O_bound"):
            self.assertEqual(run[name][2].tobytes(), whole[name][2].tobytes())
        plain = mt.make_kernel(PLAIN % 6e-2, flags=("--disable-rule=precision", "--no-tolerance-check"))
        plain = plain.run({"Q": q, "K": k, "V": v, "scale": SCALE}, {"O": q.shape})
        self.assertEqual(run["O"][:2].tobytes(), plain["O"][:2].tobytes())

    def test_range(self):
        """Operands of any size that f32 has squares of; of others nothing is shown."""
        q, k, v = arrays_of(["diffuse"])
        for size, plan in ((1e15, 1), (1e25, NOT_SHOWN)):
            inputs = {"Q": q * np.float32(size), "K": k / np.float32(size), "V": v}
            run = self.run_kernel(PLAIN % 6e-2, inputs)
            self.check(["diffuse"], run, *attention(inputs["Q"], inputs["K"], v), 6e-2)
            self.assertEqual(list(run["O_plan"]), [plan])

    def test_table(self):
        """No table takes a plan whose bound is too large, nor one where it says that there is none."""
        q, k, v = arrays_of(["diffuse", "large_scores", "diffuse"])
        inputs = {"Q": q, "K": k, "V": v}
        table = self.write_table("some.json", {"k.O": [1, 1, 0]})
        run = self.run_and_check_code(mt.make_kernel(PLAIN % 5e-2, flags=("--decisions", "--plans", table)),
                                      {**inputs, "scale": SCALE}, {"O": q.shape, "O_plan": (3,), "O_bound": (3, 3)})
        self.assertLess(run["O_bound"][1, 2], 5e-2)
        self.assertEqual(list(run["O_plan"]), [1, 2, 0])
        exact, magnitude = attention(q, k, v)
        self.assertTrue((errors(run["O"], exact, magnitude)[[0, 2]] <= 5e-2).all())
        self.assertGreater(run["O_bound"][1, 1], 5e-2)

    def test_a_result_without_bound(self):
        q, k, v = arrays_of(["diffuse"] * 2)
        run = self.run_kernel(TWO % 6e-2, {"Q": q, "K": k, "V": v})
        self.assertTrue((run["O_bound"][:, 1] < 6e-2).all())
        self.assertTrue(np.isinf(run["lse_bound"]).all())
        self.assertEqual(list(run["O_plan"]), [NOT_SHOWN] * 2)

    def test_few(self):
        """Few rows or keys, or none: as written, and what is shown of that."""
        for n, m in ((255, 300), (300, 20), (0, 300), (5, 0)):
            arrays = [x[:, :size] for x, size in zip(arrays_of(["diffuse"] * 2, 300, 300), (n, m, m))]
            run = self.run_kernel(PLAIN % 6e-2, dict(zip("QKV", arrays)))
            self.assertEqual(list(run["O_plan"]), [0, 0], (n, m))
            self.assertTrue((run["O_bound"][:, 0] < 6e-2).all())

    def test_sixteen_bits(self):
        """Inputs of 16 bits have no plan; the decision is whether the kernel as it is written is within the tolerance."""
        q, k, v = (mt.from_bf16(mt.to_bf16(x)) for x in arrays_of(["diffuse", "normal"]))
        for epsilon, plan in ((6e-2, 0), (4e-3, NOT_SHOWN)):
            run = self.run_kernel(PLAIN % epsilon, {"Q": q, "K": k, "V": v}, table=False, count=0, T="bf16")
            self.check(["diffuse", "normal"], run, *attention(q, k, v), epsilon)
            self.assertEqual(list(run["O_plan"]), [plan] * 2)

    def test_without_a_table(self):
        """On a CPU there are no plans without one."""
        q, k, v = arrays_of(["diffuse", "large_scores"])
        count = 0 if mt.TARGET in ("cpu", "record") else 2
        run = self.run_kernel(PLAIN % 2e-2, {"Q": q, "K": k, "V": v}, table=False, count=count)
        self.check(["diffuse", "large_scores"], run, *attention(q, k, v), 2e-2)
        self.assertEqual(run["O_plan"][0], min(count, 1))


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
