# REQUIRES: jax
# RUN: %venv_python %s
"""The column of docs/Compatibility.md for jax.nn.dot_product_attention on a CPU."""
import os
import pathlib
import sys
import unittest

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
import edge_cases  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402


class XLA(edge_cases.Implementation):
    """dot_product_attention with its implementation "xla". JAX has the axes [B, N, H, D]."""

    def __init__(self, dtype=np.float32):
        self.dtype = dtype
        self.bound = 1e-3 if dtype == np.float32 else 3e-2

    def half(self):
        return XLA(jax.numpy.bfloat16)

    def call(self, q, k, v, mask, causal, scale, gqa, lse):
        options = {}
        if mask is not None:
            options["mask" if mask.dtype == bool else "bias"] = jax.numpy.asarray(mask)
        q, k, v = (jax.numpy.asarray(x.transpose(0, 2, 1, 3), self.dtype) for x in (q, k, v))
        found = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=causal, implementation="xla",
                                             return_residual=lse, **options)
        out, residual = found if lse else (found, None)
        return edge_cases.Result(np.asarray(out, np.float32).transpose(0, 2, 1, 3),
                                 None if residual is None else np.asarray(residual))


class Page(unittest.TestCase):

    def test_cells(self):
        if not edge_cases.same_version("JAX", jax.__version__):
            self.skipTest("another version of JAX")
        count, wrong = edge_cases.compare({"JAX": XLA()}, sys.argv[1:])
        self.assertEqual([], wrong, "\n" + "\n".join(wrong))
        self.assertGreater(count, 30)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
