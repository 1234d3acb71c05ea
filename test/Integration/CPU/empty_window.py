# RUN: %python %s
"""A window of no key gives 0, on this CPU and in a GPU's program; a window of one key gives that key's value."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

B, H, N, M, D = 1, 2, 70, 90, 64


class EmptyWindow(unittest.TestCase):

    def test_windows(self):
        random = np.random.default_rng(0)
        values = {name: random.standard_normal((B, H, N if name == "Q" else M, D)).astype(np.float32) for name in "QKV"}
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            place = {name: os.path.join(directory, name + ".npy") for name in "QKVO"}
            for name, array in values.items():
                np.save(place[name], array)
            given = [f"{name}={place[name]}" for name in "QKV"]
            for target in ("cpu", "device"):
                for kind in ("f32", "bf16"):
                    for window in (1, 0, -3):
                        with self.subTest(target=target, type=kind, window=window):
                            if os.path.exists(place["O"]):
                                os.remove(place["O"])
                            done = mt.tool("moa-run", mt.example("sliding_window"), f"--target={target}", "--set", f"T={kind}",
                                           "--set", f"D={D}", *given, "scale=0.1", f"window={window}", "-o", "O=" + place["O"])
                            self.assertEqual(done.returncode, 0, done.stderr)
                            found = np.load(place["O"])
                            if found.dtype != np.float32:  # bf16 as 16 bits
                                found = (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
                            # The last query's own key is the last key.
                            expected = values["V"][:, :, M - N:] if window == 1 else np.zeros((B, H, N, D), np.float32)
                            np.testing.assert_allclose(found, expected, rtol=0 if window < 1 else 2**-8, atol=0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
