"""PyTorch's attention functions, computed by kernels that MoA compiles. docs/PyTorch.md has the details."""
from ._adaptive import AdaptiveAttention, AttentionMetrics
from ._flex import flex_attention
from ._operator import operator
from ._registry import is_available as _has_registry, register_flash_attention
from ._sdpa import scaled_dot_product_attention
from ._trace import UnsupportedError

__all__ = ["AdaptiveAttention", "AttentionMetrics", "flex_attention", "operator", "register_flash_attention",
           "scaled_dot_product_attention", "UnsupportedError"]

if _has_registry():
    register_flash_attention()
