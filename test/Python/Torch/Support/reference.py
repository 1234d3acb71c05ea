"""References and comparisons of the tests of moa.torch."""
import torch
from torch.nn.attention import flex_attention as flex

import moa.torch
from moa.torch import _kernels

# LLVM takes most of the time of these tests, which have few rows.
_kernels.optimization = 0
# FlexAttention then runs the Python functions as they are, without compiling.
flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
torch.set_num_threads(2)

# Relative L2 error against float64 that each type may have.
BOUNDS = {torch.float64: 1e-13, torch.float32: 4e-6, torch.bfloat16: 1.2e-2, torch.float16: 2e-3}


def error(found, expected):
    """Returns the relative L2 error; infinities and NaN must stand in the same places."""
    found, expected = found.double(), expected.double()
    assert found.shape == expected.shape, (found.shape, expected.shape)
    special = ~torch.isfinite(expected)
    assert torch.equal(special, ~torch.isfinite(found)), "infinities or NaN differ"
    assert torch.equal(found[special].nan_to_num(), expected[special].nan_to_num()), "infinities differ"
    found, expected = found[~special], expected[~special]
    norm = expected.norm().item()
    return (found - expected).norm().item() / (norm or 1.0)


def inputs(b, h, n, m, d, e=None, g=None, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(*shape, generator=generator, dtype=torch.float64)
            for shape in ((b, h, n, d), (b, g or h, m, d), (b, g or h, m, e or d))]
    return [t.to(dtype) for t in made]


def eager(q, k, v, score_mod=None, mask_mod=None, **options):
    """FlexAttention without compiling: (output, lse)."""
    block_mask = None
    if mask_mod is not None:
        block_mask = flex.create_block_mask(mask_mod, q.shape[0], q.shape[1], q.shape[2], k.shape[2], device="cpu")
    out, aux = flex.flex_attention(q, k, v, score_mod, block_mask, return_aux=flex.AuxRequest(lse=True), **options)
    return out, aux.lse


def differ(q, k, v, score_mod=None, mask_mod=None, **options):
    """Returns the relative errors of output and lse against FlexAttention."""
    out, lse = moa.torch.flex_attention(q, k, v, score_mod, mask_mod=mask_mod, return_lse=True, **options)
    expected, expected_lse = eager(q, k, v, score_mod, mask_mod, **options)
    assert out.dtype == expected.dtype and lse.dtype == expected_lse.dtype, (lse.dtype, expected_lse.dtype)
    return error(out, expected), error(lse, expected_lse)
