# REQUIRES: torch
# RUN: %torch_python %s
"""moa.torch.scaled_dot_product_attention against PyTorch's math implementation in float64, and against NumPy."""
import random
import unittest
import warnings

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import moa.torch
import reference

attention = moa.torch.scaled_dot_product_attention


def math_attention(q, k, v, attn_mask=None, **options):
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        attn_mask = attn_mask.double()
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask, **options)


def numpy_attention(q, k, v, mask, scale):
    """Attention of one head with an additive mask, row by row."""
    rows = []
    for row, hidden in zip(q, mask):
        scores = np.array([scale * np.dot(row, key) for key in k]) + hidden
        top = scores.max(initial=-np.inf)
        weights = np.exp(scores - top) if top > -np.inf else np.zeros(len(k))
        rows.append(weights @ v / weights.sum() if weights.sum() else np.zeros(v.shape[1]))
    return np.array(rows)


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64).to(dtype)


class SDPA(unittest.TestCase):

    def agree(self, q, k, v, bound=None, **options):
        found, expected = attention(q, k, v, **options), math_attention(q, k, v, **options)
        self.assertEqual(found.dtype, q.dtype)
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(reference.error(found, expected), bound or reference.BOUNDS[q.dtype])

    def test_ranks(self):
        self.agree(normal(5, 8), normal(7, 8), normal(7, 6))
        self.agree(normal(3, 5, 8), normal(3, 7, 8), normal(3, 7, 8))
        self.agree(normal(2, 3, 2, 5, 8), normal(2, 3, 2, 7, 8), normal(2, 3, 2, 7, 4), is_causal=True)
        self.agree(normal(2, 1, 2, 3, 5, 8), normal(2, 1, 2, 3, 7, 8), normal(2, 1, 2, 3, 7, 8))

    def test_leading_axes_broadcast(self):
        self.agree(normal(2, 3, 5, 8), normal(1, 3, 7, 8), normal(2, 1, 7, 8))

    def test_causal_is_top_left(self):
        for n, m in ((9, 14), (14, 9), (33, 33)):
            self.agree(normal(1, 2, n, 8), normal(1, 2, m, 8), normal(1, 2, m, 8), is_causal=True)
            self.agree(normal(1, 2, n, 8), normal(1, 2, m, 8), normal(1, 2, m, 8), is_causal=True, scale=-1.0)

    def test_causal_bias(self):
        for n, m in ((9, 14), (14, 9), (9, 9)):
            q, k, v = normal(1, 2, n, 8), normal(1, 2, m, 8), normal(1, 2, m, 8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns of rows without keys, which are 0
                corners = (causal_upper_left(n, m), 0), (causal_lower_right(n, m), m - n)
            for bias, shift in corners:
                seen = torch.ones(n, m, dtype=torch.bool).tril(shift)
                self.assertLess(reference.error(attention(q, k, v, bias), math_attention(q, k, v, seen)), 1e-13)
                found = attention(q, k[:, :1], v[:, :1], bias, scale=-0.5, enable_gqa=True)
                expected = math_attention(q, k[:, :1], v[:, :1], seen, scale=-0.5)
                self.assertLess(reference.error(found, expected), 1e-13)
                with self.assertRaisesRegex(ValueError, "is a CausalBias, so is_causal must be False"):
                    attention(q, k, v, bias, is_causal=True)
        with self.assertRaisesRegex(ValueError, "a CausalBias of 9 queries and 9 keys, but there are 9 and 14; make"):
            attention(normal(9, 8), normal(14, 8), normal(14, 8), causal_lower_right(9, 9))

    def test_scales(self):
        for scale in (0.0, -0.7, 3, 1e-3):
            self.agree(normal(2, 2, 6, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 8), scale=scale)

    def test_masks(self):
        q, k, v = normal(2, 3, 6, 8), normal(2, 3, 9, 8), normal(2, 3, 9, 8)
        for shape in ((6, 9), (9,), (1, 9), (6, 1), (2, 1, 1, 9), (3, 1, 9), (2, 3, 6, 9), (1, 1, 1, 1), ()):
            for dtype in (torch.bool, torch.float64, torch.float32):
                with self.subTest(shape=shape, dtype=dtype):
                    values = normal(*shape, seed=3)
                    mask = values > -0.5 if dtype == torch.bool else \
                        torch.where(values > -0.5, values, -torch.inf).to(dtype)
                    self.agree(q, k, v, attn_mask=mask)

    def test_masks_are_not_copied(self):
        mask = torch.ones(1, 1, 1, 1 << 10, dtype=torch.bool)
        q = normal(1, 1, 1, 8).expand(64, 64, 1 << 10, 8)
        k = normal(1, 1, 1 << 10, 8).expand(64, 64, -1, -1)
        # The mask would be 4 GiB, so a copy of it would be seen; the rows are cut off before the kernel runs.
        out = attention(q[..., :2, :], k, k, mask)
        self.assertTrue(torch.isfinite(out).all())

    def test_rows_of_nothing(self):
        q, k, v = normal(1, 2, 6, 8), normal(1, 2, 9, 8), normal(1, 2, 9, 8)
        mask = torch.rand(6, 9) > 0.3
        mask[2] = False
        out = attention(q, k, v, mask)
        self.assertEqual(out[:, :, 2].abs().max(), 0)
        out = attention(q, k, v, torch.where(mask, 0.0, -torch.inf))
        self.assertEqual(out[:, :, 2].abs().max(), 0)
        self.agree(q, k, v, attn_mask=mask)
        # The lowest finite number hides nothing: such a row is the mean of all values.
        lowest = torch.where(mask, 0.0, -1.0).double() * torch.finfo(torch.float64).max
        torch.testing.assert_close(attention(q, k, v, lowest)[0, 0, 2], v[0, 0].mean(0))

    def test_heads(self):
        self.agree(normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 8), enable_gqa=True)
        self.agree(normal(6, 5, 8), normal(1, 7, 8), normal(1, 7, 8), enable_gqa=True, is_causal=True)
        self.agree(normal(2, 6, 5, 8), normal(2, 6, 7, 8), normal(2, 6, 7, 8), enable_gqa=True)
        self.agree(normal(2, 3, 6, 5, 8), normal(2, 3, 2, 7, 8), normal(2, 3, 2, 7, 8), enable_gqa=True)
        # Keys and values may have numbers of heads of their own.
        q, k, v = normal(2, 6, 5, 8), normal(2, 3, 7, 8), normal(2, 2, 7, 8)
        expected = math_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(3, 1))
        self.assertLess(reference.error(attention(q, k, v, enable_gqa=True), expected), 1e-13)

    def test_empty(self):
        for q, k in (((2, 3, 0, 8), (2, 3, 5, 8)), ((2, 3, 5, 8), (2, 3, 0, 8)), ((0, 3, 5, 8), (0, 3, 5, 8)),
                     ((2, 0, 5, 8), (2, 0, 5, 8))):
            out = attention(normal(*q), normal(*k), normal(*k))
            self.assertEqual(tuple(out.shape), q)
            self.assertTrue((out == 0).all())

    def test_types(self):
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                q, k, v = (normal(2, 4, n, 64, dtype=dtype) for n in (70, 90, 90))
                self.agree(q, k, v, is_causal=True)
                self.agree(q, k, v, attn_mask=normal(70, 90, dtype=dtype))

    def test_strides(self):
        q, k = normal(2, 6, 3, 8).transpose(1, 2), normal(2, 3, 8, 9).transpose(2, 3)
        self.agree(q, k, normal(2, 3, 9, 16)[..., ::2], attn_mask=(normal(9, 6) > 0).T)
        self.agree(q, k[:, :, ::2], normal(1, 1, 1, 8).expand(2, 3, 5, 8))

    def test_random(self):
        for seed in range(12):
            made = random.Random(seed)
            b, g, r, n, m = (made.choice(c) for c in ((1, 3), (1, 2), (1, 3), (1, 4, 31, 66), (1, 13, 50)))
            d, e = made.choice((3, 16, 40)), made.choice((1, 16, 33))
            q, k, v = normal(b, g * r, n, d, seed=seed), normal(b, g, m, d, seed=seed), normal(b, g, m, e, seed=seed)
            options = made.choice(({}, {"is_causal": True}, {"attn_mask": normal(b, 1, n, m, seed=seed) > 0},
                                   {"attn_mask": normal(g * r, 1, m, seed=seed)}))
            with self.subTest(seed=seed):
                self.agree(q, k, v, enable_gqa=True, scale=made.choice((None, 0.3, -2.0)), **options)

    def test_numpy(self):
        q, k, v, mask = normal(1, 2, 5, 8), normal(1, 2, 7, 8), normal(1, 2, 7, 3), normal(2, 5, 7)
        mask[mask < -0.3] = -torch.inf
        mask[1, 2] = -torch.inf
        out = attention(q, k, v, mask, scale=0.9)
        for h in range(2):
            expected = numpy_attention(*(t[0, h].numpy() for t in (q, k, v)), mask[h].numpy(), 0.9)
            np.testing.assert_allclose(out[0, h].numpy(), expected, atol=1e-14)

    def test_refusals(self):
        q, k, v = normal(1, 4, 5, 8), normal(1, 4, 7, 8), normal(1, 4, 7, 8)
        mask = torch.ones(5, 7, dtype=torch.bool)
        for error, pattern, arguments, options in (
                (NotImplementedError, "no dropout", (q, k, v), {"dropout_p": 0.1}),
                (ValueError, "exclude each other", (q, k, v), {"attn_mask": mask, "is_causal": True}),
                (ValueError, "does not broadcast", (q, k, v), {"attn_mask": mask[:, :6]}),
                (ValueError, "does not broadcast", (q, k, v), {"attn_mask": mask[None, None, None]}),
                (ValueError, "must be boolean or a float", (q, k, v), {"attn_mask": mask.int()}),
                (ValueError, "no multiple", (q, k[:, :3], v[:, :3]), {"enable_gqa": True}),
                (ValueError, "convert one", (q, k.float(), v), {}),
                (ValueError, "has width 8 and key 4", (q, k[..., :4], v), {}),
                (ValueError, "length 7 and value 6", (q, k, v[:, :, :6]), {}),
                (ValueError, "do not broadcast; if query heads share key heads, give enable_gqa=True",
                 (q, k[:, :3], v[:, :3]), {})):
            with self.subTest(pattern=pattern), self.assertRaisesRegex(error, pattern):
                attention(*arguments, **options)

    def test_compiled(self):
        def model(q, k, v, mask):
            return attention(q * 2, k, v, mask).transpose(1, 2).flatten(2)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
        for n, m in ((5, 7), (9, 4)):
            q, k, v, mask = normal(2, 3, n, 8), normal(2, 3, m, 8), normal(2, 3, m, 8), normal(n, m) > 0
            with torch.no_grad():
                torch.testing.assert_close(compiled(q, k, v, mask), model(q, k, v, mask), rtol=0, atol=0)

    def test_operator(self):
        arguments = (normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 4), normal(5, 7) > 0, False, False, 0.3, False)
        torch.library.opcheck(torch.ops.moa.scaled_dot_product_attention.default, arguments)


if __name__ == "__main__":
    unittest.main()
