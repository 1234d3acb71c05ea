# REQUIRES: torch, moa-python
# RUN: %torch_python %s
"""moa.torch.AdaptiveAttention against torch.nn.MultiheadAttention, in float64 and float32."""
import copy
import math
import unittest

import torch
from torch import nn

import moa.torch
from moa.torch import AdaptiveAttention
from processor import fewer_bits
from reference import BOUNDS, error

F32, F64 = torch.float32, torch.float64


def pair(*arguments, dtype=F64, seed=0, **options):
    """Returns a module of PyTorch and an AdaptiveAttention with its parameters, both in eval mode."""
    torch.manual_seed(seed)
    expected = nn.MultiheadAttention(*arguments, dtype=dtype, **options).eval()
    for parameter in expected.parameters():  # biases are 0 otherwise
        nn.init.normal_(parameter, std=0.3)
    found = AdaptiveAttention(*arguments, dtype=dtype, **options).eval()
    found.load_state_dict(expected.state_dict())
    return expected, found


def heads(module, query, key, value):
    """Returns the attention of each head in float64, written out: [batch, heads, length, width]."""
    q, k, v = (t.double() for t in module.project(query, key, value))
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1) @ v


def identity_projections(module):
    """Makes all projections the identity, so inputs are queries, keys and values, and the output is the heads'."""
    with torch.no_grad():
        eye = torch.eye(module.embed_dim, dtype=module.out_proj.weight.dtype)
        module.in_proj_weight.copy_(eye.repeat(3, 1))
        module.out_proj.weight.copy_(eye)
        for bias in (module.in_proj_bias, module.out_proj.bias):
            bias.zero_()
    return module


@torch.no_grad()
def relative_errors(found, expected):
    """Returns the relative L2 error of each [batch, head] of the output [batch, length, heads·width]."""
    found = found.double().unflatten(-1, (expected.shape[1], -1)).transpose(1, 2)
    return (found - expected).flatten(2).norm(dim=-1) / expected.flatten(2).norm(dim=-1)


class Module(unittest.TestCase):

    def setUp(self):
        guard = torch.no_grad()
        guard.__enter__()
        self.addCleanup(guard.__exit__, None, None, None)

    def compare(self, modules, query, key, value, bound=1e-12, **options):
        expected, found = (m(query, key, value, **options) for m in modules)
        self.assertEqual(len(found), 2)
        self.assertLess(error(found[0], expected[0]), bound)
        if expected[1] is None:
            self.assertIsNone(found[1])
        else:
            self.assertLess(error(found[1], expected[1]), bound)

    def inputs(self, b=3, n=5, m=7, e=12, kdim=None, vdim=None, batch_first=True, dtype=F64):
        made = [torch.randn(b, length, width, dtype=dtype) for length, width in
                ((n, e), (m, kdim or e), (m, vdim or e))]
        return made if batch_first else [t.transpose(0, 1).contiguous() for t in made]

    def test_options(self):
        for options in ({}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True},
                        {"add_bias_kv": True, "add_zero_attn": True, "bias": False}, {"kdim": 10},
                        {"kdim": 9, "vdim": 15, "add_bias_kv": True}, {"dropout": 0.5}):
            for batch_first in (False, True):
                modules = pair(12, 4, batch_first=batch_first, **options)
                inputs = self.inputs(kdim=options.get("kdim"), vdim=options.get("vdim"), batch_first=batch_first)
                with self.subTest(options, batch_first=batch_first):
                    self.compare(modules, *inputs)
                    self.compare(modules, *inputs, need_weights=False)
                    self.compare(modules, *inputs, average_attn_weights=False)

    def test_state_dict(self):
        for options in ({}, {"bias": False, "add_bias_kv": True}, {"kdim": 5, "vdim": 6}):
            expected, found = pair(8, 2, **options)
            self.assertEqual([(name, t.shape) for name, t in expected.state_dict().items()],
                             [(name, t.shape) for name, t in found.state_dict().items()])
            expected.load_state_dict(found.state_dict())

    def test_types(self):
        for dtype in (F32, torch.bfloat16, torch.float16):
            modules = pair(32, 4, dtype=dtype, batch_first=True)
            x = torch.randn(2, 9, 32, dtype=dtype)
            expected = copy.deepcopy(modules[0]).double()(x.double(), x.double(), x.double())
            found = modules[1](x, x, x)
            self.assertEqual((found[0].dtype, found[1].dtype), (dtype, dtype))
            for f, e in zip(found, expected):
                self.assertLess(error(f, e), 2 * BOUNDS[dtype])

    def test_self_attention(self):  # one projection for query, key and value, whose parts are views
        for batch_first in (False, True):
            modules = pair(12, 4, batch_first=batch_first)
            x, y = torch.randn(2, 4, 6, 12, dtype=F64)
            self.compare(modules, x, x, x)
            self.compare(modules, x, y, y)
            self.compare(modules, x, x, y)

    def masks(self, b, h, n, m):
        generator = torch.Generator().manual_seed(1)
        hidden = torch.rand(b * h, n, m, generator=generator) < 0.4
        hidden[..., 0] = False  # every row sees a key
        float_mask = torch.randn(b * h, n, m, generator=generator, dtype=F64).masked_fill(hidden, -math.inf)
        for mask in (hidden, float_mask):
            yield mask
            yield mask[0]

    def test_masks(self):
        b, h, n, m = 3, 4, 5, 7
        padding = torch.arange(m) >= torch.tensor([3, 7, 1])[:, None]
        added = torch.randn(b, m, dtype=F64).masked_fill(padding, -math.inf)
        for options in ({}, {"add_bias_kv": True, "add_zero_attn": True}):
            for batch_first in (False, True):
                modules = pair(12, h, batch_first=batch_first, **options)
                inputs = self.inputs(b, n, m, batch_first=batch_first)
                for attn_mask in (None, *self.masks(b, h, n, m)):
                    for key_padding_mask in (None, padding, added):
                        # PyTorch requires one type of both masks, and warns otherwise.
                        if attn_mask is not None and key_padding_mask is not None and \
                                attn_mask.dtype != key_padding_mask.dtype:
                            continue
                        given = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
                        with self.subTest(options, batch_first=batch_first):
                            self.compare(modules, *inputs, **given)
                            self.compare(modules, *inputs, **given, need_weights=False)

    def test_masks_of_two_types(self):
        modules = pair(12, 4, batch_first=True)
        inputs = self.inputs()
        padding = torch.arange(7) >= torch.tensor([3, 7, 1])[:, None]
        bias = torch.randn(5, 7)
        expected = modules[0](*inputs, attn_mask=bias.double(),
                              key_padding_mask=torch.zeros(3, 7, dtype=F64).masked_fill(padding, -math.inf))
        found = modules[1](*inputs, attn_mask=bias, key_padding_mask=padding)
        for f, e in zip(found, expected):
            self.assertLess(error(f, e), 1e-12)

    def test_causal(self):
        modules = pair(12, 4, batch_first=True)
        x = torch.randn(2, 6, 12, dtype=F64)
        mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
        padding = torch.arange(6) >= torch.tensor([[4], [6]])
        for need_weights in (False, True):
            options = {"need_weights": need_weights, "is_causal": True, "attn_mask": mask}
            self.compare(modules, x, x, x, **options)
            self.compare(modules, x, x, x, key_padding_mask=padding, **options)
            # PyTorch has no is_causal without a mask.
            expected = modules[0](x, x, x, attn_mask=mask, need_weights=need_weights)
            found = modules[1](x, x, x, is_causal=True, need_weights=need_weights)
            for f, e in zip(found, expected):
                self.assertTrue(f is e is None or error(f, e) < 1e-12)
        # Every query sees appended keys.
        for options in ({"add_zero_attn": True}, {"add_bias_kv": True}):
            more = pair(12, 4, **options)
            y = x.transpose(0, 1)
            expected = more[0](y, y, y, attn_mask=mask)
            for given in (mask, None):
                for need_weights in (False, True):
                    found = more[1](y, y, y, attn_mask=given, is_causal=True, need_weights=need_weights)
                    self.assertLess(error(found[0], expected[0]), 1e-12)
        # The hint replaces a mask exactly where PyTorch replaces it.
        wrong = torch.randn(6, 6, dtype=F64)
        for need_weights in (False, True):
            self.compare(modules, x, x, x, attn_mask=wrong, is_causal=True, need_weights=need_weights)

    def test_unbatched(self):
        for batch_first in (False, True):
            for options in ({}, {"kdim": 9, "vdim": 15}):
                modules = pair(12, 4, batch_first=batch_first, **options)
                query, key, value = (t[0] for t in self.inputs(**options))
                padding = torch.arange(7) >= 4
                for attn_mask in (None, torch.arange(7) > torch.arange(5)[:, None],
                                  (torch.arange(4)[:, None, None] + torch.arange(7) > torch.arange(5)[:, None] + 3)):
                    self.compare(modules, query, key, value, attn_mask=attn_mask)
                    self.compare(modules, query, key, value, attn_mask=attn_mask, key_padding_mask=padding,
                                 average_attn_weights=False)
                metrics = modules[1](query, key, value, return_metrics=True)[2]
                self.assertEqual((metrics.plans.tolist(), metrics.decisions), ([0] * 4, ["unmodified"] * 4))
            x = torch.randn(6, 12, dtype=F64)
            self.compare(pair(12, 4, batch_first=batch_first), x, x, x)

    def test_padded_entry(self):
        for bias in (True, False):
            expected, found = pair(12, 4, batch_first=True, bias=bias)
            inputs = self.inputs()
            padding = torch.zeros(3, 7, dtype=torch.bool)
            padding[1] = True
            out, weights = found(*inputs, key_padding_mask=padding)
            self.assertTrue(torch.equal(weights[1], torch.zeros(5, 7, dtype=F64)))
            self.assertTrue(torch.equal(out[1], (found.out_proj.bias if bias else torch.zeros(12)).expand(5, 12)))
            others = expected(*(t[::2] for t in inputs), key_padding_mask=padding[::2])
            self.assertLess(error(out[::2], others[0]), 1e-12)
            self.assertLess(error(weights[::2], others[1]), 1e-12)

    def test_encoder_layer(self):
        """torch.nn.TransformerEncoderLayer calls it, also in its fast path for inference."""
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(12, 4, 20, dropout=0.0, batch_first=True, dtype=F64).eval()
        x = torch.randn(3, 7, 12, dtype=F64)
        mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
        padding = torch.arange(7) >= torch.tensor([3, 7, 1])[:, None]
        expected = [layer(x), layer(x, src_mask=mask, is_causal=True), layer(x, mask, padding)]
        replaced, calls = AdaptiveAttention(12, 4, batch_first=True, dtype=F64).eval(), []
        replaced.load_state_dict(layer.self_attn.state_dict())
        attend = replaced.attend
        replaced.attend = lambda *given: calls.append(given) or attend(*given)
        layer.self_attn = replaced
        found = [layer(x), layer(x, src_mask=mask, is_causal=True), layer(x, mask, padding)]
        self.assertEqual(len(calls), 3)
        for f, e in zip(found, expected):
            self.assertLess(error(f, e), 1e-12)

    def test_errors(self):
        _, module = pair(12, 4, batch_first=True, dropout=0.1)
        x = torch.randn(2, 5, 12, dtype=F64)
        with self.assertRaisesRegex(NotImplementedError, r"dropout is 0\.1 in training.*call eval"):
            module.train()(x, x, x)
        module.eval()
        with torch.enable_grad(), self.assertRaisesRegex(NotImplementedError, r"no gradient.*torch\.no_grad"):
            module(x, x, x)
        for given, text in (
                ((x[0], x, x), "axes"), ((x, x[..., :3], x), r"key has width 3.*takes 12"), ((x, x[:1], x[:1]), "batch"),
                ((x, x, x[:, :2]), r"key has the shape \[2, 5, 12\] and value \[2, 2, 12\]")):
            with self.assertRaisesRegex(ValueError, text):
                module(*given)
        for name, mask, text in (("attn_mask", torch.zeros(5, 4), r"must have \[5, 5\] or \[8, 5, 5\]"),
                                 ("attn_mask", torch.zeros(5, 5, dtype=torch.int32), "boolean or a float"),
                                 ("key_padding_mask", torch.zeros(2, 4), r"must have \[2, 5\]")):
            with self.assertRaisesRegex(ValueError, f"{name}.*{text}"):
                module(x, x, x, **{name: mask})
        for options, text in (({"tolerance": 0}, "tolerance is 0"), ({"tolerance": "1e-2"}, "tolerance is"),
                              ({"adapt_from": 100}, "adapt_from is 100")):
            with self.assertRaisesRegex(ValueError, text):
                AdaptiveAttention(12, 4, **options)


class Adaptive(unittest.TestCase):
    """Heads of 600 queries and keys: enough for variants."""

    def setUp(self):
        guard = torch.no_grad()
        guard.__enter__()
        self.addCleanup(guard.__exit__, None, None, None)
        torch.manual_seed(0)

    def module(self, **options):
        made = AdaptiveAttention(64, 2, batch_first=True, dtype=F32, return_metrics=True, **options).eval()
        return identity_projections(made)

    def check(self, module, query, key, value, tolerance, **options):
        out, weights, metrics = module(query, key, value, need_weights=False, **options)
        self.assertIsNone(weights)
        self.assertEqual(metrics.tolerance, tolerance)
        errors = relative_errors(out, heads(module, query, key, value))
        self.assertLess(errors.max().item(), tolerance)
        return metrics, errors

    def test_precision(self):
        module = self.module(enable_adaptive_precision=True, tolerance=1e-2)
        easy = torch.randn(3, 2, 600, 64)
        easy[0, 1, :, 32:] *= 60  # the second head of the second entry has a few large scores in each row
        metrics, errors = self.check(module, *easy, 1e-2)
        self.assertEqual((metrics.plans.shape, metrics.plans.dtype), ((2, 2), torch.int32))
        self.assertEqual(metrics.plans.tolist(), [[1, 1], [1, 0]])
        self.assertEqual(metrics.variants[0], "unmodified")
        self.assertIn(fewer_bits(), metrics.variants[1])
        self.assertEqual(metrics.decisions, [[metrics.variants[p] for p in row] for row in metrics.plans.tolist()])
        self.assertEqual(metrics.reasons, ())
        # The estimate is near the error of the heads that took the variant, and above the tolerance elsewhere.
        taken = metrics.plans == 1
        self.assertTrue((metrics.estimates[..., 0][taken] <= 1e-2).all())
        self.assertTrue((errors[taken] > 1e-4).all())
        self.assertTrue((errors[taken] < 1.5 * metrics.estimates[..., 0][taken]).all())
        self.assertFalse((metrics.estimates[..., 0][~taken] <= 1e-2).any())
        self.assertTrue((errors[~taken] < 1e-4).all())
        self.assertIn(fewer_bits(), repr(metrics))

    def test_precision_of_a_tolerance(self):
        module = self.module(enable_adaptive_precision=True, tolerance=1e-4)
        metrics, _ = self.check(module, *torch.randn(3, 1, 600, 64), 1e-4)
        self.assertEqual(metrics.plans.tolist(), [[0, 0]])

    def test_precision_under_masks(self):
        module = self.module(enable_adaptive_precision=True)
        q, k, v = torch.randn(3, 2, 600, 64)
        mask = torch.ones(600, 600, dtype=torch.bool).triu(1)
        padding = torch.arange(600) >= torch.tensor([[600], [500]])
        expected = copy.deepcopy(module).double()
        expected.enable_adaptive_precision = False
        for options in ({"attn_mask": mask, "is_causal": True}, {"attn_mask": mask, "key_padding_mask": padding}):
            out, weights, metrics = module(q, k, v, need_weights=False, **options)
            reference = nn.MultiheadAttention(64, 2, batch_first=True, dtype=F64).eval()
            reference.load_state_dict(expected.state_dict())
            exact = reference(q.double(), k.double(), v.double(), need_weights=False, **options)[0]
            exact = exact.unflatten(-1, (2, 32)).transpose(1, 2)
            errors = relative_errors(out, exact)
            self.assertLess(errors.max().item(), 1e-2)
            self.assertGreater(errors.min().item(), 1e-4)
            self.assertEqual(metrics.plans.tolist(), [[1, 1], [1, 1]])

    def few_keys(self, copies, noise):
        key, value = torch.randn(2, 1, 600 // copies, 64)
        key, value = key.repeat(1, copies, 1), value.repeat(1, copies, 1)
        return torch.randn(1, 600, 64), key + noise * torch.randn_like(key), value

    def test_rank(self):
        module = self.module(enable_adaptive_rank=True, tolerance=1e-2)
        q, k, v = self.few_keys(30, 1e-4)
        k[..., 32:] = torch.randn(1, 600, 32)  # the keys of the second head are near no other
        metrics, errors = self.check(module, q, k, v, 1e-2)
        self.assertEqual(metrics.plans.tolist(), [[1, 0]])
        self.assertIn("clusters of similar keys", metrics.variants[1])
        self.assertIn("clusters", metrics.decisions[0][0])
        self.assertEqual(metrics.decisions[0][1], "unmodified")
        self.assertGreater(errors[0, 0].item(), 2 * errors[0, 1].item())
        self.assertTrue(metrics.estimates[0, 0, 0] <= 1e-2)
        self.assertFalse(metrics.estimates[0, 1, 0] <= 1e-2)

    def test_rank_and_precision(self):
        module = self.module(enable_adaptive_rank=True, enable_adaptive_precision=True)
        q, k, v = self.few_keys(30, 1e-4)
        k[..., 32:] = torch.randn(1, 600, 32)
        metrics, _ = self.check(module, q, k, v, 1e-2)
        self.assertEqual(metrics.plans.tolist(), [[1, 2]])
        self.assertEqual(metrics.estimates.shape, (1, 2, 2))
        self.assertIn(fewer_bits(), metrics.decisions[0][1])

    def test_reasons(self):
        module = self.module(enable_adaptive_rank=True)
        q, k, v = self.few_keys(30, 0)
        found = module(q, k, v, is_causal=True, need_weights=False)[2]
        self.assertEqual(found.plans.tolist(), [[0, 0]])
        self.assertEqual(len(found.reasons), 1)
        self.assertRegex(found.reasons[0], "the call has a mask")
        for n, m in ((600, 100), (100, 600)):
            found = module(q[:, :n], k[:, :m], v[:, :m])[2]
            self.assertEqual((found.variants, found.plans.tolist()), (("unmodified",), [[0, 0]]))
            self.assertRegex(found.reasons[0], f"{n} rows and {m} keys are fewer than 256")
        double = AdaptiveAttention(64, 2, dtype=F64, enable_adaptive_precision=True, enable_adaptive_rank=True).eval()
        x = torch.randn(300, 1, 64, dtype=F64)
        found = double(x, x, x, return_metrics=True)[2]
        self.assertEqual(found.plans.tolist(), [[0, 0]])
        self.assertRegex(" ".join(found.reasons), "operands are of f64")
        plain = self.module()(q, k, v)[2]
        self.assertEqual((plain.tolerance, plain.reasons, plain.variants), (None, (), ("unmodified",)))

    def test_reasons_of_rank(self):
        module = self.module(enable_adaptive_rank=True)
        q, k, v = self.few_keys(30, 0)
        found = module(q, k, v, need_weights=False)[2]
        self.assertFalse([reason for reason in found.reasons if "fewer bits" in reason or "--" in reason])

    def test_bytes(self):
        module = self.module(enable_adaptive_precision=True)
        q, k, v = (torch.randn(2, n, 64) for n in (300, 600, 600))
        mask = torch.zeros(300, 600, dtype=torch.bool)
        padding = torch.zeros(2, 600)
        operands, output = 2 * (300 + 2 * 600) * 64 * 4, 2 * 300 * 64 * 4
        for options, more in (({}, 0), ({"attn_mask": mask}, 300 * 600), ({"key_padding_mask": padding}, 2 * 600 * 4),
                              ({"attn_mask": mask.expand(4, -1, -1)}, 4 * 300 * 600)):
            metrics = module(q, k, v, need_weights=False, **options)[2]
            self.assertEqual((metrics.bytes_read, metrics.bytes_written), (operands + more, output))
            self.assertEqual(metrics.sizes, {"B": 2, "H": 2, "N": 300, "M": 600})
            self.assertEqual(metrics.data_movement["inputs"][0]["value"], 2 * 300 * 64)
        half = AdaptiveAttention(64, 2, batch_first=True, dtype=torch.bfloat16).eval()
        x = torch.randn(3, 10, 64, dtype=torch.bfloat16)
        metrics = half(x, x, x, return_metrics=True)[2]
        self.assertEqual((metrics.bytes_read, metrics.bytes_written), (3 * 3 * 10 * 64 * 2, 3 * 10 * 64 * 2))
        # Keys that a mask hides from all queries count too.
        metrics = half(x[:, :4], x, x, is_causal=True, return_metrics=True)[2]
        self.assertEqual(metrics.bytes_read, 3 * (4 + 2 * 10) * 64 * 2)

    def test_lengths_need_no_compilation(self):
        from moa.torch import _kernels
        module = self.module(enable_adaptive_precision=True)
        for n in (300, 40):
            x = torch.randn(1, n, 64)
            module(x, x, x)
        before = _kernels._compiled.cache_info().misses, _kernels._adaptive.cache_info().misses
        for n in (301, 700, 41, 255):
            x = torch.randn(1, n, 64)
            module(x, x, x)
        self.assertEqual((_kernels._compiled.cache_info().misses, _kernels._adaptive.cache_info().misses), before)

    def test_attend(self):
        """Queries one by one over growing keys give the rows of causal attention."""
        module = AdaptiveAttention(12, 4, batch_first=True, dtype=F64).eval()
        x = torch.randn(2, 6, 12, dtype=F64)
        q, k, v = module.project(x, x, x)
        whole, _ = module.attend(q, k, v, is_causal=True)
        for n in range(6):
            row, metrics = module.attend(q[:, :, n:n + 1], k[:, :, :n + 1], v[:, :, :n + 1])
            self.assertLess(error(row, whole[:, :, n:n + 1]), 1e-13)
            self.assertEqual(metrics.sizes["M"], n + 1)
        with self.assertRaisesRegex(ValueError, r"query has the shape \[2, 6, 12\], but must have \[batch, 4"):
            module.attend(x, k, v)

    def test_compile(self):
        """Under torch.compile attention runs outside of the graph."""
        module = AdaptiveAttention(12, 4, batch_first=True, dtype=F64).eval()
        x = torch.randn(2, 6, 12, dtype=F64)
        found = torch.compile(lambda x: module(x * 2, x, x, need_weights=False)[0] + 1, backend="aot_eager")(x)
        self.assertLess(error(found, module(x * 2, x, x)[0] + 1), 1e-13)


if __name__ == "__main__":
    unittest.main()
