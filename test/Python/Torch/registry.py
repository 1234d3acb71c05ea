# REQUIRES: torch
# RUN: %torch_python %s
"""PyTorch's registry of flash attention: which calls a kernel of MoA takes, and its nine results. On a GPU of sm_90
also torch.nn.functional.scaled_dot_product_attention against PyTorch's math implementation in float64."""
import itertools
import unittest
from unittest import mock

import torch
import torch.nn.attention as registry
from torch.nn.attention import SDPBackend, sdpa_kernel

import moa.torch
import reference
from moa.torch import _kernels, _registry

sdpa = torch.nn.functional.scaled_dot_product_attention
HAS_GPU = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
BOUNDS = {torch.bfloat16: 2e-2, torch.float16: 3e-3}


def normal(*shape, dtype=torch.bfloat16, seed=0, device="cpu"):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def by_math(q, k, v, **options):
    with sdpa_kernel(SDPBackend.MATH):
        return sdpa(q, k, v, **options)


def logsumexp(q, k, scale, is_causal):
    q, k = q.double(), k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = q @ k.mT * scale
    if is_causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    return torch.logsumexp(scores, -1)


def facts(tensor):
    """Returns shape, strides and type. Strides of axes of one index mean nothing."""
    strides = [s for s, n in zip(tensor.stride(), tensor.shape) if n != 1]
    return tuple(tensor.shape), strides, tensor.dtype


@unittest.skipUnless(_registry.is_available(), "PyTorch has no registry")
class Logic(unittest.TestCase):

    def refusal(self, q=(2, 4, 9, 64), k=(2, 4, 9, 64), v=None, dtype=torch.bfloat16, dropout=0.0, causal=False,
                debug=False, capability=(9, 0)):
        arrays = [torch.empty(shape, dtype=dtype, device="meta") for shape in (q, k, v or k)]
        return _registry.refusal(*arrays, dropout, causal, debug, capability)

    def test_taken(self):
        for options in ({}, {"dtype": torch.float16}, {"causal": True}, {"q": (2, 8, 9, 64)}, {"q": (2, 4, 1, 64)},
                        *({"q": (1, 2, 3, d), "k": (1, 2, 5, d)} for d in (8, 40, 128, 256))):
            with self.subTest(**options):
                self.assertIsNone(self.refusal(**options))

    def test_refused(self):
        for pattern, options in (
                ("capability", {"capability": (8, 0)}), ("capability", {"capability": (10, 0)}),
                ("capability", {"capability": None}), ("dropout", {"dropout": 0.1}), ("debug", {"debug": True}),
                ("type is torch.float32", {"dtype": torch.float32}), ("four axes", {"q": (4, 9, 64), "k": (4, 9, 64)}),
                ("width is 12", {"q": (2, 4, 9, 12), "k": (2, 4, 9, 12)}),
                ("width is 264", {"q": (2, 4, 9, 264), "k": (2, 4, 9, 264)}),
                ("32 for keys", {"k": (2, 4, 9, 32)}), ("do not match", {"v": (2, 4, 9, 32)}),
                ("do not match", {"k": (1, 4, 9, 64)}), ("empty", {"q": (2, 4, 0, 64)}),
                ("empty", {"k": (2, 4, 0, 64)}),
                ("no multiple", {"k": (2, 3, 9, 64)}),
                ("as many queries", {"k": (2, 4, 10, 64), "causal": True})):
            with self.subTest(pattern=pattern, **options):
                self.assertRegex(self.refusal(**options), pattern)
        q, other = (torch.empty(2, 4, 64, 64, dtype=t, device="meta") for t in (torch.bfloat16, torch.float16))
        self.assertRegex(_registry.refusal(q, other, other, 0.0, False, False, (9, 0)), "types or devices differ")
        self.assertRegex(_registry.refusal(q, q.mT, q, 0.0, False, False, (9, 0)), "last axis is not contiguous")

    def test_results(self):
        for h, g, n, m, causal in ((4, 4, 9, 9, True), (4, 2, 9, 13, False), (4, 1, 1, 33, False), (2, 2, 1, 1, True)):
            q, k, v = (normal(2, length, heads, 64, seed=s).transpose(1, 2)
                       for s, (heads, length) in enumerate(((h, n), (g, m), (g, m))))
            with self.subTest(h=h, g=g, n=n, m=m):
                out, lse, *rest = _registry.attention(q, k, v, causal, 0.3)
                expected = by_math(q.double(), k.double(), v.double(), is_causal=causal, scale=0.3, enable_gqa=True)
                self.assertLess(reference.error(out, expected), BOUNDS[q.dtype])
                self.assertLess(reference.error(lse, logsumexp(q, k, 0.3, causal)), 1e-5)
                metas = (torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in (q, k, v))
                own = torch.ops.aten._scaled_dot_product_flash_attention(*metas, 0.0, causal, scale=0.3)
                for a, b in zip((out, lse, *rest), own):
                    self.assertEqual(*((facts(a), facts(b)) if isinstance(b, torch.Tensor) else (a, b)))
        q = normal(1, 2, 5, 64)
        first, second = (_registry.attention(q, q, q, False, scale)[0] for scale in (None, 0.125))
        self.assertTrue(torch.equal(first, second))

    def test_gradients_are_recorded_elsewhere(self):
        q = normal(1, 2, 5, 64).requires_grad_()
        self.assertFalse(_registry.attention(q, q, q, False, None)[0].requires_grad)

    def test_old_versions(self):
        for owner, name in ((registry, "register_flash_attention_impl"), (torch.library, "get_kernel")):
            with mock.patch.object(owner, name, None), mock.patch.object(torch, "__version__", "2.9.1"):
                self.assertFalse(_registry.is_available())
                with self.assertRaisesRegex(RuntimeError, r"PyTorch 2\.9\.1 has no registry.*install PyTorch 2\.11"):
                    moa.torch.register_flash_attention()

    @unittest.skipUnless(torch.version.cuda and _registry.is_available(), "PyTorch has no registry, or no CUDA")
    def test_activation(self):
        # The operator of CUDA is called with tensors on a CPU, where PyTorch's kernel fails and MoA's runs.
        def call(**options):
            q = normal(1, 2, 5, 64)
            with mock.patch.object(_registry, "capability", lambda device: (9, 0)), \
                    mock.patch.object(_registry, "attention", wraps=_registry.attention) as called:
                results = torch.library.get_kernel(_registry.OPERATOR, "CUDA").call_boxed(
                    torch._C._dispatch_keys(q), q, q, q, options.pop("dropout_p", 0.0), True, False, **options)
            self.assertEqual(called.call_count, 1)
            return results[0], by_math(*[q.double()] * 3, is_causal=True, **options)
        self.assertIn("MoA", registry.list_flash_attention_impls())
        moa.torch.register_flash_attention("another name")
        for name in ("MoA", "another name"):
            registry.activate_flash_attention_impl(name)
            self.assertEqual(registry.current_flash_attention_impl(), name)
            self.assertLess(reference.error(*call(scale=0.3)), BOUNDS[torch.bfloat16])
            with self.assertRaisesRegex(NotImplementedError, "_flash_attention_forward"):
                call(dropout_p=0.5)
        registry.restore_flash_attention_impl()
        self.assertIsNone(registry.current_flash_attention_impl())
        with self.assertRaisesRegex(NotImplementedError, "_flash_attention_forward"):
            call()


@unittest.skipUnless(HAS_GPU and _registry.is_available(), "there is no GPU of sm_90, or PyTorch has no registry")
class OnGPU(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        registry.activate_flash_attention_impl("MoA")

    @classmethod
    def tearDownClass(cls):
        registry.restore_flash_attention_impl()

    def flash(self, *arrays, runs=1, **options):
        """Calls PyTorch's function, and sees how often a kernel of MoA runs."""
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION), mock.patch.object(_kernels, "run", wraps=_kernels.run) as run:
            out = sdpa(*arrays, **options)
        self.assertEqual(run.call_count, runs)
        return out

    def agree(self, q, k, v, runs=1, **options):
        arrays = [t.detach().requires_grad_() for t in (q, k, v)]
        out = self.flash(*arrays, runs=runs, **options)
        upstream = normal(*out.shape, seed=7, dtype=q.dtype, device="cuda")
        found = out.detach(), *torch.autograd.grad(out, arrays, upstream)
        wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
        expected = by_math(*wide, **options)
        expected = expected.detach(), *torch.autograd.grad(expected, wide, upstream.double())
        for name, a, b in zip(("out", "query", "key", "value"), found, expected):
            self.assertLess(reference.error(a, b), BOUNDS[q.dtype], name)

    def arrays(self, b, h, g, n, m, d, dtype=torch.bfloat16):
        return [normal(b, heads, length, d, dtype=dtype, seed=s, device="cuda")
                for s, (heads, length) in enumerate(((h, n), (g, m), (g, m)))]

    def test_lengths(self):
        for n in (1, 2, 17, 64, 129, 1000):
            for dtype, d, causal in itertools.product(BOUNDS, (64, 128), (False, True)):
                with self.subTest(n=n, dtype=dtype, d=d, causal=causal):
                    self.agree(*self.arrays(2, 3, 3, n, n, d, dtype), is_causal=causal)

    def test_other_lengths_of_keys(self):
        for n, m in ((1, 1000), (70, 300), (300, 70)):
            with self.subTest(n=n, m=m):
                self.agree(*self.arrays(2, 4, 4, n, m, 128))

    def test_heads(self):
        for g in (1, 2):
            with self.subTest(g=g):
                self.agree(*self.arrays(2, 4, g, 130, 130, 128), is_causal=True, enable_gqa=True)

    def test_widths(self):
        # 20 is padded to 24 by PyTorch.
        for d in (8, 20, 40, 80, 96, 192, 256):
            with self.subTest(d=d):
                self.agree(*self.arrays(1, 2, 2, 130, 130, d), is_causal=True, scale=0.2)

    def test_facts_of_results(self):
        """Shapes, strides and types are those of PyTorch's kernel, and so is lse."""
        operator = torch.ops.aten._scaled_dot_product_flash_attention
        packed = normal(2, 50, 3, 4, 64, device="cuda").permute(2, 0, 3, 1, 4)
        transposed = [t.transpose(1, 2) for t in self.arrays(2, 50, 50, 4, 4, 64)]
        for q, k, v in (self.arrays(2, 4, 2, 50, 50, 64), packed, transposed,
                        self.arrays(2, 4, 4, 1, 300, 64), self.arrays(1, 1, 1, 1, 1, 128)):
            found = operator(q, k, v, 0.0, False, scale=0.3)
            registry.restore_flash_attention_impl()
            try:
                expected = operator(q, k, v, 0.0, False, scale=0.3)
            finally:
                registry.activate_flash_attention_impl("MoA")
            for place, (a, b) in enumerate(zip(found, expected)):
                with self.subTest(place=place, shape=tuple(q.shape)):
                    self.assertEqual(*((facts(a), facts(b)) if isinstance(b, torch.Tensor) else (a, b)))
                    if isinstance(b, torch.Tensor):
                        self.assertEqual(a.device, b.device)
            self.assertLess(reference.error(found[1], expected[1]), 1e-5)

    def test_compiled(self):
        def model(q, k, v):
            return self.plain(q * 2, k, v).transpose(1, 2).flatten(2)
        q, k, v = (t.requires_grad_() for t in self.arrays(2, 4, 4, 130, 130, 64))
        expected = by_math(*(t.double() for t in (q * 2, k, v)), is_causal=True).transpose(1, 2).flatten(2)
        upstream = normal(*expected.shape, seed=3, device="cuda")
        expected = [expected, *torch.autograd.grad(expected, (q, k, v), upstream.double())]
        for backend in ("aot_eager", "inductor"):
            with self.subTest(backend=backend), mock.patch.object(_kernels, "run", wraps=_kernels.run) as run:
                out = torch.compile(model, fullgraph=True, backend=backend)(q, k, v)
                self.assertEqual(run.call_count, 1)
                for a, b in zip([out, *torch.autograd.grad(out, (q, k, v), upstream)], expected):
                    self.assertLess(reference.error(a, b), BOUNDS[q.dtype])

    @staticmethod
    def plain(q, k, v):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return sdpa(q, k, v, is_causal=True)

    def test_graph(self):
        q, k, v = self.arrays(2, 4, 4, 130, 130, 64)
        self.plain(q, k, v)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = self.plain(q, k, v)
        q.copy_(normal(*q.shape, seed=5, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, self.plain(q, k, v)))

    def test_equal_bits(self):
        q, k, v = self.arrays(2, 4, 2, 500, 500, 128)
        first, second = (self.flash(q, k, v, is_causal=True, enable_gqa=True) for _ in range(2))
        self.assertTrue(torch.equal(first, second))
        self.assertTrue(torch.equal(first[:1], self.flash(q[:1], k[:1], v[:1], is_causal=True, enable_gqa=True)))

    def test_fallback(self):
        """PyTorch's kernel computes the same bits as without MoA."""
        q, k, v = self.arrays(2, 4, 4, 65, 65, 64)
        operator = torch.ops.aten._scaled_dot_product_flash_attention
        calls = [lambda: operator(q, k[:, :, :50], v[:, :, :50], 0.0, True)[0],
                 lambda: operator(q, k, v, 0.2, False, True)[0]]

        def results():
            made = []
            for call in calls:
                torch.manual_seed(1)
                made.append(call())
            torch.manual_seed(1)
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return [*made, sdpa(q, k, v, dropout_p=0.3)]
        with mock.patch.object(_kernels, "run", wraps=_kernels.run) as run:
            found = results()
        self.assertEqual(run.call_count, 0)
        registry.restore_flash_attention_impl()
        try:
            expected = results()
        finally:
            registry.activate_flash_attention_impl("MoA")
        for a, b in zip(found, expected):
            self.assertTrue(torch.equal(a, b))

    def test_restored(self):
        q, k, v = self.arrays(1, 2, 2, 65, 65, 64)
        registry.restore_flash_attention_impl()
        try:
            self.flash(q, k, v, runs=0)
        finally:
            registry.activate_flash_attention_impl("MoA")
        self.flash(q, k, v, runs=1)


if __name__ == "__main__":
    unittest.main()
