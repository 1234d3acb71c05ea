# RUN: %python %s
"""Errors of all rows are seldom above what a sample estimates of them, so that no tolerance, however near to a plan's error, is
exceeded more often than stated; and estimates are not so far above errors that nothing is taken."""
import os
import sys
import unittest

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import coverage  # noqa: E402

KINDS = ("normal", "diffuse", "coherent_values", "local_band", "clustered_keys", "offset values", "few large rows", "large scores")
HEADS = 20


class Coverage(unittest.TestCase):

    def check(self, measure, element, most, flags=()):
        found = coverage.cover(KINDS, HEADS, 512, measure, element, flags)
        taken, above = (sum(each[k] for each in found.values()) for k in (0, 1))
        for kind, (heads, over, worst, room) in found.items():
            print(f"{measure:10} {element:4} {kind:16} {over} of {heads} above, at most {worst:.2f} times, estimates {room:.2f} times the error")
            self.assertGreater(heads, 0.8 * HEADS, kind)
            self.assertLess(worst, 1.2 if measure == "relative" else 1.5, kind)
            self.assertLess(over, 0.3 * HEADS, kind)
            self.assertTrue(0.99 < room < most, kind)
        # 5 % of 160 heads, with two deviations of a binomial.
        self.assertLess(above, 0.085 * taken)

    def test_relative(self):
        self.check("relative", "f32", 1.3)

    def test_relative_bf16(self):
        self.check("relative", "bf16", 2.0)

    def test_components(self):
        self.check("components", "f32", 4.0)

    def test_components_bf16(self):
        self.check("components", "bf16", 5.0)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
