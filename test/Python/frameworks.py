# REQUIRES: moa-python
# RUN: %moa_python %s
"""Arrays of PyTorch and JAX on the CPU; each part is skipped without its library."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import EXAMPLES, Case, attention, normal, np  # noqa: E402

import moa  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None


def compile_sdpa(element):
    return moa.compile(EXAMPLES / "sdpa.moa", D=16, T=element)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Torch(Case):

    def arguments(self, dtype=None):
        return [torch.from_numpy(normal(1, 2, 5, 16, seed=s)).to(dtype or torch.float32) for s in range(3)]

    def test_values(self):
        for name in ("float64", "float32", "float16", "bfloat16"):
            dtype = getattr(torch, name)
            given = self.arguments(dtype)
            result = compile_sdpa(dtype)(*given, 0.25)
            self.assertEqual((type(result), result.dtype, result.device), (torch.Tensor, dtype, torch.device("cpu")))
            want = attention(*(tensor.to(torch.float64).numpy() for tensor in given), 0.25)
            self.assertClose(result.to(torch.float64).numpy(), want, 1e-6 if dtype.itemsize > 2 else 2e-2)

    def test_out(self):
        given, out = self.arguments(), torch.empty(1, 2, 5, 16)
        self.assertIs(compile_sdpa("f32")(*given, torch.tensor(0.25), out=out), out)
        self.assertClose(out.numpy(), attention(*(tensor.numpy() for tensor in given), 0.25))

    def test_views(self):
        q, k, v = self.arguments()
        wide = torch.empty(1, 5, 2, 32)
        view = wide.transpose(1, 2)[..., ::2]
        view.copy_(q)
        self.assertClose(compile_sdpa("f32")(view, k, v, 0.25).numpy(),
                         attention(*(tensor.numpy() for tensor in (q, k, v)), 0.25))

    def test_gradients(self):
        q, k, v = self.arguments()
        kernel = compile_sdpa("f32")
        q.requires_grad_()
        self.assertRefused(moa.ArgumentTypeError, "Q: requires a gradient, which this call does not compute; give Q.detach(), "
                           "call under torch.no_grad(), or use moa.torch", kernel, q, k, v, 0.25)
        with torch.no_grad():
            self.assertTrue((kernel(q, k, v, 0.25) == kernel(q.detach(), k, v, 0.25)).all())
        self.assertRefused(moa.ArgumentTypeError, "scale: requires a gradient, which this call does not compute; give "
                           "scale.item()", kernel, k, k, v, torch.tensor(0.25, requires_grad=True))

    def test_errors(self):
        q, k, v = self.arguments()
        kernel = compile_sdpa("f32")
        self.assertRefused(moa.ArgumentTypeError, "Q: expects f32[B, H, N, 16], but got an array of float64", kernel,
                           q.double(), k, v, 1)
        self.assertRefused(moa.ArgumentTypeError, "Q: expects f32[B, H, N, 16], but got an array of float8_e5m2", kernel,
                           q.to(torch.float8_e5m2), k, v, 1)
        with self.assertRaisesRegex(moa.ArgumentTypeError, "^Q: PyTorch does not export the tensor: "):
            kernel(q.to_sparse(), k, v, 1)

    def test_masks(self):
        kernel = moa.compile("kernel keep[N](x : f32[N], m : bool[N]) -> y : f32[N] { y = [i < N] select(m[i], x[i], 0.0) }")
        x, m = torch.arange(6.0), torch.tensor([True, False] * 3)
        self.assertEqual(kernel(x, m).tolist(), [0, 0, 2, 0, 4, 0])

    def test_mixed_libraries(self):
        q, k, v = self.arguments()
        result = compile_sdpa("f32")(q, k.numpy(), v, 0.25)
        self.assertIs(type(result), torch.Tensor)


@unittest.skipUnless(jax, "JAX is not installed")
class Jax(Case):

    def test_values(self):
        for name in ("float32", "float16", "bfloat16"):
            given = [jax.numpy.asarray(normal(1, 2, 5, 16, seed=s)).astype(name) for s in range(3)]
            result = compile_sdpa(jax.numpy.dtype(name))(*given, jax.numpy.float32(0.25))
            self.assertIsInstance(result, jax.Array)
            self.assertEqual(result.dtype, name)
            want = attention(*(np.asarray(array, np.float64) for array in given), 0.25)
            self.assertClose(np.asarray(result, np.float64), want, 1e-6 if name == "float32" else 2e-2)

    def test_errors(self):
        q = jax.numpy.ones((1, 2, 5, 16))
        self.assertRefused(moa.ArgumentError, "O: the result cannot be written, because its array is read-only",
                           compile_sdpa("f32"), q, q, q, 1, out=q)


if __name__ == "__main__":
    unittest.main(verbosity=2)
