# REQUIRES: torch
# RUN: %torch_python %s
"""Gradients of moa.torch.scaled_dot_product_attention: finite differences, and PyTorch's math implementation in
float64."""
import unittest

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

import moa.torch
import reference

attention = moa.torch.scaled_dot_product_attention
# The gradients of 16-bit inputs read a rounded output and rounded weights.
BOUNDS = {torch.float64: 1e-13, torch.float32: 4e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}
DEVICE = "cuda" if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0) else "cpu"


def normal(*shape, dtype=torch.float64, seed=0):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)
    return made.to(DEVICE, dtype)


def math_attention(q, k, v, attn_mask=None, **options):
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        attn_mask = attn_mask.double()
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask, **options)


def gradients(function, arrays, upstream, **options):
    arrays = [t.detach().requires_grad_() for t in arrays]
    out = function(*arrays, **options)
    return out.detach(), *torch.autograd.grad(out, arrays, upstream.to(out.dtype))


class Gradients(unittest.TestCase):

    def agree(self, q, k, v, **options):
        upstream = normal(*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2] if not options.get("enable_gqa") else
                                                  q.shape[:-2]), q.shape[-2], v.shape[-1], seed=9, dtype=q.dtype)
        found = gradients(attention, (q, k, v), upstream, **options)
        expected = gradients(math_attention, [t.double() for t in (q, k, v)], upstream, **options)
        for name, a, b, given in zip(("out", "query", "key", "value"), found, expected, (None, q, k, v)):
            with self.subTest(name=name):
                self.assertEqual(a.dtype, q.dtype)
                self.assertEqual(a.shape, b.shape)
                self.assertLess(reference.error(a, b), BOUNDS[q.dtype])

    def test_finite_differences(self):
        q, k, v = (t.requires_grad_() for t in (normal(2, 4, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 3)))
        mask = normal(5, 7) > -0.5
        mask[1] = False
        for options in ({}, {"is_causal": True}, {"attn_mask": causal_lower_right(5, 7)}, {"attn_mask": mask},
                        {"attn_mask": normal(4, 5, 7), "scale": -0.7}):
            with self.subTest(options=list(options)):
                self.assertTrue(torch.autograd.gradcheck(
                    lambda *a: attention(*a, enable_gqa=True, **options), (q, k, v)))

    def test_types(self):
        # Other tests have float64. Each call compiles two kernels.
        for dtype, heads, options in (
                (torch.float32, 4, {"is_causal": True}), (torch.bfloat16, 2, {"is_causal": True, "enable_gqa": True}),
                (torch.bfloat16, 4, {"attn_mask": normal(70, 90, dtype=torch.bfloat16)}),
                (torch.float16, 4, {"attn_mask": normal(70, 90) > 0}),
                (torch.float32, 4, {"attn_mask": normal(70, 90)})):
            with self.subTest(dtype=dtype, options=list(options)):
                shapes = (2, 4, 70, 64), (2, heads, 90, 64), (2, heads, 90, 64)
                self.agree(*(normal(*shape, dtype=dtype, seed=s) for s, shape in enumerate(shapes)), **options)

    def test_lengths(self):
        for n, m in ((1, 1), (1, 33), (33, 1), (14, 9), (9, 14), (0, 5), (5, 0)):
            with self.subTest(n=n, m=m):
                self.agree(normal(1, 2, n, 8), normal(1, 2, m, 8), normal(1, 2, m, 8), is_causal=m > 0)

    def test_ranks(self):
        self.agree(normal(5, 8), normal(7, 8), normal(7, 6))
        self.agree(normal(3, 5, 8), normal(3, 7, 8), normal(3, 7, 8))
        self.agree(normal(2, 3, 2, 5, 8), normal(2, 3, 2, 7, 8), normal(2, 3, 2, 7, 4), is_causal=True)

    def test_leading_axes_broadcast(self):
        self.agree(normal(2, 3, 5, 8), normal(1, 3, 7, 8), normal(2, 1, 7, 8))
        self.agree(normal(1, 1, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8))
        self.agree(normal(2, 3, 5, 8, dtype=torch.bfloat16), *[normal(1, 1, 7, 8, dtype=torch.bfloat16)] * 2)

    def test_heads(self):
        self.agree(normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 8), enable_gqa=True)
        self.agree(normal(6, 5, 8), normal(1, 7, 8), normal(1, 7, 8), enable_gqa=True, is_causal=True)
        self.agree(normal(2, 3, 6, 5, 8), normal(2, 3, 2, 7, 8), normal(2, 3, 2, 7, 8), enable_gqa=True)
        # Keys and values with numbers of heads of their own, and a batch that is broadcast.
        q, k, v = normal(2, 6, 5, 8), normal(1, 3, 7, 8), normal(2, 2, 7, 8)
        upstream = normal(2, 6, 5, 8, seed=1)
        found = gradients(attention, (q, k, v), upstream, enable_gqa=True)
        expected = gradients(lambda q, k, v: math_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(3, 1)),
                             (q, k, v), upstream)
        for a, b in zip(found, expected):
            self.assertLess(reference.error(a, b), 1e-13)

    def test_rows_of_nothing(self):
        q, k, v = normal(1, 2, 6, 8), normal(1, 2, 9, 8), normal(1, 2, 9, 8)
        mask = normal(6, 9) > -0.5
        mask[2], mask[:, 3] = False, False
        for given in (mask, torch.where(mask, 0.0, -torch.inf)):
            out, dq, dk, dv = gradients(attention, (q, k, v), normal(1, 2, 6, 8, seed=2), attn_mask=given)
            unseen = out[:, :, 2], dq[:, :, 2], dk[:, :, 3], dv[:, :, 3]
            self.assertEqual([t.abs().max().item() for t in unseen], [0.0] * 4)
            self.agree(q, k, v, attn_mask=given)

    def test_strides(self):
        q, k = normal(2, 6, 3, 8).transpose(1, 2), normal(2, 3, 8, 9).transpose(2, 3)
        self.agree(q, k, normal(2, 3, 9, 16)[..., ::2], attn_mask=(normal(9, 6) > 0).T)
        # The gradient of a sum has strides of 0.
        q, k, v = (t.clone().requires_grad_() for t in (q, k, k))
        found = torch.autograd.grad(attention(q, k, v).sum(), (q, k, v))
        expected = torch.autograd.grad(math_attention(q, k, v).sum(), (q, k, v))
        for a, b in zip(found, expected):
            self.assertLess(reference.error(a, b), 1e-13)

    def test_some_inputs(self):
        q, k, v = normal(1, 2, 5, 8), normal(1, 2, 7, 8), normal(1, 2, 7, 8)
        expected = gradients(math_attention, (q, k, v), torch.ones(1, 2, 5, 8, device=DEVICE))[1:]
        for k_th in range(3):
            arrays = [t.clone().requires_grad_(n == k_th) for n, t in enumerate((q, k, v))]
            attention(*arrays).sum().backward()
            self.assertEqual([t.grad is not None for t in arrays], [n == k_th for n in range(3)])
            self.assertLess(reference.error(arrays[k_th].grad, expected[k_th]), 1e-13)

    def test_equal_bits(self):
        q, k, v = (normal(2, n, 200, 64, dtype=torch.bfloat16) for n in (4, 2, 2))
        upstream = normal(2, 4, 200, 64, dtype=torch.bfloat16, seed=4)
        first, second = (gradients(attention, (q, k, v), upstream, enable_gqa=True, is_causal=True) for _ in range(2))
        for a, b in zip(first, second):
            self.assertTrue(torch.equal(a, b))

    def test_compiled(self):
        def model(q, k, v, mask):
            return attention(q * 2, k, v, mask, enable_gqa=True).transpose(1, 2).flatten(2)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
        for n, m in ((5, 7), (9, 4)):
            arrays = normal(2, 6, n, 8), normal(2, 3, m, 8), normal(2, 3, m, 8)
            options = {"mask": normal(n, m) > 0}
            upstream = normal(2, n, 48)
            found, expected = (gradients(f, arrays, upstream, **options) for f in (compiled, model))
            for a, b in zip(found, expected):
                torch.testing.assert_close(a, b, rtol=0, atol=0)

    def test_operators(self):
        q, k, v = (t.requires_grad_() for t in (normal(2, 6, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 4)))
        options = (normal(5, 7) > 0, False, False, 0.3, True)
        operators = torch.ops.moa
        torch.library.opcheck(operators.scaled_dot_product_attention.default, (q, k, v, *options))
        torch.library.opcheck(operators.scaled_dot_product_attention_lse.default, (q, k, v, *options))
        with torch.no_grad():
            out, lse, total = operators.scaled_dot_product_attention_lse(q, k, v, *options)
        scores = (q.detach() @ k.detach().repeat_interleave(2, 1).mT * 0.3).masked_fill(~options[0], -torch.inf)
        self.assertLess(reference.error(lse, torch.logsumexp(scores, -1)), 1e-13)
        arguments = (normal(2, 6, 5, 4), *(t.detach() for t in (q, k, v)), options[0], out, lse, total, *options[1:])
        torch.library.opcheck(operators.scaled_dot_product_attention_backward.default, arguments)

    def test_operator_without_lse(self):
        # A graph that was exported without gradients has this operator.
        q, k, v = (t.requires_grad_() for t in (normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8)))
        options = (None, True, False, 0.3, False)
        found = torch.autograd.grad(torch.ops.moa.scaled_dot_product_attention(q, k, v, *options).sum(), (q, k, v))
        expected = torch.autograd.grad(math_attention(q, k, v, is_causal=True, scale=0.3).sum(), (q, k, v))
        for a, b in zip(found, expected):
            self.assertLess(reference.error(a, b), 1e-13)

    def test_lowest_masks(self):
        """A row that is masked wholly by the lowest finite number has equal weights."""
        for dtype in (torch.float32, torch.float64):
            q, k, v = (3 * normal(1, 2, n, 8, dtype=dtype, seed=s) for s, n in enumerate((4, 6, 6)))
            mask = normal(4, 6, dtype=dtype)
            mask[1] = torch.finfo(dtype).min
            mask[2, :5] = torch.finfo(dtype).min
            self.agree(q, k, v, attn_mask=mask)

    def test_forward_mode(self):
        q = normal(1, 2, 5, 8)
        with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivative"):
            torch.func.jvp(lambda x: attention(x, x, x), (q,), (q,))
        with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivative"):
            torch.func.jvp(lambda x: moa.torch.flex_attention(x, x, x), (q,), (q,))

    def test_autocast(self):
        q, k, v = (normal(1, 2, n, 8, dtype=torch.float32) for n in (5, 7, 7))
        mask = normal(5, 7, dtype=torch.float32)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            found = attention(q, k.bfloat16(), v, mask), moa.torch.flex_attention(q, k, v)
            doubles = attention(q.double(), k.double(), v.double())
        for out, bias in zip(found, (mask.bfloat16(), None)):
            self.assertEqual(out.dtype, torch.bfloat16)
            short = [t.bfloat16().double() for t in (q, k, v)]
            self.assertLess(reference.error(out, math_attention(*short, bias)), 1e-2)
        self.assertEqual(doubles.dtype, torch.float64)

    def test_no_gradient(self):
        q, k, v = normal(1, 2, 5, 8).requires_grad_(), normal(1, 2, 7, 8), normal(1, 2, 7, 8)
        mask = normal(5, 7).requires_grad_()
        with self.assertRaisesRegex(NotImplementedError, r"attn_mask requires a gradient.*attn_mask\.detach\(\)"):
            attention(q, k, v, mask)
        with self.assertRaisesRegex(NotImplementedError, "attn_mask requires a gradient"):
            torch.ops.moa.scaled_dot_product_attention(q, k, v, mask, False, False, 0.3, False).sum().backward()
        with torch.no_grad():
            self.assertFalse(attention(q, k, v, mask).requires_grad)
        first, = torch.autograd.grad(attention(q, k, v).square().sum(), q, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "no second derivative"):
            first.sum().backward()


if __name__ == "__main__":
    unittest.main()
