# RUN: %python %s
# RUN: env MOA_TEST_TARGET=device %python %s
"""Contractions of f32 inputs that multiply floats of 16 bits where a sample allows it, against NumPy in float64.

The families are those of benchmarks/accuracy. On a CPU these plans are taken where a table asks for them."""
import numpy as np

import moa_testing as mt
import plans
from plans import errors, softmax

ROWS, D = (600, 16) if mt.TARGET != "device" else (260, 16)
SCALE = D ** -0.5
LIMIT = 1e-2

PLAIN = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
GROUPED = plans.grouped(lse="1e-2 relative sampled")
# Weights that are no shares: of any size.
LINEAR = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{
  S = (Q +.* transpose(K)) * scale
  O = (S * S) +.* V
}
"""
# The factor of a score as a divisor, behind a sum.
DIVIDED = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K) + 0.5) / (1.0 / scale)) +.* V }
"""
# A factor of the row that a fold over it gives.
NORMED = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], t : f32[H], scale : f32)
    -> O : f32[H, N, D] within %s
{
  q = sqrt(+/ (Q * Q))
  O = softmax([h, i, j] (Q +.* transpose(K))[h, i, j] * t[h] * scale / q[h, i]) +.* V
}
"""
# Factors of the row and of the key.
COSINE = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], t : f32[H], scale : f32)
    -> O : f32[H, N, D] within %s
{
  q = sqrt(+/ (Q * Q))
  k = sqrt(+/ (K * K))
  O = softmax([h, i, j] (Q +.* transpose(K))[h, i, j] * t[h] * scale / q[h, i] / k[h, j]) +.* V
}
"""
# A score that is a weight itself, beside a share.
RAW = """
kernel k[H, N, M; D = 16](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{
  S = (Q +.* transpose(K)) * scale
  O = (S + softmax(S)) +.* V
}
"""
# Rows that are the keys, which 8 bits do not take.
ONE = """
kernel k[H, N; D = 16](Q : f32[H, N, D], V : f32[H, N, D], scale : f32) -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(Q)) * scale) +.* V }
"""


def heads(names, n=ROWS, m=ROWS):
    return plans.heads(names, n, m)


def attention(q, k, v, visible=True, weights=softmax):
    return plans.attention(q, k, v, SCALE, visible, weights)[0]


class Halves(plans.PlansTest):

    def run_kernel(self, specification, arrays, count=3, epsilon=LIMIT):
        """What a kernel gives where any plan may be taken."""
        within = f"{epsilon} relative sampled"
        kernel = self.make_kernel(specification % within, "--plans", self.table, "--check-plans", "--decisions")
        shapes = {"O": arrays["Q"].shape, "lse": arrays["Q"].shape[:2], "O_plan": arrays["Q"].shape[:1],
                  "O_estimate": (len(arrays["Q"]), count), "lse_estimate": (len(arrays["Q"]), count)}
        return kernel.run({**arrays, "scale": SCALE}, shapes)

    def check(self, run, exact, plans, epsilon=LIMIT, split=3):
        found = errors(run["O"], exact)
        print(list(run["O_plan"]), found, run["O_estimate"])
        self.assertEqual(list(run["O_plan"]), plans)
        self.assertTrue((found <= epsilon).all(), found)
        for error, plan in zip(found, plans):
            if plan not in (0, split):
                self.assertGreater(error, 1e-5)
            else:
                self.assertLess(error, 1e-5)

    def test_families(self):
        names = ["normal", "offset_channels", "coherent_values", "small_signal", "peaked"]
        q, k, v = heads(names)
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.check(run, attention(q, k, v), [2, 2, 1, 2, 2])

    def test_too_small_a_tolerance(self):
        """Of 8 bits nothing is tried, 16 are not near enough, sums of two floats are."""
        q, k, v = heads(["normal", "large_scores"])
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v}, count=2, epsilon=2.5e-4)
        self.check(run, attention(q, k, v), [2, 2], 2.5e-4, split=2)
        self.assertTrue((run["O_estimate"][:, 0] > 2.5e-4).all())

    def test_range(self):
        """A power of 2 brings operands of any size into the range of f16, up to 2^78; what is beyond is left alone."""
        q, k, v = heads(["normal"] * 4)
        scales = np.array([1e-18, 1e12, 1.0, 1.0], np.float32)[:, None, None]
        q, k, v = q * scales, k / scales, v.copy()
        v[0] *= np.float32(1e8)
        v[2] *= np.float32(1e25)
        v[3, 5] = 0
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.check(run, attention(q, k, v), [2, 2, 0, 2])

    def test_not_finite(self):
        """An infinity or a NaN leaves a head as it is written."""
        q, k, v = heads(["normal"] * 3)
        k[0, 7, 3], v[1, 2, 2] = np.nan, np.inf
        run = self.run_kernel(PLAIN, {"Q": q, "K": k, "V": v})
        self.assertEqual(list(run["O_plan"]), [0, 0, 2])
        self.assertLess(errors(run["O"][2:], attention(q, k, v)[2:])[0], LIMIT)

    def test_grouped_causal(self):
        """Heads that share keys, rows without keys, sizes that no tile divides, two results."""
        for n, m in ((300, 517), (401, 257)) if mt.TARGET != "device" else ((280, 261),):
            q = heads(["normal", "diffuse", "peaked", "normal"], n, m)[0]
            k, v = heads(["normal", "peaked"], n, m)[1:]
            visible = np.arange(m) <= np.arange(n)[:, None] + (m - n)
            run = self.run_kernel(GROUPED, {"Q": q, "K": k, "V": v})
            found = errors(run["O"], attention(q, k, v, visible))
            print(list(run["O_plan"]), found)
            self.assertTrue((found <= LIMIT).all(), found)
            self.assertIn(2, run["O_plan"])
            self.assertTrue(np.isneginf(run["lse"][:, :max(n - m, 0)]).all())

    def test_any_weights(self):
        """Weights of any size are bf16, which has the range of f32."""
        q, k, v = heads(["normal", "normal"])
        q[1] *= 1e4
        exact = attention(q, k, v, weights=np.square)
        self.assertGreater(np.abs(SCALE * q @ k.transpose(0, 2, 1)).max() ** 2, 65504)
        run = self.run_kernel(LINEAR, {"Q": q, "K": k, "V": v})
        self.check(run, exact, [2, 2])

    def test_large_scores(self):
        """Where another key weighs as much as the largest, in few rows, errors of scores matter absolutely: no sample shows it."""
        q, k, v = heads(["normal", "normal"])
        q[1] *= 100
        for text in (PLAIN, DIVIDED):
            run = self.run_kernel(text, {"Q": q, "K": k, "V": v})
            found = errors(run["O"], attention(q, k, v))
            print(list(run["O_plan"]), found, run["O_estimate"])
            self.assertEqual(list(run["O_plan"]), [2, 3])
            self.assertTrue(np.isposinf(run["O_estimate"][1][:2]).all())
            self.assertTrue((found <= [LIMIT, 1e-4]).all(), found)

    def test_norms_of_rows(self):
        """The same of scores that are divided by their row's length: it is a factor, whatever gives it."""
        q, k, v = heads(["normal", "normal"])
        t = np.array([4, 400], np.float32)
        run = self.run_kernel(NORMED, {"Q": q, "K": k, "V": v, "t": t})
        lengths = np.sqrt((q.astype(np.float64) ** 2).sum(-1, keepdims=True))
        found = errors(run["O"], attention(q * (t[:, None, None] / lengths), k, v))
        print(list(run["O_plan"]), found, run["O_estimate"])
        self.assertEqual(list(run["O_plan"]), [2, 3])
        self.assertTrue(np.isposinf(run["O_estimate"][1][:2]).all())
        self.assertTrue((found <= [LIMIT, 1e-4]).all(), found)

    def test_norms_of_keys(self):
        """And of those that are divided by their key's length too, of which the least counts: as steps are those of the
        largest key, keys of very different sizes take no plan."""
        q, k, v = heads(["normal"] * 4)
        k[2] *= np.logspace(-3, 3, k.shape[1], dtype=np.float32)[:, None]
        k[3] *= np.float32(1e6)
        t = np.array([16, 1600, 16, 16], np.float32)
        run = self.run_kernel(COSINE, {"Q": q, "K": k, "V": v, "t": t})
        units = [x / np.sqrt((x.astype(np.float64) ** 2).sum(-1, keepdims=True)) for x in (q, k)]
        found = errors(run["O"], attention(units[0] * t[:, None, None], units[1], v))
        print(list(run["O_plan"]), found, run["O_estimate"])
        self.assertEqual(list(run["O_plan"]), [2, 3, 0, 2])
        self.assertTrue(np.isposinf(run["O_estimate"][1][:2]).all() and np.isposinf(run["O_estimate"][2]).all())
        self.assertTrue((found <= [LIMIT, 1e-4, 1e-5, LIMIT]).all(), found)

    def test_scores_as_weights(self):
        """Powers of 2 are taken out of a score that is a weight itself, whatever the plan."""
        q, k, v = heads(["normal", "normal", "normal", "normal"])
        exact = attention(q, k, v, weights=lambda s: s + softmax(s))
        table = self.write_table("each.json", {"k.O": [0, 1, 2, 3]})
        kernel = self.make_kernel(RAW % "5e-2 relative sampled", "--plans", table)
        found = errors(kernel.run({"Q": q, "K": k, "V": v, "scale": SCALE}, {"O": q.shape})["O"], exact)
        print(found)
        self.assertTrue((found <= [1e-5, 5e-2, 1e-2, 1e-4]).all(), found)

    def test_one_array(self):
        q, _, v = heads(["normal", "normal"])
        run = self.run_kernel(ONE, {"Q": q, "V": v}, count=2)
        self.check(run, attention(q, q, v), [1, 1])

    def test_not_offered(self):
        """On a CPU they are no faster, and no plans of what is decided there without a table."""
        if mt.TARGET != "cpu":
            self.skipTest("of a CPU")
        q, k, v = heads(["normal"])
        kernel = mt.make_kernel(PLAIN % f"{LIMIT} relative sampled", flags=("--decisions",))
        run = kernel.run({"Q": q, "K": k, "V": v, "scale": SCALE}, {"O": q.shape, "O_plan": (1,), "O_estimate": (1, 1)})
        self.assertEqual(list(run["O_plan"]), [0])


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
