# REQUIRES: torch
# RUN: %torch_python %s
"""Remainders and quotients of floats have PyTorch's values for all kinds of operands."""
import unittest

import torch

import moa.torch
from moa.torch import _kernels

PAIRS = """kernel pairs[N; T : float = f32](x : T[N], y : T[N])
    -> (remainder : T[N], fmod : T[N], floor_divide : T[N], round : T[N], trunc : T[N])
{
  remainder    = x % y
  fmod         = fmod(x, y)
  floor_divide = floor_divide(x, y)
  round        = round(x)
  trunc        = trunc(x)
}
"""
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, 0.1, -0.1, 7.25, -1e30, 1e-30, 1e-40, *map(float, ("inf", "-inf", "nan"))]
WORDS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


class Remainders(unittest.TestCase):

    def test_pairs(self):
        generator = torch.Generator().manual_seed(4)
        uniform = lambda: torch.rand(2, 5000, generator=generator, dtype=torch.float64) * 18 - 9
        special = torch.tensor(SPECIAL, dtype=torch.float64)
        pairs = torch.cat([torch.cartesian_prod(special, special).T, uniform(), uniform().sign() * torch.exp(3 * uniform())], 1)
        for dtype in WORDS:
            x, y = pairs.to(dtype)
            code = _kernels.compiled(PAIRS, torch.device("cpu"), {"T": moa.torch._graph.SCALARS[dtype]})
            remainder, fmod, floor_divide, rounded, whole = moa.torch.operator(code)(x, y)
            # PyTorch's vectors have NaN as the remainder if the quotient overflows, and its quotients of
            # 16-bit floats are rounded several times.
            finite = ~((x.float() if dtype.itemsize == 2 else x) / y).isinf() | x.isinf() | (y == 0)
            wide = (x.float(), y.float()) if dtype.itemsize == 2 else (x, y)
            quotient = torch.div(*wide, rounding_mode="floor").to(dtype)
            everywhere = torch.ones_like(finite)
            for name, found, wanted, where in (
                    ("remainder", remainder, torch.remainder(x, y), finite), ("fmod", fmod, torch.fmod(x, y), finite),
                    ("floor_divide", floor_divide, quotient, everywhere), ("round", rounded, torch.round(x), everywhere),
                    ("trunc", whole, torch.trunc(x), everywhere)):
                with self.subTest(dtype=dtype, name=name):
                    same = (found.view(WORDS[dtype]) == wanted.view(WORDS[dtype])) | found.isnan() & wanted.isnan()
                    at = (~same & where).nonzero()[:5, 0]
                    self.assertEqual(at.numel(), 0, (x[at], y[at], found[at], wanted[at]))
                    self.assertGreater(where.sum().item(), 0.95 * len(x))
            # One element is no vector.
            for k in (~finite).nonzero()[:9, 0].tolist():
                self.assertEqual(fmod[k], torch.fmod(x[k], y[k]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
