"""Every specification has a family and every family a specification; and what the
checks are there to find, they find: a wrong value, a NaN that comes through, a row that
is almost 0, an element that nobody wrote, strides, a failure that no longer is one.
"""
import os
import unittest

import numpy as np

import family
import runner


def records(like, kind="f32", **changes):
    """What comes out of the specification of a family with another meaning."""
    described = dict(sizes=[{"B": 2, "H": 2, "N": 7, "M": 20}], present=like.present, extra=like.extra,
                     settings=like.settings)
    changed = family.Family(like.name, **{**described, **changes})
    return list(runner.run(changed, kind, "cpu"))


class Harness(unittest.TestCase):

    def only(self, found):
        self.assertEqual(len(found), 1)
        return found[0]

    def test_every_specification_has_a_family(self):
        specs = {f[:-4] for f in os.listdir(family.FOLDER) if f.endswith(".moa")}
        self.assertEqual(specs, set(runner.FAMILIES))
        self.assertGreater(len(specs), 100)

    def test_right(self):
        record = self.only(records(runner.FAMILIES["causal_top_left"]))
        self.assertTrue(record.holds(), record.line())
        self.assertEqual(record.status(), "passes")

    def test_another_mask(self):
        other = runner.FAMILIES["causal_bottom_right"].present
        record = self.only(records(runner.FAMILIES["causal_top_left"], present=other))
        self.assertFalse(record.holds())
        self.assertIn("O off by", record.line())

    def test_a_seen_key_is_not_unseen(self):
        def first_key(v, z):
            rows = np.zeros(v["K"].shape[:3], bool)
            rows[..., 0] = True
            return {"V": rows}
        record = self.only(records(runner.FAMILIES["causal_top_left"], unseen=first_key))
        self.assertIn("O changes with what nobody sees", record.line())

    def test_an_expected_failure(self):
        """It holds as long as it fails in the way it should, and not longer."""
        like = runner.FAMILIES["causal_top_left"]
        other = runner.FAMILIES["causal_bottom_right"].present
        for key in ("cpu", ("cpu", "f32")):
            record = self.only(records(like, present=other, fails={key: "O off by"}))
            self.assertTrue(record.holds())
            self.assertIn("expected: O off by", record.line())
            record = self.only(records(like, present=other, fails={key: "O changes"}))
            self.assertFalse(record.holds())
            self.assertIn("expected to fail with 'O changes', but O off by", record.line())
            record = self.only(records(like, fails={key: "O off by"}))
            self.assertFalse(record.holds())
            self.assertIn("but passes", record.line())
        # Of another target or type.
        fails = {"cuda": "O off by", ("cpu", "bf16"): "O off by"}
        record = self.only(records(like, present=other, fails=fails))
        self.assertFalse(record.holds())

    def test_what_does_not_compile(self):
        record = self.only(records(runner.FAMILIES["causal_top_left"], settings={"D": 64, "NONE": 1}))
        self.assertFalse(record.holds())
        self.assertIn("cannot be made", record.line())

    def test_values(self):
        expected = np.zeros((2, 3, 4))
        expected[0, 1] = 1
        for change, status in ((0, "passes"), (1e-7, "passes"), (1e-3, "off by"), (np.nan, "off by")):
            record = runner.Record(runner.FAMILIES["scaled"], "f32", "cpu", {"N": 3})
            found = expected.copy()
            found[0, 1, 2] += change
            record.compare("O", found, expected, 2e-6)
            self.assertIn(status, record.status())
        # A row of zeros that is almost 0, or was never written.
        for value, status in ((1e-30, "is not 0"), (np.nan, "off by")):
            record = runner.Record(runner.FAMILIES["scaled"], "f32", "cpu", {"N": 3})
            found = expected.copy()
            found[1, 2] = value
            record.compare("O", found, expected, 2e-6)
            self.assertIn(status, record.status())

    def test_strides(self):
        array = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)
        moved = runner.scattered(array)
        np.testing.assert_array_equal(moved, array)
        self.assertEqual(moved.strides[-1], array.itemsize)
        self.assertTrue(all(s % 16 == 0 for s in moved.strides[:-1]))
        self.assertLess(moved.strides[0], moved.strides[2])
        for empty in (np.zeros((0, 3)), np.zeros((2, 0))):
            self.assertEqual(runner.scattered(empty).shape, empty.shape)


if __name__ == "__main__":
    unittest.main(verbosity=2)
