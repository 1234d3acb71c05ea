"""PyTorch's attention functions, computed by kernels that MoA compiles. docs/PyTorch.md has the details."""
from ._adaptive import AdaptiveAttention, AttentionMetrics
from ._flex import flex_attention
from ._operator import operator
from ._sdpa import scaled_dot_product_attention
from ._trace import UnsupportedError

__all__ = ["AdaptiveAttention", "AttentionMetrics", "flex_attention", "operator", "scaled_dot_product_attention",
           "UnsupportedError"]
