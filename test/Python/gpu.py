# REQUIRES: moa-python, gpu
# RUN: %moa_python %s
"""Kernels called with arrays of PyTorch, CuPy and JAX on a GPU, against NumPy in float64: results, streams, graphs.

By hand, with whichever of the libraries are there: PYTHONPATH=build/python python3 test/Python/gpu.py
"""
import importlib.util
import os
import sys
import unittest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.pop(0)  # cuda.py of this folder is not NVIDIA's package

import numpy as np  # noqa: E402

import moa  # noqa: E402

SOURCE = """kernel causal[B, H, G, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], scale : f32) -> (O : T[B, H, N, D], lse : f32[B, H, N])
  require H % G == 0
{
  S = mask([_, _, i, j] j <= i + (M - N), (Q +.* transpose([b < B, h < H] K[b, h / (H / G)])) * scale)
  O = softmax(S) +.* [b < B, h < H] V[b, h / (H / G)]
  lse = logsumexp(S)
}
"""
# The second nest reads an array of the workspace.
CHAIN = """kernel chain[N, M](x : f32[N, M]) -> y : f32[M]
{
  s = [i < N] +/ x[i]
  y = [j < M] +/ [i < N] s[i] * x[i, j]
}
"""
BOUNDS = {"bf16": 3e-3, "f16": 4e-4, "f32": 2e-6}


def expected(q, k, v, scale):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], 1) for a in (k, v))
    s = q @ k.swapaxes(-1, -2) * scale
    n, m = s.shape[-2:]
    s = np.where(np.arange(m) <= np.arange(n)[:, None] + (m - n), s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    return p @ v / total, (top + np.log(total))[..., 0]


def distance(found, wanted):
    return np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted)


class Library:
    """How a test makes arrays of a library and reads them."""

    def __init__(self, name):
        self.module = importlib.import_module(name)
        self.name = name

    def types(self):
        return ("f32", "f16") if self.name == "cupy" else ("f32", "f16", "bf16")

    def make(self, array, dtype):
        full = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]
        if self.name == "torch":
            return self.module.from_numpy(array).to("cuda", getattr(self.module, full))
        if self.name == "cupy":
            return self.module.asarray(array.astype(full))
        return self.module.device_put(self.module.numpy.asarray(array, full), self.module.devices("gpu")[0])

    def read(self, array):
        if self.name == "torch":
            return array.float().cpu().numpy()
        if self.name == "cupy":
            return self.module.asnumpy(array)
        return np.asarray(array.astype("float32"))


class Gpu(unittest.TestCase):
    library = "torch"

    @classmethod
    def setUpClass(cls):
        if cls is Gpu:
            raise unittest.SkipTest("the base of the tests")
        if not importlib.util.find_spec(cls.library):
            raise unittest.SkipTest(f"{cls.library} is not installed")
        cls.own = Library(cls.library)
        cls.rng = np.random.default_rng(0)

    def inputs(self, dtype, n=200, m=300):
        arrays = [self.own.make(self.rng.standard_normal((2, heads, rows, 64), np.float32), dtype)
                  for heads, rows in ((8, n), (2, m), (2, m))]
        return arrays, [self.own.read(a) for a in arrays]

    def test_results(self):
        for dtype in self.own.types():
            kernel = moa.compile(SOURCE, "cuda", T=dtype)
            arrays, values = self.inputs(dtype)
            out, lse = kernel(*arrays, 0.125)
            self.assertIs(type(out), type(arrays[0]))
            self.assertEqual(tuple(out.shape), (2, 8, 200, 64))
            wanted, wanted_lse = expected(*values, 0.125)
            print(f"{self.library} {dtype}: O {distance(self.own.read(out), wanted):.1e}, "
                  f"lse {distance(self.own.read(lse), wanted_lse):.1e}")
            self.assertLess(distance(self.own.read(out), wanted), BOUNDS[dtype])
            self.assertLess(distance(self.own.read(lse), wanted_lse), 2e-6)

    def test_workspace(self):
        kernel = moa.compile(CHAIN, "cuda")
        x = self.rng.standard_normal((70, 90), np.float32)
        array = self.own.make(x, "f32")
        for _ in range(3):
            found = self.own.read(kernel(array))
            self.assertLess(distance(found, x.astype(np.float64).sum(1) @ x.astype(np.float64)), 2e-6)

    def test_many_calls(self):
        """Results feed the next call, without waiting in between."""
        kernel = moa.compile("kernel k[N](x : f32[N]) -> y : f32[N] { y = [i < N] x[i] * 0.5 + 1.0 }", "cuda")
        x = self.own.make(np.full(1000, 3, np.float32), "f32")
        for _ in range(50):
            x = kernel(x + 0)
        self.assertLess(np.abs(self.own.read(x) - 2).max(), 1e-6)

    def test_refusals(self):
        """Each wrong call raises its error, and writes nothing."""
        kernel = moa.compile(SOURCE, "cuda", T="f16")
        (q, k, v), values = self.inputs("f16")
        odd, wide = (self.own.make(np.zeros((2, heads, 300, width), np.float32), "f16")
                     for heads, width in ((3, 64), (2, 72)))
        full = self.own.make(np.zeros((2, 2, 300, 64), np.float32), "f32")
        for what, error, pattern, arguments in (
                ("heads that do not divide", moa.ArgumentError, "requires H % G == 0", (q, odd, odd)),
                ("another length", moa.ArgumentError, "V: ", (q, k, v[:, :, :200])),
                ("another width", moa.ArgumentError, "K: ", (q, wide, v)),
                ("another number of axes", moa.ArgumentError, "K: ", (q, k[0], v)),
                ("another type", moa.ArgumentTypeError, "K: ", (q, full, v)),
                ("an array of the CPU", moa.DeviceError, "copy it there, or compile with target",
                 (q, np.zeros((2, 2, 300, 64), np.float16), v))):
            with self.subTest(what=what), self.assertRaisesRegex(error, pattern) as caught:
                kernel(*arguments, 0.125)
            print(f"{self.library}, {what}: {type(caught.exception).__name__}: {caught.exception}")
        # The device and the kernel still work.
        self.assertLess(distance(self.own.read(kernel(q, k, v, 0.125).O), expected(*values, 0.125)[0]), BOUNDS["f16"])


class Torch(Gpu):

    def test_stream(self):
        """A call goes to the current stream: it waits for work queued there, and for nothing else."""
        torch = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="bf16")
        (q, k, v), values = self.inputs("bf16")
        kernel(q, k, v, 0.125)
        torch.cuda.synchronize()
        late = torch.zeros_like(q)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            late.copy_(q)
            out = kernel(late, k, v, 0.125).O
            done = side.record_event()
        self.assertFalse(done.query())
        other = kernel(q, k, v, scale=0.125, stream=torch.cuda.default_stream()).O
        torch.cuda.default_stream().synchronize()
        self.assertFalse(done.query())
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, other))
        self.assertLess(distance(self.own.read(out), expected(*values, 0.125)[0]), BOUNDS["bf16"])

    def test_graph(self):
        torch = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="bf16")
        (q, k, v), _ = self.inputs("bf16")
        kernel(q, k, v, 0.125)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, lse = kernel(q, k, v, 0.125)
        for seed in range(3):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(seed)))
            graph.replay()
            self.assertTrue(torch.equal(out, kernel(q, k, v, 0.125).O))

    def test_more_refusals(self):
        torch = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="bf16")
        (q, k, v), values = self.inputs("bf16")
        out = torch.full_like(q, 7), torch.full(q.shape[:-1], 7.0, device="cuda")
        turned = k.transpose(-1, -2).contiguous().transpose(-1, -2)
        shifted = torch.empty(k.numel() + 1, dtype=k.dtype, device="cuda")[1:].view(k.shape)
        for what, error, pattern, arguments, options in (
                ("requires a gradient", moa.ArgumentTypeError, "Q: requires a gradient",
                 (q.clone().requires_grad_(), k, v), {}),
                ("a last axis that is not adjacent", moa.ArgumentError, "K: ", (q, turned, v), {}),
                ("a base that is not aligned", moa.ArgumentError, "K: ", (q, shifted, v), {}),
                ("a result on the CPU", moa.DeviceError, "O: ", (q, k, v), {"out": (out[0].cpu(), out[1])}),
                ("a result that overlaps an input", moa.ArgumentError, "O", (q, k, v), {"out": (q, out[1])}),
                ("a workspace on the CPU", moa.Error, "workspace", (q, k, v),
                 {"workspace": torch.empty(1 << 22, dtype=torch.uint8)})):
            with self.subTest(what=what), self.assertRaisesRegex(error, pattern) as caught:
                kernel(*arguments, 0.125, **{"out": out, **options})
            print(f"{self.library}, {what}: {type(caught.exception).__name__}: {caught.exception}")
        torch.cuda.synchronize()
        self.assertTrue((out[0] == 7).all() and (out[1] == 7).all(), "nothing is written")
        with torch.no_grad():
            found = kernel(q.clone().requires_grad_(), k, v, 0.125).O
        self.assertLess(distance(self.own.read(found), expected(*values, 0.125)[0]), BOUNDS["bf16"])


class Cupy(Gpu):
    library = "cupy"

    def test_stream(self):
        cupy = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="f16")
        (q, k, v), values = self.inputs("f16")
        default = kernel(q, k, v, 0.125).O
        side = cupy.cuda.Stream(non_blocking=True)
        with side:
            out = kernel(q, k, v, 0.125).O
        side.synchronize()
        given = kernel(q, k, v, 0.125, stream=side).O
        side.synchronize()
        for found in (default, out, given):
            self.assertLess(distance(self.own.read(found), expected(*values, 0.125)[0]), BOUNDS["f16"])

    def test_graph(self):
        cupy = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="f16")
        (q, k, v), _ = self.inputs("f16")
        side = cupy.cuda.Stream(non_blocking=True)
        with side:
            results = kernel(q, k, v, 0.125)
            side.synchronize()
            side.begin_capture()
            kernel(q, k, v, 0.125, out=results)
            graph = side.end_capture()
            q *= 2
            graph.launch()
            side.synchronize()
        wanted = expected(*(self.own.read(a) for a in (q, k, v)), 0.125)[0]
        self.assertLess(distance(self.own.read(results.O), wanted), BOUNDS["f16"])


class Jax(Gpu):
    library = "jax"

    def test_results_of_jit(self):
        """Inputs that are still being computed are awaited, and results are ordinary arrays."""
        jax = self.own.module
        kernel = moa.compile(SOURCE, "cuda", T="f32")
        (q, k, v), _ = self.inputs("f32")
        double = jax.jit(lambda x: x * 2)
        out = kernel(double(q), k, v, 0.125).O
        total = jax.jit(lambda x: x.sum())(out)
        wanted = expected(*(self.own.read(a) for a in (q * 2, k, v)), 0.125)[0]
        self.assertLess(distance(self.own.read(out), wanted), BOUNDS["f32"])
        self.assertLess(abs(float(total) - wanted.sum()), 1e-2)

    def test_out(self):
        kernel = moa.compile("kernel k[N](x : f32[N]) -> y : f32[N] { y = x + x }", "cuda")
        x = self.own.make(np.ones(5, np.float32), "f32")
        with self.assertRaisesRegex(moa.ArgumentError, "y: the result cannot be written"):
            kernel(x, out=x + 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
