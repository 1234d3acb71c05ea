"""What tests of plans that spend accuracy share: inputs, a form of attention, what it means in NumPy and float64, and
a table that asks for plans, which on a CPU are those of a GPU then."""
import json
import os
import sys
import tempfile
import unittest

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import families  # noqa: E402

NOT_SHOWN = -1  # in place of a plan


def processor_words():
    """What this processor says that it has, or MOA_TEST_WORDS of another one that kernels are made for."""
    if "MOA_TEST_WORDS" in os.environ:
        return set(os.environ["MOA_TEST_WORDS"].split())
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return set(file.read().split())


def without_bf16():
    """A processor, by LLVM's name, whose code runs on this one and which has no instructions for products of bf16."""
    words = processor_words()
    if {"avx512_vnni", "avx512vl"} <= words:
        return "cascadelake"
    return "haswell" if {"avx2", "fma", "bmi2"} <= words else "x86-64"


# Of inputs of f32 a GPU has plans of 16 bits behind that of 8.
ON_GPU = mt.TARGET in ("device", "cuda")


def plain(within, d=16):
    """Attention of heads that share nothing, whose result has this tolerance."""
    return f"""
kernel k[H, N, M; T : float = f32, D = {d}](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : T[H, N, D] within {within}
{{ O = softmax((Q +.* transpose(K)) * scale) +.* V }}
"""


def grouped(lse="", d=16):
    """Heads that share keys, and rows that see the keys up to theirs; with a place for the tolerance of O, and the
    log-sum-exp as a second result within `lse`, if that is given."""
    second = f", lse : f32[H, N] within {lse}" if lse else ""
    return f"""
kernel k[H, G, N, M; T : float = f32, D = {d}](Q : T[H, N, D], K : T[G, M, D], V : T[G, M, D], scale : f32)
    -> (O : T[H, N, D] within %s{second})
  require H %% G == 0
{{
  Kh = [h < H] K[h / (H/G)]
  Vh = [h < H] V[h / (H/G)]
  S  = mask([_, i, j] j <= i + (M - N), (Q +.* transpose(Kh)) * scale)
  O  = softmax(S) +.* Vh
  {"lse = logsumexp(S)" if lse else ""}
}}
"""


def heads(names, n, m, d=16, seed=3):
    """Q, K and V with one head of each family."""
    made = [families.make(name, n, m, d, seed=seed, head=h).arrays() for h, name in enumerate(names)]
    return [np.stack(arrays).astype(np.float32) for arrays in zip(*made)]


def softmax(s):
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True, initial=-1e300))
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-300)


def attention(q, k, v, scale, visible=True, weights=softmax, more=0):
    """O, and |P|·|V|, which errors of elements are relative to."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    p = weights(np.where(visible, np.float64(np.float32(scale)) * (q @ k.transpose(0, 2, 1) + more), -np.inf))
    return p @ v, np.abs(p) @ np.abs(v)


def errors(found, exact):
    """Relative L2 errors by head, over what is finite."""
    axes, seen = tuple(range(1, exact.ndim)), np.isfinite(exact)
    size = np.where(seen, exact, 0)
    norm = np.sqrt((size ** 2).sum(axes))
    return np.sqrt((np.where(seen, found.astype(np.float64) - size, 0) ** 2).sum(axes)) / np.where(norm > 0, norm, 1)


class PlansTest(unittest.TestCase):
    """`table` asks for plan 1 of the result O of a kernel k at every index; kernels are compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.kernels = {}
        cls.directory = tempfile.TemporaryDirectory()
        cls.table = cls.write_table("plans.json", {"k.O": [1] * 64})

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def write_table(cls, name, plans):
        path = os.path.join(cls.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"plans": plans}, file)
        return path

    def make_kernel(self, text, *flags, **settings):
        key = (text, flags, *settings.items())
        if key not in self.kernels:
            self.kernels[key] = mt.make_kernel(text, flags=flags, **settings)
        return self.kernels[key]

    def run_and_check_code(self, kernel, inputs, shapes):
        """The code says whether something is not shown, as the decision does."""
        kernel.accepted = (mt.OK, mt.NOT_SHOWN)
        run = kernel.run(inputs, shapes)
        self.assertEqual(kernel.code, mt.NOT_SHOWN if NOT_SHOWN in run["O_plan"] else mt.OK)
        return run
