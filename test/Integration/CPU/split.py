# RUN: %python %s
# RUN: env MOA_TEST_TARGET=device %python %s
"""Contractions of f32 inputs whose operands are sums of two floats of 16 bits, where a sample or a bound allows it,
against NumPy in float64.

On a CPU these plans are taken where a table asks for them."""
import numpy as np

import moa_testing as mt
import plans
from plans import NOT_SHOWN, attention, errors

ROWS = 300 if mt.TARGET != "device" else 260

PLAIN = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32) -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
GROUPED = plans.grouped(lse="1e-5 relative sampled")
# Two contractions in a score, of which each operand is split.
TWO = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], R : f32[H, N, 8], T : f32[H, M, 8], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K) + R +.* transpose(T)) * scale) +.* V }
"""
# Weights that are no shares: of any size, and so of bf16.
LINEAR = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32) -> O : f32[H, N, D] within %s
{
  S = (Q +.* transpose(K)) * scale
  O = (S * S) +.* V
}
"""
# Rows that are keys and values too.
ONE = """
kernel k[H, N; D = 16](Q : f32[H, N, D], scale : f32) -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(Q)) * scale) +.* Q }
"""
# No sums with an axis.
SUMS = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], scale : f32) -> lse : f32[H, N] within %s
{ lse = logsumexp((Q +.* transpose(K)) * scale) }
"""
SAMPLED = " relative sampled"


def heads(names, n=ROWS, m=ROWS, d=16):
    return plans.heads(names, n, m, d)


class Split(plans.PlansTest):

    def run_kernel(self, specification, arrays, within="1e-5" + SAMPLED, count=1, d=16, check=True):
        """What a kernel gives where any plan may be taken."""
        flags = ("--plans", self.table, "--decisions") + (("--check-plans",) if check else ())
        kernel = self.make_kernel(specification % within, *flags, D=d)
        q = arrays["Q"]
        shapes = {"O": q.shape, "lse": q.shape[:2], "O_plan": q.shape[:1], "O_estimate": (len(q), count),
                  "lse_estimate": (len(q), count), "O_bound": (len(q), count + 1)}
        run = self.run_and_check_code(kernel, {**arrays, "scale": d ** -0.5}, shapes)
        print(within, list(run["O_plan"]), run["O_estimate"] if check and SAMPLED in within else "")
        return run

    def check(self, run, exact, plans, largest):
        found = errors(run["O"], exact)
        print(list(run["O_plan"]), found)
        self.assertEqual(list(run["O_plan"]), plans)
        self.assertLess(found.max(), largest)
        return found

    def test_families(self):
        """Errors as of f32: below a tenth of what 16 bits have."""
        names = ["normal", "offset_channels", "small_signal", "diffuse", "peaked"]
        q, k, v = heads(names)
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, "3e-5" + SAMPLED)
        self.check(run, attention(q, k, v, 0.25)[0], [1] * 5, 1e-5)

    def test_depths(self):
        for d in (64, 128):
            q, k, v = heads(["normal", "diffuse"], 260, 300, d)
            run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, d=d)
            found = self.check(run, attention(q, k, v, d ** -0.5)[0], [1, 1], 3e-6)
            # What a table decides without a look at its errors is the same.
            told = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, d=d, check=False)
            self.assertEqual(told["O"].tobytes(), run["O"].tobytes())
            self.assertGreater(found.min(), 1e-8)

    def test_order_of_plans(self):
        """16 bits where they are near enough; the sums of two floats for heads where they are not."""
        q, k, v = heads(["normal", "normal"])
        q[1] *= 12
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, "1e-3" + SAMPLED, count=2)
        self.check(run, attention(q, k, v, 0.25)[0], [1, 2], 1e-3)
        self.assertLess(run["O_estimate"][1, 1], 2e-5)

    def test_grouped_causal(self):
        """Heads that share keys, rows without keys, sizes that no tile divides, two results."""
        for n, m in ((300, 517), (401, 257)) if mt.TARGET != "device" else ((280, 261),):
            q = heads(["normal", "diffuse", "peaked", "normal"], n, m)[0]
            k, v = heads(["normal", "diffuse"], n, m)[1:]
            visible = np.arange(m) <= np.arange(n)[:, None] + (m - n)
            run = self.run_kernel(GROUPED, {"Q": q, "K": k, "V": v})
            self.check(run, attention(q, k, v, 0.25, visible)[0], [1] * 4, 1e-5)
            hidden = max(n - m, 0)
            self.assertTrue(np.isneginf(run["lse"][:, :hidden]).all())
            self.assertTrue((run["O"][:, :hidden] == 0).all())
            s = np.where(visible, 0.25 * (q.astype(np.float64) @ np.repeat(k, 2, axis=0).transpose(0, 2, 1)), -np.inf)
            exact = np.logaddexp.reduce(s, axis=-1)[:, hidden:]
            self.assertLess(errors(run["lse"][:, hidden:], exact).max(), 1e-6)

    def test_logsumexp(self):
        q, k, _ = heads(["normal", "diffuse"])
        table = self.write_table("sums.json", {"k.lse": [1, 1]})
        kernel = mt.make_kernel(SUMS % ("1e-5" + SAMPLED), flags=("--plans", table, "--decisions", "--check-plans"))
        run = kernel.run({"Q": q, "K": k, "scale": 0.25}, {"lse": q.shape[:2], "lse_plan": (2,), "lse_estimate": (2, 1)})
        exact = np.logaddexp.reduce(0.25 * (q.astype(np.float64) @ k.transpose(0, 2, 1)), axis=-1)
        self.assertEqual(list(run["lse_plan"]), [1, 1])
        self.assertLess(errors(run["lse"], exact).max(), 1e-6)

    def test_two_contractions(self):
        q, k, v = heads(["normal", "diffuse"])
        r, t, _ = heads(["normal", "normal"], d=8)
        run = self.run_kernel(TWO, {"Q": q, "K": k, "R": r, "T": t, "V": v})
        more = r.astype(np.float64) @ t.astype(np.float64).transpose(0, 2, 1)
        self.check(run, attention(q, k, v, 0.25, more=more)[0], [1, 1], 5e-6)

    def test_any_weights(self):
        """Of weights of any size both floats are bf16."""
        q, k, v = heads(["normal", "normal"])
        q[1] *= 1e4
        run = self.run_kernel(LINEAR, {"Q": q, "K": k, "V": v}, "1e-4" + SAMPLED)
        exact = attention(q, k, v, 0.25, weights=np.square)[0]
        self.assertGreater(self.check(run, exact, [1, 1], 3e-5).min(), 1e-7)

    def test_one_array(self):
        q, _, _ = heads(["normal", "normal"])
        run = self.run_kernel(ONE, {"Q": q})
        self.check(run, attention(q, q, q, 0.25)[0], [1, 1], 5e-6)

    def test_range(self):
        """A power of 2 brings operands of any size into the range of f16, up to 2^78; what is beyond is left alone."""
        q, k, v = heads(["normal"] * 5)
        scales = np.array([1e-18, 1e12, 1, 1, 1], np.float32)[:, None, None]
        q, k, v = q * scales, k / scales, v.copy()
        v[0] *= np.float32(1e8)
        v[2] *= np.float32(1e25)
        v[3] *= np.float32(1e-4)
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.check(run, attention(q, k, v, 0.25)[0], [1, 1, 0, 1, 1], 5e-6)

    def test_huge_ranges(self):
        """Values of all sizes in one head: what is 2^18 times smaller than the largest loses bits, which a result of
        all columns does not see."""
        q, k, v = heads(["normal", "normal"])
        rng = np.random.default_rng(1)
        v *= np.float32(2.0) ** rng.integers(-40, 1, (2, 1, 16))
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.check(run, attention(q, k, v, 0.25)[0], [1, 1], 5e-6)

    def test_not_finite(self):
        """An infinity or a NaN leaves a head as it is written."""
        q, k, v = heads(["normal"] * 3)
        k[0, 7, 3], v[1, 2, 2] = np.nan, np.inf
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.assertEqual(list(run["O_plan"]), [0, 0, 1])
        self.assertLess(errors(run["O"][2:], attention(q, k, v, 0.25)[0][2:])[0], 5e-6)

    def test_too_small_a_tolerance(self):
        """A plan that a table asks for is not taken where the sample finds more than is allowed."""
        q, k, v = heads(["normal", "large_scores"])
        q[1] *= 30
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, "1e-6" + SAMPLED)
        self.assertEqual(run["O_plan"][1], 0)
        self.assertGreater(run["O_estimate"][1, 0], 1e-6)
        plain = mt.make_kernel(PLAIN % ("1e-6" + SAMPLED), flags=("--disable-rule=precision",))
        plain = plain.run({"Q": q, "K": k, "V": v, "scale": 0.25}, {"O": q.shape})
        self.assertEqual(run["O"][1].tobytes(), plain["O"][1].tobytes())

    def test_bound(self):
        """Tolerances that hold for every input: by element, relative to |P|·|V|; values of all sizes."""
        q, k, v = heads(["diffuse", "normal", "large_scores"], 260, 260)
        rng = np.random.default_rng(2)
        v *= np.float32(2.0) ** rng.integers(-30, 10, v.shape)
        for within, plans in (("1e-3", [1, 1, 0]), ("4e-4", [1, 1, NOT_SHOWN]), ("3e-4", [0, 0, NOT_SHOWN])):
            run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, within, check=False)
            exact, magnitude = attention(q, k, v, 0.25)
            found = (np.abs(run["O"] - exact) / magnitude).max((1, 2))
            print(found, run["O_bound"])
            for h in range(3):
                bounds, plan = run["O_bound"][h], run["O_plan"][h]
                taken = 1 if bounds[1] <= float(within) else 0 if bounds[0] <= float(within) else NOT_SHOWN
                self.assertEqual(plan, taken)
                self.assertLessEqual(found[h], bounds[max(plan, 0)])
            self.assertEqual(list(run["O_plan"]), plans)
            self.assertLess(found.max(), 1e-4)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
