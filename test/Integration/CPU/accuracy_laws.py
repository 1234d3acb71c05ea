# RUN: %python %s
"""Every law that spends accuracy is needed: without it plans are further off, or of another kind, or there are none; what is computed without
is as near as it says. --explain names those that are applied."""
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import promise

H, N, D = 16, 512, 32
SCALE = D ** -0.5
ATTENTION = """
kernel k[H, N, M; D = 32](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, D], scale : f32)
    -> O : f32[H, N, D] within %s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""


def attention(q, k, v):
    s = SCALE * q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v.astype(np.float64)


class AccuracyLaws(unittest.TestCase):

    def estimates(self, arrays, *flags):
        """Of the plan of 8 bits, whatever they are; delivered is what they say."""
        kernel = mt.make_kernel(ATTENTION % "1 relative sampled", flags=("--decisions", *flags))
        run = kernel.run({**dict(zip("QKV", arrays)), "scale": SCALE}, {"O": arrays[0].shape, "O_plan": (H,), "O_estimate": (H, 1)})
        self.assertEqual(list(run["O_plan"]), [1] * H)
        meant = attention(*arrays)
        error = np.linalg.norm(run["O"] - meant, axis=(1, 2)) / np.linalg.norm(meant, axis=(1, 2))
        print(flags, "errors", error, "estimates", run["O_estimate"][:, 0])
        promise.check(self, error / run["O_estimate"][:, 0], str(flags))
        return run["O_estimate"][:, 0]

    def emit(self, text, *flags, tool="moa-codegen"):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "spec.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = mt.tool(tool, path, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout + done.stderr

    def plans(self, text, *flags):
        """The plans for a GPU, and the laws that they apply."""
        written = self.emit(text, "--target=cuda", "--explain", "-o", os.devnull, *flags)
        laws = re.search(r"^Accuracy that may be spent.*\n\n((?:  .*\n)+)", written, re.M)
        return laws.group(1) if laws else ""

    def test_B1(self):
        """What keys have in common takes no steps."""
        q, k, v = np.random.default_rng(1).standard_normal((3, H, N, D)).astype(np.float32)
        arrays = q, k + 20, v
        self.assertLess(self.estimates(arrays).mean(), 0.6 * self.estimates(arrays, "--disable-rule=B1").mean())

    def test_B3(self):
        """Nor does what values have in common."""
        q, k, v = np.random.default_rng(2).standard_normal((3, H, N, D)).astype(np.float32)
        arrays = q, k, 1 + v / 16
        self.assertLess(self.estimates(arrays).mean(), 0.3 * self.estimates(arrays, "--disable-rule=B3").mean())

    def test_B7(self):
        """Lines take no exponential, and are not as near as one."""
        arrays = np.random.default_rng(3).standard_normal((3, H, N, D)).astype(np.float32)
        self.assertLess(self.estimates(arrays, "--disable-rule=B7").mean(), 1.05 * self.estimates(arrays).mean())
        for flags, is_there in (((), True), (("--disable-rule=B7",), False)):
            text = self.emit(ATTENTION % "1 relative sampled", "--spend=256", "--emit=lifted", "--target=cuda", *flags)
            self.assertEqual("piecewise_exp2" in text, is_there)

    def test_plans(self):
        """Which plans there are of f32, by law."""
        text = ATTENTION % "6e-2 relative sampled"
        whole = self.plans(text, "--spend=256")
        self.assertEqual(re.findall(r"plan \d|[BF]\d+", whole), ["plan 1", "B1", "B2", "B3", "B7", "plan 2", "B4", "plan 3", "B4", "B6"])
        for law, left in (("B1", ["plan 1", "B2", "B3", "B7", "plan 2", "B4", "plan 3", "B4", "B6"]),
                          ("B2", ["plan 1", "B4", "plan 2", "B4", "B6"]),
                          ("B4", ["plan 1", "B1", "B2", "B3", "B7", "plan 2", "plan 3", "B6"]),
                          ("B6", ["plan 1", "B1", "B2", "B3", "B7", "plan 2", "B4"])):
            with self.subTest(law=law):
                self.assertEqual(re.findall(r"plan \d|[BF]\d+", self.plans(text, "--spend=256", "--disable-rule=" + law)), left)

    def test_B4(self):
        """Without powers of 2 floats of 16 bits are bf16, which needs none."""
        text = ATTENTION % "6e-2 relative sampled"
        for flags, count in (((), 2), (("--disable-rule=B4",), 0)):
            report = self.emit(text, "--spend=256", "--target=cuda", "--report=text", *flags)
            self.assertEqual(report.count("f16 with powers of 2 as scales"), 2 * count)

    def test_B5(self):
        """Without bounds nothing is spent of a tolerance for every input, and nothing is said of it."""
        text = ATTENTION % "6e-2"
        self.assertIn("B5: a bound", self.plans(text, "--decisions"))
        self.assertEqual(self.plans(text, "--spend=256", "--disable-rule=B5"), "")
        arrays = np.random.default_rng(4).standard_normal((3, 1, 8, D)).astype(np.float32)
        for flags, code in (((), mt.NOT_SHOWN), (("--disable-rule=B5",), mt.OK)):
            kernel = mt.Kernel(ATTENTION % "1e-6", flags)
            kernel.accepted = (code,)
            kernel.run({**dict(zip("QKV", arrays)), "scale": SCALE}, {"O": arrays[0].shape})

    def test_low_rank(self):
        """Classes of keys need both of their laws."""
        text, flags = ATTENTION % "1e-2 relative sampled", ("--low-rank=512",)
        self.assertEqual(re.findall(r"F\d+", self.plans(text, *flags)), ["F2", "F9"])
        for law in ("F2", "F9"):
            with self.subTest(law=law):
                said = self.emit(text, *flags, "--target=cuda", "-o", os.devnull, "--disable-rule=" + law)
                self.assertRegex(said, f"warning: no keys stand for others: law {law}, of .*, is disabled")
                self.assertEqual(self.plans(text, *flags, "--disable-rule=" + law), "")

    def test_both_passes(self):
        """Each leaves out its own."""
        text, flags = ATTENTION % "6e-2 relative sampled", ("--low-rank=512", "--spend=256")
        laws = re.findall(r"plan \d|[BF]\d+", self.plans(text, *flags))
        self.assertEqual(laws, ["plan 1", "F2", "F9", "plan 2", "B1", "B2", "B3", "B7", "plan 3", "B4", "plan 4", "B4", "B6"])
        without = self.plans(text, *flags, "--disable-rule=B3", "--disable-rule=B6")
        self.assertEqual(re.findall(r"plan \d|[BF]\d+", without), ["plan 1", "F2", "F9", "plan 2", "B1", "B2", "B7", "plan 3", "B4"])

    def test_refusals(self):
        for law, within, what in (("B2", "6e-2 relative sampled", "of products of integers"),
                                  ("B6", "1e-5 relative sampled", "of sums of two floats"), ("B5", "6e-2", "of bounds that a kernel evaluates")):
            with self.subTest(law=law):
                text = (ATTENTION % within).replace("f32[", "bf16[") if law == "B2" else ATTENTION % within
                said = self.emit(text, "--spend=256", "--target=cuda", "-o", os.devnull, "--disable-rule=" + law)
                self.assertIn("computes nothing in fewer bits: ", said)
                self.assertIn(f"law {law}, {what}, is disabled", said)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
