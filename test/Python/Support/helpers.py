"""What the tests of the Python package share."""
import os
import pathlib
import tempfile
import unittest

# Before the package is used: the tests have a cache of their own.
_cache = tempfile.TemporaryDirectory(prefix="moa-cache-")
os.environ["MOA_CACHE_DIR"] = _cache.name
for _name in ("MOA_CACHE", "MOA_PROGRESS"):
    os.environ.pop(_name, None)

import numpy as np  # noqa: E402

SOURCE = pathlib.Path(os.environ["MOA_SOURCE_ROOT"])
EXAMPLES = SOURCE / "examples"

MIXED = """kernel mixed[N](x : f32[N], keep : bool[N], flag : bool, k : i8, w : u16, big : i64, a : bf16, h : f16, d : f64)
    -> (y : f32[N], z : i64[N], r : f64[N], s : f32[N])
{
  y = [i < N] select(keep[i], select(flag, x[i], 2.0 * x[i]), a)
  z = [i < N] big + k + w
  r = [i < N] d
  s = [i < N] h
}
"""
DOUBLE = "kernel twice[N; T : int = i32](x : T[N]) -> y : T[N] { y = [i < N] x[i] + x[i] }\n"


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(q, k, v, scale):
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    return softmax(np.einsum("bhnd,bhmd->bhnm", q, k) * scale) @ v


class Case(unittest.TestCase):

    def assertClose(self, got, want, bound=2e-6):
        self.assertEqual(got.shape, want.shape)
        size = np.linalg.norm(want)
        self.assertLess(np.linalg.norm(got.astype(np.float64) - want) / (size or 1), bound)

    def assertRefused(self, kind, message, function, *arguments, **named):
        with self.assertRaises(kind) as caught:
            function(*arguments, **named)
        self.assertIs(type(caught.exception), kind)
        self.assertEqual(str(caught.exception), message)
        return caught.exception


class Lender:
    """An array of a library that NumPy knows nothing of: it has __dlpack__ alone."""

    def __init__(self, array, versioned=False, device=None):
        self.array, self.versioned, self.device = array, versioned, device

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.versioned:
            return self.array.__dlpack__(max_version=(1, 0))
        if options.get("max_version"):
            raise TypeError("an unexpected keyword argument")
        return self.array.__dlpack__()
