# REQUIRES: torch
# RUN: %torch_python %s
"""The columns of docs/Compatibility.md for PyTorch's back ends and for moa.torch.

On a GPU of sm_90a, by hand, with Python, torch, NumPy and the package `moa`:

    python test/Python/Torch/compatibility.py --device cuda

This prints every cell of the columns of a GPU and fails if one differs. `--verbose` does so for a CPU.
`--only=TEXT` takes the cells whose row or column has the text, and `--write` writes observed words into the page.
"""
import argparse
import contextlib
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Support"))
import edge_cases  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from edge_cases import NotOffered, Result  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402
from torch.nn.attention.bias import causal_lower_right  # noqa: E402

import moa  # noqa: E402
import moa.torch  # noqa: E402
from moa.torch import _kernels  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
arguments, OPTIONS = parser.parse_known_args()
DEVICE = arguments.device
aten = torch.ops.aten


class Torch(edge_cases.Implementation):
    """Turns arrays into tensors and results into float32 arrays."""

    def __init__(self, dtype=torch.float32):
        self.dtype = dtype
        self.bound = 1e-3 if dtype == torch.float32 else 3e-2

    def half(self):
        return type(self)(torch.bfloat16)

    def tensor(self, array):
        return torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE, self.dtype)

    def mask(self, array):
        """Returns the mask as a tensor with the array's strides of 0."""
        small = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)]
        if array.dtype == bool:
            return torch.from_numpy(np.ascontiguousarray(small)).to(DEVICE).expand(array.shape)
        made = torch.from_numpy(np.ascontiguousarray(small)).to(DEVICE)
        low = torch.where(made == -torch.inf, -torch.inf, made.clamp(min=torch.finfo(self.dtype).min))
        return low.to(self.dtype).expand(array.shape)

    def arrays(self, *tensors):
        return Result(*(None if t is None else t.detach().float().cpu().numpy() for t in tensors))

    @contextlib.contextmanager
    def quiet(self):
        """PyTorch warns of the reasons for which it refuses a back end."""
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield

    def call(self, q, k, v, mask, causal, scale, gqa, lse):
        q, k, v = map(self.tensor, (q, k, v))
        mask = None if mask is None else self.mask(mask)
        return self.arrays(*self.attend(q, k, v, mask, causal, scale, gqa, lse))


class SDPA(Torch):
    """A back end of torch.nn.functional.scaled_dot_product_attention."""
    backend = None

    def attend(self, q, k, v, mask, causal, scale, gqa, lse):
        if lse:
            return self.with_lse(q, k, v, mask, causal, scale)
        with sdpa_kernel(self.backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale,
                                                                    enable_gqa=gqa),

    def lower_right(self, q, k, v):
        with sdpa_kernel(self.backend):
            return self.arrays(torch.nn.functional.scaled_dot_product_attention(
                *map(self.tensor, (q, k, v)), causal_lower_right(q.shape[2], k.shape[2])))

    def with_lse(self, q, k, v, mask, causal, scale):
        raise NotOffered

    @staticmethod
    def additive(mask, q, k):
        """Returns the mask as the operators of back ends take it: a float of the full shape."""
        if mask is None:
            return None
        if mask.dtype == torch.bool:
            mask = torch.where(mask, 0.0, -torch.inf).to(q.dtype)
        return mask.expand(*q.shape[:3], k.shape[2]).contiguous()


class Math(SDPA):
    backend = SDPBackend.MATH


class FlashCPU(SDPA):
    backend = SDPBackend.FLASH_ATTENTION

    def with_lse(self, q, k, v, mask, causal, scale):
        return aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, causal, attn_mask=self.additive(mask, q, k), scale=scale)[:2]


class CuDNN(SDPA):
    backend = SDPBackend.CUDNN_ATTENTION

    def with_lse(self, q, k, v, mask, causal, scale):
        return aten._scaled_dot_product_cudnn_attention(q, k, v, self.additive(mask, q, k), True, 0.0, causal, False,
                                                        scale=scale)[:2]


class Efficient(SDPA):
    backend = SDPBackend.EFFICIENT_ATTENTION

    def with_lse(self, q, k, v, mask, causal, scale):
        return aten._scaled_dot_product_efficient_attention(q, k, v, self.additive(mask, q, k), True, 0.0, causal,
                                                            scale=scale)[:2]


class Flash(SDPA):
    backend = SDPBackend.FLASH_ATTENTION

    def with_lse(self, q, k, v, mask, causal, scale):
        if mask is not None:
            raise NotOffered
        return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)[:2]

    def lse_of_empty_row(self):
        """The kernel takes no mask, but its own causal corner is bottom-right, so 40 rows see no key."""
        q, k, v = edge_cases.inputs(n=80, m=40)
        return self(q, k, v, causal=True, lse=True).lse[:, :, :40].reshape(-1)


class Flex(Torch):
    """flex_attention: masks and corners are functions."""
    is_written = True

    def function(self):
        return flex.flex_attention

    def block_mask(self, mask_mod, q, k):
        return {"block_mask": flex.create_block_mask(mask_mod, q.shape[0], q.shape[1], q.shape[2], k.shape[2],
                                                     device=DEVICE)}

    def attend(self, q, k, v, mask, causal, scale, gqa, lse):
        score_mod, mask_mods, options = None, [], {"scale": scale, "enable_gqa": gqa}
        if mask is not None:
            full = mask.expand(*q.shape[:3], k.shape[2])
            if mask.dtype == torch.bool:
                mask_mods.append(lambda b, h, i, j: full[b, h, i, j])
            else:
                score_mod = lambda score, b, h, i, j: score + full[b, h, i, j]
        if causal:
            shift = k.shape[2] - q.shape[2] if causal == "bottom-right" else 0
            mask_mods.append(lambda b, h, i, j: j <= i + shift)
        if mask_mods:
            options |= self.block_mask(flex.and_masks(*mask_mods), q, k)
        if not lse:
            return self.function()(q, k, v, score_mod, **options),
        out, aux = self.function()(q, k, v, score_mod, return_aux=flex.AuxRequest(lse=True), **options)
        return out, aux.lse


class FlexCompiled(Flex):

    def function(self):
        torch._dynamo.reset()
        return torch.compile(flex.flex_attention, dynamic=False)


class MoASDPA(SDPA):

    def attend(self, q, k, v, mask, causal, scale, gqa, lse):
        if lse:
            raise NotOffered
        return moa.torch.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=gqa),

    def lower_right(self, q, k, v):
        return self.arrays(moa.torch.scaled_dot_product_attention(
            *map(self.tensor, (q, k, v)), causal_lower_right(q.shape[2], k.shape[2])))


class MoAFlex(Flex):

    def function(self):
        return moa.torch.flex_attention

    def block_mask(self, mask_mod, q, k):
        return {"mask_mod": mask_mod}


def columns():
    """Returns the columns that can run here: name -> implementation."""
    if DEVICE == "cpu":
        found = {"MoA SDPA": MoASDPA(), "MoA Flex": MoAFlex()}
        theirs = {"math": Math(), "CPU flash": FlashCPU(), "FlexAttention, eager": Flex()}
    else:
        half = torch.bfloat16
        found = {"MoA SDPA, GPU": MoASDPA(half), "MoA Flex, GPU": MoAFlex(half)}
        theirs = {"cuDNN": CuDNN(half), "efficient": Efficient(half), "FA2": Flash(half),
                  "FlexAttention, compiled": FlexCompiled(half)}
    part = "torch" if DEVICE == "cpu" else "cuda"
    assert {*found, *theirs} == {name for name, owner in edge_cases.COLUMNS.items() if owner == part}
    if not edge_cases.same_version("PyTorch", torch.__version__):
        theirs = {}
    return theirs | found


@unittest.skipUnless(DEVICE == "cpu", "the page states these for a CPU")
class Sentences(unittest.TestCase):
    """Statements of the page outside of its tables."""

    def setUp(self):
        if not edge_cases.same_version("PyTorch", torch.__version__):
            self.skipTest("another version of PyTorch")

    def test_multihead_attention(self):
        """A batch entry whose keys are all padding, in torch.nn.MultiheadAttention."""
        torch.manual_seed(0)
        module = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        torch.nn.init.normal_(module.out_proj.bias)
        x, padding = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
        padding[1] = True
        for evaluating in (False, True):
            module.train(not evaluating)
            for gradients in (False, True):
                for weights in (False, True):
                    with torch.set_grad_enabled(gradients):
                        found = module(x, x, x, key_padding_mask=padding, need_weights=weights)[0]
                    self.assertTrue(torch.isfinite(found[0]).all())
                    if weights or evaluating and not gradients:
                        self.assertTrue(found[1].isnan().all())
                    else:
                        torch.testing.assert_close(found[1], module.out_proj.bias.expand(5, 16))

    def test_math_combines_masks(self):
        """The remedy of the page for a mask and is_causal."""
        q, k, v = map(torch.from_numpy, edge_cases.inputs(n=48, m=48))
        mask = torch.rand(48, 48, generator=torch.Generator().manual_seed(0)) > 0.3
        found = moa.torch.scaled_dot_product_attention(q, k, v, mask & torch.ones(48, 48).tril().bool())
        expected = edge_cases.reference(q.numpy(), k.numpy(), v.numpy(), mask.numpy(), "top-left")[0]
        self.assertLess(edge_cases.distance(found.numpy(), expected), 1e-5)


class Page(unittest.TestCase):

    def test_cells(self):
        here = columns()
        count, wrong = edge_cases.compare(here, OPTIONS + ["--verbose"] * (DEVICE == "cuda"))
        self.assertEqual([], wrong, "\n" + "\n".join(wrong))
        if not any(option.startswith("--only=") for option in OPTIONS):
            self.assertGreater(count, 35 * len(here))


if __name__ == "__main__":
    if DEVICE == "cpu":
        _kernels.optimization = 0  # LLVM takes most of the time
        flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
        torch.set_num_threads(2)
    unittest.main(argv=[sys.argv[0]])
