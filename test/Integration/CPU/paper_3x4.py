# RUN: %python %s
"""The worked vector of the paper's Section 5.2, in float64, to 1e-15."""
import unittest

import numpy as np

import moa_testing as mt

Q = np.array([[-.1984, .2698, .3414, -.0372], [.2547, -1.0674, .3460, -2.5242],
              [.6822, -.6265, .0252, .3978]])
K = np.array([[-1.1567, .6885, -.1884, .4743], [.2246, 1.7564, .5235, -2.3014],
              [-1.5899, .3730, -.8257, -1.2069]])
V = np.array([[1.0739, .4006, -.9671, .4870], [.5589, -.7209, -.7650, .2689],
              [.8237, .3763, .8320, .0014]])
EXPECTED = np.array([
    [.80228578971930620, -.036582912477041429, -.35632326459644292,
     .25943873892879216],
    [.63760060133076468, -.42397111309217378, -.38566424016752038,
     .21066885448284828],
    [.85522888109763762, .07468261578153601, -.39025801356642009,
     .28479682457751115]])
PRINTED = np.array([[.8023, -.0366, -.3563, .2595], [.6376, -.4240, -.3857, .2107],
                    [.8552, .0747, -.3903, .2848]])


class Paper(mt.KernelTest):

    def test_output(self):
        kernel = mt.make_kernel(mt.example("paper"))
        output = kernel.run({"Q": Q, "K": K, "V": V, "scale": 0.5}, {"O": EXPECTED.shape})["O"]
        self.assertEqual(output.dtype, np.float64)
        self.assertLessEqual(np.abs(output - EXPECTED).max(), 1e-15)
        self.assertLessEqual(np.abs(output - PRINTED).max(), 6.3e-5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
