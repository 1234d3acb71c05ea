"""The examples that the tests of every text of GPU kernels compile, and what ptxas may
say of them.
"""
import glob
import os
import re

import moa_testing as mt

# ptxas tells that wgmma is serialised with an advisory of one of these numbers.
SERIALISED = re.compile(r"C751\d|wgmma\S* .*serializ", re.IGNORECASE)
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# The examples that run on tensor cores, of 16-bit floats.
TILES = ("sdpa", "causal", "gqa_causal", "alibi", "softcap", "sliding_window",
         "sigmoid_attention", "cross_mask")


def names():
    folder = os.path.dirname(mt.example("sdpa"))
    return sorted(os.path.basename(f)[:-4] for f in glob.glob(os.path.join(folder, "*.moa")))


def cases():
    """(example, settings, whether registers may not be spilled)"""
    for name in names():
        yield name, {"T": "f32"}, False
        if name not in TILES:
            yield name, {"T": "bf16"}, False
    for name in ("paper", "causal"):
        yield name, {"T": "f64"}, False
    for name in TILES:
        for width in (64, 128, 256):
            yield name, {"T": "bf16", "D": width}, True
    for name in ("gqa_causal", "alibi", "cross_mask"):
        yield name, {"T": "f16", "D": 64}, True


def check_assembler(test, text, strict):
    """What ptxas said of one file, verbosely, in the test's assertions."""
    test.assertNotIn("warning", text.lower())
    test.assertNotRegex(text, SERIALISED)
    spills = SPILLS.findall(text)
    test.assertTrue(spills, text)
    if strict:
        test.assertEqual(set(spills), {("0", "0")}, text)
