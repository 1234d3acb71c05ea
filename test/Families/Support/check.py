"""One family against its meaning: check.py SPECIFICATION.

Where it runs is MOA_TEST_TARGET's choice, as for every test of Integration.
"""
import os
import sys
import unittest

import moa_testing as mt
import runner


def main(path):
    family = runner.FAMILIES[os.path.splitext(os.path.basename(path))[0]]

    class Check(unittest.TestCase):

        def test_family(self):
            for kind in runner.kinds(family, mt.TARGET):
                for record in runner.run(family, kind, mt.TARGET):
                    with self.subTest(kind=kind, sizes=record.sizes):
                        print(record.line())
                        self.assertTrue(record.holds(), record.line())

    outcome = unittest.TextTestRunner(verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromTestCase(Check))
    return not outcome.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
