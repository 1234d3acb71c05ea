# RUN: %python %s
"""Of many heads, as few are off by more than a sample estimates as is promised, so that no tolerance, however near to a plan's
error, is exceeded more often; and estimates are not so far above errors that nothing is taken."""
import os
import sys
import unittest

import numpy as np

import moa_testing as mt
import promise

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import coverage  # noqa: E402

KINDS = ("normal", "diffuse", "coherent_values", "local_band", "clustered_keys", "offset values", "few large rows", "large scores")
HEADS = 60


class Coverage(unittest.TestCase):

    def check(self, element, most, flags=()):
        found = coverage.ratios(KINDS, HEADS, 512, element, flags)
        for kind, ratios in found.items():
            room = 1 / np.median(ratios)
            print(f"{element:4} {kind:16} {len(ratios)} heads, at most {max(ratios):.2f} times, estimates {room:.2f} times the error")
            self.assertGreater(len(ratios), 0.8 * HEADS, kind)
            self.assertLess(room, most, kind)
        # 50 of 480 heads.
        promise.check(self, np.concatenate(list(found.values())), element)

    def test_relative(self):
        self.check("f32", 1.3)

    def test_relative_bf16(self):
        self.check("bf16", 2.0)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
