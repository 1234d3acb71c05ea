# REQUIRES: torch
# RUN: %torch_python %s
"""Kernels as operators of PyTorch: opcheck, torch.compile, export, gradients."""
import unittest

import torch

import moa.torch
import reference
from moa.torch import _kernels, _operator

NORMALISED = """kernel normalised[B, N; T : float = f32, D = 8](x : T[B, N, D], g : T[D], eps : f32, k : i32, flag : bool)
    -> (y : T[B, N, D], n : f32[B, 2*N + 1], c : i32[B])
  require N >= 1
{
  y = [b, i, d] x[b, i, d] * rsqrt(([b < B, i < N] mean(x[b, i] * x[b, i]))[b, i] + eps) * g[d]
  n = [b, i] select(flag, k * 1.0, x[b, i % N, 0])
  c = [b] k * 2
}
"""
ATTENTION = """kernel attention[B, H, N, M; T : float = f32, D = 8](Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D],
    scale : f32) -> O : T[B, H, N, D]
{
  O = softmax((Q +.* transpose(K)) * scale) +.* V
}
"""
BACKWARD = """kernel gradients[B, H, N, M; T : float = f32, D = 8](Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D],
    G : T[B, H, N, D], scale : f32) -> (dQ : T[B, H, N, D], dK : T[B, H, M, D], dV : T[B, H, M, D])
{
  P  = softmax((Q +.* transpose(K)) * scale)
  A  = G +.* transpose(V)
  dS = P * (A -@(1,0) (+/ (P * A)))
  dQ = (dS +.* K) * scale
  dK = (transpose(dS) +.* Q) * scale
  dV = transpose(P) +.* G
}
"""


def kernel(text, **settings):
    return _kernels.compiled(text, torch.device("cpu"), settings)


class Operators(unittest.TestCase):

    def setUp(self):
        torch.manual_seed(0)
        self.qkv = [torch.randn(2, 3, n, 8) for n in (5, 7, 7)]

    def test_results(self):
        operator = moa.torch.operator(kernel(NORMALISED))
        x, g = torch.randn(2, 5, 8), torch.randn(8)
        y, n, c = operator(x, g, 1e-3, 7, True)
        torch.testing.assert_close(y, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-3) * g)
        self.assertEqual((n.shape, n.unique().tolist(), c.tolist()), ((2, 11), [7.0], [14, 14]))

    def test_opcheck(self):
        x, g = torch.randn(2, 5, 8), torch.randn(8)
        operator = moa.torch.operator(kernel(NORMALISED), "normalised")
        torch.library.opcheck(torch.ops.moa.normalised.default, (x, g, 1e-3, 7, False))
        torch.library.opcheck(operator.default, (x.transpose(0, 1).contiguous().transpose(0, 1), g, 0.1, -3, True))
        half = moa.torch.operator(kernel(ATTENTION, T="bf16"))
        torch.library.opcheck(half.default, (*(t.bfloat16() for t in self.qkv), 0.3))

    def test_compile(self):
        operator = moa.torch.operator(kernel(ATTENTION))
        model = lambda q, k, v: operator(q.relu(), k, v, 0.5).transpose(1, 2).contiguous().flatten(-2) + 1
        for dynamic in (False, True):
            compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
            for n in (5, 11):
                q = torch.randn(2, 3, n, 8)
                torch.testing.assert_close(compiled(q, *self.qkv[1:]), model(q, *self.qkv[1:]), rtol=0, atol=0)

    def test_export(self):
        operator = moa.torch.operator(kernel(ATTENTION), "exported")

        class Model(torch.nn.Module):
            def forward(self, q, k, v):
                return operator(q, k, v, 0.25) * 2

        n = torch.export.Dim("n", min=2, max=100)
        program = torch.export.export(Model(), tuple(self.qkv), dynamic_shapes={"q": {2: n}, "k": None, "v": None})
        q = torch.randn(2, 3, 30, 8)
        torch.testing.assert_close(program.module()(q, *self.qkv[1:]), Model()(q, *self.qkv[1:]), rtol=0, atol=0)

    def test_no_gradient(self):
        operator = moa.torch.operator(kernel(ATTENTION))
        q = self.qkv[0].requires_grad_()
        with self.assertRaisesRegex(NotImplementedError, r"kernel attention has no gradient.*backward="):
            operator(q, *self.qkv[1:], 0.3).sum().backward()

    def test_gradient(self):
        gradients = moa.torch.operator(kernel(BACKWARD, T="f64"))

        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:3])
            ctx.scale = inputs[3]

        def backward(ctx, gradient):
            return (*gradients(*ctx.saved_tensors, gradient, ctx.scale), None)

        operator = moa.torch.operator(kernel(ATTENTION, T="f64"), backward=backward, setup_context=setup_context)
        q, k, v = (t.double().requires_grad_() for t in self.qkv)
        torch.autograd.gradcheck(lambda *a: operator(*a, 0.3), (q, k, v))
        torch.library.opcheck(operator.default, (q, k, v, 0.3))
        found = torch.autograd.grad(torch.compile(lambda *a: operator(*a, 0.3), fullgraph=True, backend="aot_eager")(
            q, k, v).square().sum(), (q, k, v))
        expected = torch.autograd.grad(torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.3).square().sum(),
                                       (q, k, v))
        for a, b in zip(found, expected):
            torch.testing.assert_close(a, b)

    def test_extents(self):
        self.assertEqual(_operator.evaluate("2*N + (M - 1)/3 % 4", {"N": 5, "M": 14}), 10)
        self.assertEqual(_operator.evaluate("(0 - N)/4", {"N": 5}), -2)


if __name__ == "__main__":
    unittest.main()
