"""PyTorch's own scaled_dot_product_attention on a GPU, computed by kernels that MoA compiles.

torch.nn.attention has a registry of implementations of flash attention. An implementation replaces operators of
PyTorch for CUDA tensors. This one replaces the forward pass. It calls PyTorch's
kernel for calls that `refusal` rejects.
"""
import functools
import math

import torch

from . import _kernels
from ._graph import SCALARS
from ._sdpa import condition, specification

OPERATOR = "aten::_scaled_dot_product_flash_attention"
LARGEST_WIDTH = 256


def refusal(query, key, value, dropout_p, is_causal, return_debug_mask, capability):
    """Returns why PyTorch's kernel computes a call, or None if a kernel of MoA does. `capability` is the GPU's."""
    if capability != (9, 0):
        return f"the GPU has compute capability {capability}, but kernels are for (9, 0)"
    if dropout_p:
        return "there is dropout"
    if return_debug_mask:
        return "a debug mask is returned"
    if query.dtype not in (torch.float16, torch.bfloat16):
        return f"the type is {query.dtype}"
    if any(t.dtype != query.dtype or t.device != query.device for t in (key, value)):
        return "types or devices differ"
    if not query.dim() == key.dim() == value.dim() == 4:
        return "the arrays have not four axes"
    width = query.shape[3]
    if not 0 < width <= LARGEST_WIDTH or width % 8 or key.shape[3] != width:
        return f"the width is {width} for queries and {key.shape[3]} for keys"
    if key.shape != value.shape or key.shape[0] != query.shape[0]:
        return "the shapes do not match"
    if not query.numel() or not key.numel():
        return "an array is empty"
    if query.shape[1] % key.shape[1]:
        return "the number of query heads is no multiple of the number of key heads"
    if is_causal and query.shape[2] != key.shape[2]:
        return "a causal mask needs as many queries as keys"
    if any(t.stride(3) != 1 for t in (query, key, value)):
        return "the last axis is not contiguous"
    return None


def attention(query, key, value, is_causal, scale):
    """Returns the nine results of the operator, with the strides and types of PyTorch's kernel."""
    n, width = query.shape[2:]
    shared = query.shape[1] != key.shape[1]
    text = specification(4, shared, shared, (width, width), None, condition(is_causal, False), SCALARS[torch.float32],
                         lse=True)
    out = torch.empty_like(query.transpose(1, 2)).transpose(1, 2)
    lse = torch.empty(query.shape[:3], dtype=torch.float32, device=query.device)
    scale = 1 / math.sqrt(width) if scale is None else scale
    with torch.no_grad():
        _kernels.attend(text, (query, key, value), [scale], [out, lse])
    # The state of random numbers is read for dropout only.
    state, unused = (torch.empty(shape, dtype=torch.uint64, device=query.device) for shape in ((2,), ()))
    return out, lse, None, None, n, key.shape[2], state, unused, query.new_empty(0)


@functools.cache
def capability(device):
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


class Handle:
    """Keeps the operator replaced until `remove` is called."""

    def __init__(self):
        own = torch.library.get_kernel(OPERATOR, "CUDA")

        def forward(keys, query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
            arguments = query, key, value, dropout_p, is_causal, return_debug_mask
            if refusal(*arguments, capability(query.device)):
                return own.call_boxed(keys, *arguments, scale=scale)
            return attention(query, key, value, is_causal, scale)

        self.library = torch.library.Library("aten", "IMPL", "CUDA")
        self.library.impl(OPERATOR.partition("::")[2], forward, "CUDA", with_keyset=True)

    def remove(self):
        if self.library is not None:
            self.library._destroy()
            self.library = None


def is_available():
    return all(getattr(owner, name, None) for owner, name in (
        (torch.nn.attention, "register_flash_attention_impl"), (torch.library, "get_kernel")))


def register_flash_attention(name="MoA"):
    """Registers the kernels with PyTorch, so that torch.nn.attention.activate_flash_attention_impl(name) makes
    torch.nn.functional.scaled_dot_product_attention call them. Importing moa.torch registers "MoA".

    Raises RuntimeError if PyTorch has no registry (before 2.11). `refusal` has the calls that PyTorch's own kernel
    computes in place of one of MoA.
    """
    if not is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} has no registry of flash attention that kernels can fall back "
                           "from; install PyTorch 2.11 or later, or call moa.torch.scaled_dot_product_attention")
    torch.nn.attention.register_flash_attention_impl(name, register_fn=Handle)
