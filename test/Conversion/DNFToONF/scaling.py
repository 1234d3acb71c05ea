# RUN: %python %s
"""The size of what the derivation of folds makes of chains, which is what it costs: not more
than a power of the chain's length. 40 levels end in seconds, or not at all."""
import os
import subprocess
import tempfile
import unittest

LEVELS = (10, 20, 40)
# Each: the first lines, a level from the one before, the end, and the power of the length
# that the number of operations stays within.
CHAINS = {
    # Reads the level before in two reductions, at indices of their own.
    "two reductions of the level before": (
        "kernel c[N](x : f32[N, N], v : f32[N]) -> y : f32[N] {\n  s0 = v",
        "(x +.* {0}) - (max/ (x * 2.0)) * (+/ {0})",
        "{0}",
        3.3,
    ),
    # Whose work would be a power of N that grows with the chain: each is stored.
    "squares of a matrix": (
        "kernel c[N](x : f32[N, N]) -> y : f32[N, N] {\n  s0 = x",
        "{0} +.* {0}",
        "{0}",
        1.3,
    ),
    "sums of products of a matrix": (
        "kernel c[N](x : f32[N, N], v : f32[N, N]) -> y : f32[N, N] {\n  s0 = v",
        "x +.* {0} + {0}",
        "{0}",
        2.3,
    ),
    "sums of differences from the sum before": (
        "kernel c[N](x : f32[N]) -> y : f32 {\n  s0 = +/ x",
        "+/ exp(x - {0})",
        "{0}",
        1.3,
    ),
    "squares": (
        "kernel c[N](x : f32[N]) -> y : f32 {\n  s0 = +/ x",
        "{0} * {0}",
        "+/ (x * {0})",
        1.3,
    ),
    "squares in an exponent": (
        "kernel c[N](x : f32[N]) -> y : f32 {\n  s0 = max/ x",
        "{0} * {0} + {0}",
        "+/ (exp(x - {0}) * {0})",
        1.3,
    ),
    "doubles of a difference": (
        "kernel c[N](x : f32[N]) -> y : f32 {\n  s = max/ x\n  s0 = x - s",
        "{0} + {0}",
        "+/ exp({0})",
        1.3,
    ),
    "squares of a difference": (
        "kernel c[N](x : f32[N]) -> y : f32 {\n  s = +/ x\n  s0 = x - s",
        "{0} * {0}",
        "+/ {0}",
        1.3,
    ),
}


def specification(chain, levels):
    begin, level, end, _ = chain
    lines = [begin]
    lines += [f"  s{k} = " + level.format(f"s{k - 1}") for k in range(1, levels)]
    return "\n".join(lines + ["  y = " + end.format(f"s{levels - 1}"), "}"]) + "\n"


class Scaling(unittest.TestCase):
    def size(self, chain, levels):
        """Operations of the operational normal form, without the validation behind it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chain.moa")
            with open(path, "w") as file:
                file.write(specification(chain, levels))
            command = ["moa-opt", path, "--convert-moa-to-dnf", "--convert-dnf-to-onf=most-ops=1000000"]
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 timeout=240)
        self.assertEqual(run.returncode, 0)
        return run.stdout.count(b"\n")

    def test_chains(self):
        for name, chain in CHAINS.items():
            with self.subTest(name):
                sizes = [self.size(chain, levels) for levels in LEVELS]
                print(name, sizes)
                for small, large in zip(sizes, sizes[1:]):
                    self.assertLess(small, large)
                    self.assertLess(large, small * 2 ** chain[3])


if __name__ == "__main__":
    unittest.main()
