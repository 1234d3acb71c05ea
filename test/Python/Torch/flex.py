# REQUIRES: torch
# RUN: %torch_python %s
"""moa.torch.flex_attention against FlexAttention without compiling, and against NumPy, in float64."""
import math
import random
import unittest

import numpy as np
import torch
import torch._dynamo.testing

import moa.torch
import reference
from moa.torch import UnsupportedError, _flex, flex_attention
from torch.nn.attention import flex_attention as flex

INFINITE = float("inf")
generator = torch.Generator().manual_seed(11)


def normal(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def integers(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=generator).to(dtype)


class Flex(unittest.TestCase):

    def agree(self, score_mod=None, mask_mod=None, shape=(2, 3, 19, 23, 8), bound=None, dtype=torch.float64, seed=0,
              **options):
        q, k, v = reference.inputs(*shape, dtype=dtype, seed=seed)
        errors = reference.differ(q, k, v, score_mod, mask_mod, **options)
        self.assertLess(max(errors), bound or reference.BOUNDS[dtype], errors)

    # Operations. Several stand in one function, because each function is compiled.

    def test_arithmetic(self):
        self.agree(lambda s, b, h, i, j: (s + 1) * 2 - s / 3 + (3 - s) + 1 / (s * s + 1) - (-s) + s ** 2 + s ** 3
                   + torch.abs(s) ** 2.5 + torch.sqrt(s.abs()) + torch.rsqrt(s * s + 1) + torch.add(s, s, alpha=0.5))

    def test_elementary(self):
        self.agree(lambda s, b, h, i, j: torch.exp(s / 4) + torch.exp2(-s) + torch.log(s * s + 1) + torch.log2(s * s + 2)
                   + torch.tanh(s) + torch.sin(s) * torch.cos(s) + torch.erf(s) + torch.tan(s / 4) + torch.log1p(s * s)
                   + torch.expm1(s / 8) + torch.sigmoid(s) + torch.reciprocal(s * s + 3))

    def test_angles(self):
        self.agree(lambda s, b, h, i, j: torch.asin(torch.sin(s)) + torch.acos(torch.cos(s)) + torch.atan(s * 3)
                   + torch.atan2(s, i - j) + torch.sinh(s) + torch.cosh(s / 2) + torch.sinh(s * 4) * 0.01)

    def test_small_arguments(self):
        self.agree(lambda s, b, h, i, j: (torch.log1p(s * 1e-9) + torch.expm1(s * 1e-9) + torch.sinh(s * 1e-9)
                                          + torch.asin(s * 1e-9) + torch.atan(s * 1e-9)) * 1e9)

    def test_rounding(self):
        self.agree(lambda s, b, h, i, j: torch.floor(s * 3) + torch.ceil(s * 5) + torch.trunc(s * 7) + torch.round(s * 9)
                   + torch.frac(s) + torch.sign(s) + torch.round((i - j) * 0.5) + torch.trunc((i - j) / 4)
                   + torch.div(s, 0.25, rounding_mode="trunc"))

    def test_remainders(self):
        t, u = normal(19) * 9, normal(23)
        u[3], t[4] = 0.25, -0.0
        self.agree(lambda s, b, h, i, j: s + t[i] % u[j] + 0.1 * (t[i] // u[j]) + torch.fmod(t[i], u[j]) + t[i] % -0.5
                   + 2.5 % u[j] + torch.remainder(t[i], i + 1) + torch.floor_divide(t[i], 3) + (i - 4) // u[j]
                   + torch.div(t[i], u[j], rounding_mode="floor") * 0.1)

    def test_remainders_of_narrow_floats(self):
        # Each result is rounded to the type of the operands.
        t, u = normal(19, dtype=torch.bfloat16) * 9, normal(23, dtype=torch.bfloat16)
        v, w = normal(19, dtype=torch.float16) * 9, normal(23, dtype=torch.float32)
        self.agree(lambda s, b, h, i, j: s + t[i] % u[j] + t[i].float() // u[j] * 0.1 + torch.fmod(t[i], u[j])
                   + v[i] % -0.3 + w[j] % 0.3 + torch.fmod(w[j], 0.3) + w[j] // 0.3 + torch.round(w[j] * 3) + torch.log1p(t[i].abs())
                   + torch.expm1(u[j]), bound=1e-12)

    def test_remainders_of_infinite_scores(self):
        self.agree(lambda s, b, h, i, j: torch.trunc(torch.where(j > i, -INFINITE, s)))
        self.agree(lambda s, b, h, i, j: torch.round(torch.where(j > i + 2, -INFINITE, s * 4)) // 2)
        self.agree(lambda s, b, h, i, j: s + torch.log1p(-1.0 * (j == i + 1)))

    def test_choices(self):
        self.agree(lambda s, b, h, i, j: torch.maximum(s, s * 2) + torch.minimum(s, 0.3 * s) + s.clamp(-0.5, 0.7)
                   + s.clamp(min=0.1) + s.clamp(max=0.2) + torch.relu(s) + torch.where(s > 0.2, s, -s)
                   + torch.fmax(s, s * s) + torch.masked_fill(s, i == j, 2.0) + torch.nn.functional.leaky_relu(s, 0.1)
                   + torch.nn.functional.softplus(s) + torch.nn.functional.silu(s) + torch.nn.functional.gelu(s))

    def test_integers(self):
        self.agree(lambda s, b, h, i, j: s + 0.01 * ((i - j) // 3 + (i - j) % 5 + (i * j) ** 2 % 7 + (i & 5) + (j | 2)
                                                     + (i ^ j) + (~i) + (j << 2) + (i >> 1) + abs(i - j) + (-j)
                                                     + torch.fmod(i - j, 4)
                                                     + torch.div(i - j, 3, rounding_mode="trunc")
                                                     + torch.minimum(i, j).clamp(2, 9)))

    def test_narrow_integers(self):
        t, u = integers(-128, 128, 19, dtype=torch.int8), integers(0, 256, 23, dtype=torch.uint8)
        w = integers(-2**31, 2**31, 19, dtype=torch.int32)
        self.agree(lambda s, b, h, i, j: s + 0.01 * (t[i] * t[i] + u[j] * u[j] - u[j]) + 1e-10 * (w[i] * 3 + w[i]))

    def test_booleans(self):
        flags = integers(0, 2, 19).bool()
        self.agree(lambda s, b, h, i, j: s + (flags[i] & (j > 3)) + (flags[i] | (j < 9)) * 2 + (flags[i] ^ (i > j)).int()
                   + torch.logical_not(flags[i]).float() + (~flags[i]) * 0.5
                   + torch.where(torch.logical_and(i, j) != torch.logical_xor(i > 2, j > 2), 1.5, 0.0))

    def test_types_of_results(self):
        # An integer divided by an integer is float32; a bfloat16 product is rounded to bfloat16.
        t = normal(23, dtype=torch.bfloat16)
        self.agree(lambda s, b, h, i, j: s + i / 3 + (j + 1) * 0.1 + t[j] * t[j] * 3 + s.to(torch.float16)
                   + (s * 3).int() + i.to(torch.bfloat16), bound=1e-12)

    def test_rounding_once(self):
        # An operation of 16-bit floats is computed in float32 and rounded once.
        t, u = normal(23, dtype=torch.bfloat16), normal(19, dtype=torch.float16)
        self.agree(lambda s, b, h, i, j: s + torch.sigmoid(t[j]) + torch.nn.functional.silu(u[i]) + u[i] ** 3
                   + torch.nn.functional.softplus(t[j]) + torch.round(t[j]) + torch.div(t[j], 0.3, rounding_mode="trunc")
                   + torch.nn.functional.gelu(u[i]) + torch.tanh(t[j]) + torch.nn.functional.elu(t[j]), bound=1e-12)

    def test_in_place(self):
        def score(s, b, h, i, j):
            s = s * 1.5
            s += i - j
            s.mul_(0.5)
            return s
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        out = flex_attention(q, k, v, score)
        expected, _ = reference.eager(q, k, v, lambda s, b, h, i, j: (s * 1.5 + i - j) * 0.5)
        self.assertLess(reference.error(out, expected), 1e-13)

    def test_captured_changes(self):
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        counts = torch.zeros(3)

        def score(s, b, h, i, j):
            counts.add_(1)
            return s + counts[0]
        with self.assertRaisesRegex(UnsupportedError, "a captured tensor changes"):
            flex_attention(q, k, v, score)
        self.assertFalse(counts.any())

    # Scores of -inf.

    def test_where(self):
        self.agree(lambda s, b, h, i, j: torch.where((i >= j + 4) & (j != 2), s * 2, -INFINITE))
        self.agree(lambda s, b, h, i, j: torch.where(j > 3, torch.where(j > i, -INFINITE, s) + 1, -INFINITE) * 0.5)
        self.agree(lambda s, b, h, i, j: torch.where(i < 5, torch.where(j < 4, s, -INFINITE),
                                                     torch.where(j < 8, -INFINITE, s + 1)), lambda b, h, i, j: i != 7)
        self.agree(lambda s, b, h, i, j: s.masked_fill(i < j * 2, torch.tensor(-INFINITE)))

    def test_no_score(self):
        # Scores of -inf that no condition shows: the sign of a -inf changes, a logarithm, a captured bias.
        hidden = torch.where(integers(0, 3, 19, 23) == 0, 0.0, -INFINITE).double()
        hidden[4] = -INFINITE
        self.agree(lambda s, b, h, i, j: s + hidden[i, j])
        self.agree(lambda s, b, h, i, j: torch.log((i - 5).clamp(min=0).double()) + s)
        self.agree(lambda s, b, h, i, j: -torch.where(j < i, -s, INFINITE))
        minus = torch.tensor(-INFINITE)
        self.agree(lambda s, b, h, i, j: torch.where(j < i, s, minus))
        self.agree(lambda s, b, h, i, j: s - hidden.abs()[i, j])

    def test_rows_of_nothing(self):
        q, k, v = reference.inputs(1, 1, 6, 7, 8)
        out, lse = flex_attention(q, k, v, lambda s, b, h, i, j: torch.where(i > 2, s, -INFINITE), return_lse=True)
        self.assertEqual(out[0, 0, :3].abs().max(), 0)
        self.assertTrue(torch.isneginf(lse[0, 0, :3]).all() and torch.isfinite(lse[0, 0, 3:]).all())
        out, lse = flex_attention(q, k, v, mask_mod=lambda b, h, i, j: torch.zeros((), dtype=torch.bool), return_lse=True)
        self.assertTrue(out.abs().max() == 0 and torch.isneginf(lse).all())

    # Captured tensors.

    def test_captured(self):
        row, table, other = normal(19), normal(4, 7), normal(2, 3, 19, 23, dtype=torch.float32)
        index, zero, f16 = integers(0, 7, 2, 23), torch.tensor(0.7), normal(3, dtype=torch.float16)
        self.agree(lambda s, b, h, i, j: s * row[i] + table[h, index[b, j]] + other[b, h, i, j] * zero + f16[h]
                   + table[-1, -2] + table[2][index[b, j]])

    def test_negative_subscripts(self):
        table, lengths = normal(45), torch.tensor([17, 11])
        self.agree(lambda s, b, h, i, j: s + table[i - j] + table[-j - 1], lambda b, h, i, j: j < lengths[b])

    def test_parts_of_captured(self):
        table, vectors = normal(5, 23, 6)[::2, :, 1:].transpose(0, 2), normal(2, 19, 4)
        keys = normal(23, 4)
        self.agree(lambda s, b, h, i, j: s + table[1:4, j, 2].sum() + table[:, j, 0].amax() + (vectors[b, i] * keys[j]).mean()
                   + torch.dot(vectors[b, i], keys[j]) + (vectors[b, i] > 0).any() * 0.3 + vectors[b, i].prod(),
                   bound=1e-12)

    def test_captured_double(self):
        # The query is float32, but a captured float64 tensor makes all arithmetic after it float64.
        bias = normal(19, 23)
        q, k, v = reference.inputs(2, 3, 19, 23, 8, dtype=torch.float32)
        out, lse = flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[i, j], return_lse=True)
        expected, expected_lse = reference.eager(q, k, v, lambda s, b, h, i, j: s + bias[i, j])
        self.assertEqual((out.dtype, lse.dtype), (torch.float32, torch.float64))
        self.assertEqual(lse.dtype, expected_lse.dtype)
        self.assertLess(reference.error(out, expected), 1e-6)

    def test_changed_captures(self):
        # The function is traced in each call, so it reads the values of the call.
        bias, factor = normal(23), [2.0]
        score = lambda s, b, h, i, j: s * factor[0] + bias[j]
        self.agree(score)
        bias.mul_(-3)
        factor[0] = 0.5
        self.agree(score)

    def test_sharing(self):
        def score(s, b, h, i, j):
            for n in range(50):
                s = s * 0.7 + torch.sin(s) * torch.cos(s + n)
            return s
        self.agree(score, shape=(1, 1, 5, 6, 8), bound=1e-11)

    # Shapes, types and block masks.

    def test_shapes(self):
        mask = lambda b, h, i, j: i + h >= j - b
        for shape in ((1, 1, 1, 1, 8), (1, 4, 1, 33, 16, 24), (3, 1, 65, 2, 24, 8), (2, 6, 13, 17, 8, 8, 2)):
            with self.subTest(shape=shape):
                self.agree(lambda s, b, h, i, j: s + 0.1 * (h - b), mask, shape, enable_gqa=len(shape) == 7)

    def test_types(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                q, k, v = reference.inputs(2, 2, 40, 50, 32, dtype=dtype)
                mods = lambda s, b, h, i, j: 5 * torch.tanh(s / 5), lambda b, h, i, j: j <= i + 10
                out = flex_attention(q, k, v, mods[0], mask_mod=mods[1])
                expected, _ = reference.eager(q.double(), k.double(), v.double(), *mods)
                self.assertEqual(out.dtype, dtype)
                self.assertLess(reference.error(out, expected), reference.BOUNDS[dtype])

    def test_strides(self):
        q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in reference.inputs(2, 3, 9, 11, 8))
        self.assertLess(max(reference.differ(q, k[:, :1].expand(-1, 3, -1, -1), v[..., ::2])), 1e-13)

    def test_empty(self):
        for n, m in ((0, 5), (5, 0), (0, 0)):
            q, k, v = reference.inputs(2, 2, n, m, 8)
            out, lse = flex_attention(q, k, v, return_lse=True)
            self.assertEqual((tuple(out.shape), tuple(lse.shape)), ((2, 2, n, 8), (2, 2, n)))
            self.assertTrue((out == 0).all() and torch.isneginf(lse).all())

    def test_block_masks(self):
        q, k, v = reference.inputs(2, 2, 32, 48, 8)
        mask = flex.create_block_mask(lambda b, h, i, j: i >= j - b, 2, 2, 32, 48, device="cpu", BLOCK_SIZE=16)
        expected = flex.flex_attention(q, k, v, block_mask=mask)
        self.assertLess(reference.error(flex_attention(q, k, v, block_mask=mask), expected), 1e-13)
        # A mask of tables alone: the listed blocks are seen whole.
        count, index = torch.tensor([[[1, 2]]]), torch.tensor([[[[2, 0, 1], [0, 1, 2]]]])
        tables = flex.BlockMask.from_kv_blocks(torch.zeros_like(count), torch.zeros_like(index), count, index, BLOCK_SIZE=16,
                                               seq_lengths=(32, 48))
        seen = torch.zeros(32, 48, dtype=torch.bool)
        seen[:16, 32:], seen[16:, :32] = True, True
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
        self.assertLess(reference.error(flex_attention(q, k, v, block_mask=tables), expected), 1e-13)
        with self.assertRaisesRegex(ValueError, "for 32 queries"):
            flex_attention(q[:, :, :20], k, v, block_mask=mask)

    def test_results(self):
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        mask = lambda b, h, i, j: i > j
        out, aux = flex_attention(q, k, v, mask_mod=mask, return_aux=flex.AuxRequest(lse=True, max_scores=True))
        i, j = torch.arange(9)[:, None], torch.arange(11)
        scores = torch.where(mask(0, 0, i, j), q @ k.transpose(-1, -2) / math.sqrt(8), -INFINITE)
        self.assertLess(reference.error(aux.max_scores, scores.amax(-1)), 1e-14)
        self.assertLess(reference.error(aux.lse, scores.logsumexp(-1)), 1e-14)

    # torch.compile.

    def same_compiled(self, model, *calls, **options):
        """Compiles without a break of the graph, compares with the function, and returns the number of graphs."""
        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(model, fullgraph=True, backend=counter, **options)
        for arguments in calls:
            torch.testing.assert_close(compiled(*arguments), model(*arguments), rtol=0, atol=0)
        return counter.frame_count

    def test_compiled(self):
        slope, extra = normal(2), normal(11, dtype=torch.bfloat16)

        def model(q, k, v, bias):
            def score(s, b, h, i, j):
                return s + slope[h] * j + bias[i, j] + extra[j] * torch.tensor(0.5) + bias[0, -1]
            out, lse = flex_attention(q * 2, k, v, score, mask_mod=lambda b, h, i, j: bias[i, j] > -1, return_lse=True)
            return out.flatten(1) + 1, lse
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        # Captured tensors are inputs of the graph, so new values need no new graph.
        self.assertEqual(self.same_compiled(model, (q, k, v, normal(9, 11)), (q, k, v, normal(9, 11))), 1)
        slope.mul_(-1)
        self.same_compiled(model, (q, k, v, normal(9, 11)))

    def test_compiled_lengths(self):
        model = lambda q, k, v, t: flex_attention(q, k, v, lambda s, b, h, i, j: s + t[i, j, 1] * t[j, -1].sum(),
                                                  mask_mod=lambda b, h, i, j: i + 3 >= j, enable_gqa=True)
        calls = [(*reference.inputs(2, 4, n, m, 8, g=2), normal(m, m, 3)) for n, m in ((9, 11), (5, 30), (23, 24))]
        self.same_compiled(model, *calls, dynamic=True)
        self.same_compiled(model, *calls)

    def test_compiled_numbers(self):
        model = lambda q, k, v, c, w: flex_attention(q, k, v, lambda s, b, h, i, j: s * c + (j - i) * c,
                                                     mask_mod=lambda b, h, i, j: (i - j).abs() < w, scale=c / 4)
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        self.same_compiled(model, *((q, k, v, c, w) for c, w in ((0.5, 3), (0.75, 4), (1.25, 6))))

    def test_compiled_block_masks(self):
        q, k, v = reference.inputs(1, 2, 24, 24, 8)
        causal = flex.create_block_mask(lambda b, h, i, j: j <= i, 1, 1, 24, 24, device="cpu", BLOCK_SIZE=8)
        table = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=torch.int32)[None, None]
        order = table.argsort(dim=-1, descending=True, stable=True).int()
        tables = flex.BlockMask.from_kv_blocks(table.sum(-1).int(), order, BLOCK_SIZE=8, seq_lengths=(24, 24))

        def model(q, k, v, mask):
            out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=flex.AuxRequest(lse=True, max_scores=True))
            return out, aux.lse, aux.max_scores
        self.same_compiled(model, (q, k, v, causal))
        self.same_compiled(model, (q, k, v, tables))

    def test_compiled_modules(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = torch.nn.Parameter(normal(2))
                self.register_buffer("offset", normal(11))

            def forward(self, q, k, v):
                return flex_attention(q, k, v, lambda s, b, h, i, j: s + self.slope[h] * self.offset[j])
        model, arrays = Model(), reference.inputs(1, 2, 9, 11, 8)
        with torch.no_grad():
            self.same_compiled(model, arrays)
        with self.assertRaisesRegex(Exception, "requires a gradient"):
            torch.compile(model, fullgraph=True, backend="aot_eager")(*arrays)
        self.refuses(UnsupportedError, "requires a gradient", lambda s, b, h, i, j: s + model.slope[h])

    def test_compiled_refusal(self):
        model = lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: torch.lgamma(s))
        with self.assertRaisesRegex(Exception, "aten.lgamma.default: the specification language has no operation"):
            torch.compile(model, fullgraph=True, backend="aot_eager")(*reference.inputs(1, 2, 9, 11, 8))

    def test_operator(self):
        q, k, v = reference.inputs(1, 2, 9, 11, 8)
        bias = normal(9, 11)
        score = lambda s, b, h, i, j: s + bias[i, j]
        traced = _flex.Traced(q, k, score, None)
        text = _flex.specification(traced, q, k, v, ["lse", "top"])
        arguments = (text, q, k, v, [bias], 0.3, 2, torch.float64)
        torch.library.opcheck(torch.ops.moa.flex_attention.default, arguments)
        out, lse, _ = torch.ops.moa.flex_attention(*arguments)
        expected = flex_attention(q, k, v, score, scale=0.3, return_lse=True)
        torch.testing.assert_close((out, lse), expected, rtol=0, atol=0)
        with self.assertRaisesRegex(NotImplementedError, "no gradient"):
            torch.ops.moa.flex_attention(text, q.clone().requires_grad_(), *arguments[2:])[0].sum().backward()

    def test_numpy(self):
        q, k, v = reference.inputs(2, 2, 7, 9, 8)
        slope = normal(2)
        out, lse = flex_attention(q, k, v, lambda s, b, h, i, j: s + slope[h] * (j - i), scale=-0.4,
                                  mask_mod=lambda b, h, i, j: (j <= i) & (j >= 2 * b), return_lse=True)
        Q, K, V = (t.numpy() for t in (q, k, v))
        i, j = np.arange(7)[:, None], np.arange(9)
        for b in range(2):
            for h in range(2):
                S = -0.4 * Q[b, h] @ K[b, h].T + slope[h].item() * (j - i)
                S = np.where((j <= i) & (j >= 2 * b), S, -np.inf)
                some = np.isfinite(S).any(axis=1)
                P = np.zeros_like(S)
                P[some] = np.exp(S[some] - S[some].max(axis=1, keepdims=True))
                sums = P.sum(axis=1, keepdims=True)
                np.testing.assert_allclose(out[b, h].numpy(), P / np.where(sums, sums, 1) @ V[b, h], atol=1e-14)
                with np.errstate(divide="ignore"):
                    np.testing.assert_allclose(lse[b, h].numpy(), np.log(np.exp(S).sum(axis=1)), atol=1e-13)

    # Random functions.

    def test_random(self):
        for seed in range(16):
            with self.subTest(seed=seed):
                made = random.Random(seed)
                shape = tuple(made.choice(c) for c in ((1, 2), (1, 3), (1, 5, 18, 40), (1, 7, 33), (8, 16), (8, 24)))
                captured = Captures(shape, made)
                score, mask = tree(made, captured, "float", 4), tree(made, captured, "bool", 3)
                hidden = tree(made, captured, "bool", 2)
                score_mod = lambda s, b, h, i, j: torch.where(hidden(s, b, h, i, j), torch.tanh(score(s, b, h, i, j)) * 3
                                                              + s, -INFINITE)
                # A rounded intermediate of float32 may differ in the last bit.
                self.agree(score_mod, lambda b, h, i, j: mask(None, b, h, i, j), shape, bound=1e-6, seed=seed)

    # Refusals.

    def refuses(self, error, pattern, score_mod=None, mask_mod=None, **options):
        q, k, v = reference.inputs(1, 2, 8, 8, 8)
        with self.assertRaisesRegex(error, pattern):
            flex_attention(q, k, v, score_mod, mask_mod=mask_mod, **options)

    def test_refusals_of_operations(self):
        here = r"flex\.py:\d+: "
        self.refuses(UnsupportedError, here + r"(.|\n)*round with decimals", lambda s, b, h, i, j: torch.round(s, decimals=2))
        self.refuses(UnsupportedError, here + r"(.|\n)*aten.lgamma", lambda s, b, h, i, j: torch.lgamma(s))
        self.refuses(UnsupportedError, here + r"(.|\n)*aten.rand", lambda s, b, h, i, j: s + torch.rand_like(s))
        self.refuses(UnsupportedError, here + r"(.|\n)*torch.where instead of if",
                     lambda s, b, h, i, j: s if i > j else -s)
        self.refuses(UnsupportedError, here + r"(.|\n)*torch.where instead of if", lambda s, b, h, i, j: s * math.exp(i))
        self.refuses(UnsupportedError, "returned torch.int64, not a boolean", mask_mod=lambda b, h, i, j: i)
        self.refuses(UnsupportedError, "requires a gradient", lambda s, b, h, i, j, t=normal(2).requires_grad_(): s + t[h])

    def test_refusals_of_indices(self):
        table = normal(5)
        self.refuses(IndexError, "index goes to 7, but axis 0 of the captured tensor has extent 5",
                     lambda s, b, h, i, j: s + table[i])
        self.refuses(IndexError, "index 5 is out of", lambda s, b, h, i, j: s + table[5])

    def test_refusals_of_arguments(self):
        q, k, v = reference.inputs(1, 4, 8, 8, 8)
        with self.assertRaisesRegex(ValueError, "enable_gqa=True"):
            flex_attention(q, k[:, :2], v[:, :2])
        with self.assertRaisesRegex(ValueError, "no multiple"):
            flex_attention(q, k[:, :3], v[:, :3], enable_gqa=True)
        with self.assertRaisesRegex(ValueError, "convert"):
            flex_attention(q, k.float(), v)
        with self.assertRaisesRegex(NotImplementedError, "no gradient"):
            flex_attention(q.requires_grad_(), k, v)


class Captures:
    """Tensors that random functions read."""

    def __init__(self, shape, made):
        b, h, n, m = shape[:4]
        torch.manual_seed(made.randrange(1000))
        self.floats = [torch.randn(h, dtype=torch.float64), torch.randn(b, n), torch.randn(m, dtype=torch.float64),
                       torch.randn(n, m).to(torch.bfloat16)]
        self.float_axes = ["h", "bi", "j", "ij"]
        self.integers = [torch.randint(-9, 9, (m,)), torch.randint(0, 5, (b, n), dtype=torch.int32)]
        self.integer_axes = ["j", "bi"]
        self.bools = [torch.rand(n) < 0.5, torch.rand(b, m) < 0.5]
        self.bool_axes = ["i", "bj"]
        self.table = torch.randn(n + m + 40, dtype=torch.float64)


def tree(made, captured, kind, depth):
    """Returns a random function (s, b, h, i, j) -> value of a kind."""
    leaf = depth == 0 or made.random() < 0.15

    def read(tensors, axes):
        k = made.randrange(len(tensors))
        return lambda *a, t=tensors[k], names=axes[k]: t[tuple(a["sbhij".index(c)] for c in names)]

    sub = lambda k: tree(made, captured, k, depth - 1)
    if kind == "float":
        if leaf:
            if made.random() < 0.5:
                return read(captured.floats, captured.float_axes)
            constant = round(made.uniform(-2, 2), 3)
            return lambda s, b, h, i, j: (0.5 if s is None else s) * constant
        choice = made.randrange(9)
        if choice < 3:
            x, y, op = sub("float"), sub("float"), made.choice([torch.add, torch.sub, torch.mul])
            return lambda *a: op(x(*a), y(*a))
        if choice < 5:
            x, op = sub("float"), made.choice([torch.tanh, torch.sin, torch.erf, torch.abs, torch.sigmoid, torch.neg])
            return lambda *a: op(x(*a))
        if choice == 5:
            p, x, y = sub("bool"), sub("float"), sub("float")
            return lambda *a: torch.where(p(*a), x(*a), y(*a))
        if choice == 6:
            x = sub("int")
            return lambda *a: captured.table[x(*a) % 29 - 7]
        if choice == 7:
            x, constant = sub("int"), made.choice([2, 7, 0.5])
            return lambda *a: x(*a) / constant * 0.01
        x, y = sub("float"), sub("float")
        return lambda *a: torch.minimum(x(*a), y(*a)).clamp(min=-1.5)
    if kind == "int":
        if leaf:
            if made.random() < 0.4:
                return read(captured.integers, captured.integer_axes)
            k = made.randrange(1, 5)
            return lambda *a: a[k]
        choice, x = made.randrange(5), sub("int")
        if choice == 0:
            constant = made.randrange(1, 9)
            return lambda *a: x(*a) // constant
        if choice == 1:
            constant = made.randrange(2, 9)
            return lambda *a: x(*a) % constant
        y, op = sub("int"), made.choice([torch.add, torch.sub, torch.maximum, torch.mul])
        return lambda *a: op(x(*a), y(*a))
    if leaf:
        return read(captured.bools, captured.bool_axes)
    choice = made.randrange(4)
    if choice == 0:
        x, y, op = sub("int"), sub("int"), made.choice([torch.lt, torch.ge, torch.ne])
        return lambda *a: op(x(*a), y(*a))
    if choice == 1:
        x = sub("bool")
        return lambda *a: ~x(*a)
    x, y, op = sub("bool"), sub("bool"), made.choice([torch.logical_and, torch.bitwise_or, torch.bitwise_xor])
    return lambda *a: op(x(*a), y(*a))


if __name__ == "__main__":
    unittest.main()
