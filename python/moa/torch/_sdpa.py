"""PyTorch's scaled_dot_product_attention."""
import math

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant

from . import _kernels
from ._graph import SCALARS

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def specification(rank, key_heads, value_heads, width, value_width, mask, causal, lower_right, compute):
    """Returns the text of attention on arrays of `rank` axes. `mask` is None, "bool" or a float type. `key_heads` and
    `value_heads` say whether several query heads share one. With `lower_right` the last query sees the last key."""
    leading = [f"B{k}" for k in range(rank - 3)] + (["H"] if rank > 2 else [])
    variables = [f"b{k}" for k in range(rank - 3)] + (["h"] if rank > 2 else [])
    shape = lambda heads, *rest: f"[{', '.join((leading[:-1] + [heads] if heads else leading) + list(rest))}]"
    symbols, lines, requires, used = list(leading), [], [], []
    for name, shared, array in (("G", key_heads, "K"), ("F", value_heads, "V")):
        used.append(array)
        if shared:
            symbols.append(name)
            requires.append(f"H % {name} == 0")
            bounds = ", ".join(f"{v} < {n}" for v, n in zip(variables, leading))
            subscripts = ", ".join(variables[:-1] + [f"h / (H/{name})"])
            lines.append(f"{array}h = [{bounds}] {array}[{subscripts}]")
            used[-1] = array + "h"
    lines.append(f"S = (Q +.* transpose({used[0]})) * scale")
    if mask == "bool":
        lines.append("S = mask(W, S)")
    elif mask:
        lines.append("S = addmask(S, W)")
    if causal:
        lines.append(f"S = mask([{'_, ' * len(leading)}i, j] j <= i{' + (M - N)' if lower_right else ''}, S)")
    lines.append(f"O = softmax(S) +.* {used[1]}")
    parameters = [f"Q : T{shape('', 'N', 'D')}", f"K : T{shape('G' if key_heads else '', 'M', 'D')}",
                  f"V : T{shape('F' if value_heads else '', 'M', 'E')}"]
    if mask:
        parameters.append(f"W : {mask}{shape('', 'N', 'M')}")
    parameters.append(f"scale : {compute}")
    return (f"kernel sdpa[{', '.join(symbols + ['N', 'M'])}; T : float, D = {width}, E = {value_width}](\n    "
            + ", ".join(parameters) + f")\n    -> O : T{shape('', 'N', 'E')}\n"
            + (f"  require {' and '.join(requires)}\n" if requires else "")
            + "{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")


def check(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() < 2:
            raise ValueError(f"{name} has {t.dim()} axes, but attention needs at least [length, width]")
        if t.dtype != query.dtype:
            raise ValueError(f"{name} is {t.dtype} and query is {query.dtype}; convert one of them")
        if t.device != query.device:
            raise ValueError(f"{name} is on {t.device} and query on {query.device}; move one of them")
    if query.dtype not in FLOATS:
        raise ValueError(f"query is {query.dtype}, but must be float64, float32, bfloat16 or float16")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has width {query.shape[-1]} and key {key.shape[-1]}; they must be equal")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key has length {key.shape[-2]} and value {value.shape[-2]}; they must be equal")
    if not query.dim() == key.dim() == value.dim():
        raise ValueError(f"query, key and value have {query.dim()}, {key.dim()} and {value.dim()} axes; "
                         "add leading axes of extent 1")
    if dropout_p:
        raise NotImplementedError(f"dropout_p is {dropout_p}, but kernels have no dropout; give 0.0, or write a "
                                  "specification with a hash (docs/Recipes.md, Dropout)")
    if attn_mask is not None and is_causal:
        raise ValueError("attn_mask and is_causal exclude each other; give one of them")
    if attn_mask is not None and attn_mask.dtype != torch.bool and attn_mask.dtype not in FLOATS:
        raise ValueError(f"attn_mask is {attn_mask.dtype}, but must be boolean or a float")
    if attn_mask is not None and attn_mask.device != query.device:
        raise ValueError(f"attn_mask is on {attn_mask.device} and query on {query.device}; move one of them")
    if enable_gqa:
        if query.dim() < 3:
            raise ValueError("enable_gqa needs an axis of heads, [heads, length, width]")
        for name, t in (("key", key), ("value", value)):
            if t.shape[-3] == 0 or query.shape[-3] % t.shape[-3]:
                raise ValueError(f"the {query.shape[-3]} heads of query are no multiple of the {t.shape[-3]} heads "
                                 f"of {name}")
    own = 3 if enable_gqa else 2
    try:
        torch.broadcast_shapes(*(t.shape[:-own] for t in (query, key, value)))
    except RuntimeError:
        leading = [list(t.shape[:-own]) for t in (query, key, value)]
        raise ValueError(f"the leading axes {leading[0]}, {leading[1]} and {leading[2]} of query, key and value do not "
                         "broadcast; if query heads share key heads, give enable_gqa=True") from None


def corner(bias, query, key, is_causal):
    """Returns whether a CausalBias of PyTorch has the lower-right corner."""
    if is_causal:
        raise ValueError("attn_mask is a CausalBias, so is_causal must be False")
    if (bias.seq_len_q, bias.seq_len_kv) != (query.shape[-2], key.shape[-2]):
        raise ValueError(f"attn_mask is a CausalBias of {bias.seq_len_q} queries and {bias.seq_len_kv} keys, but there "
                         f"are {query.shape[-2]} and {key.shape[-2]}; make one of these lengths")
    return bias.variant == CausalVariant.LOWER_RIGHT


def broadcast(query, key, value, attn_mask, enable_gqa):
    """Gives the arrays equal leading axes, by strides of 0. Heads stay shared with enable_gqa."""
    own = 3 if enable_gqa else 2
    leading = torch.broadcast_shapes(*(t.shape[:-own] for t in (query, key, value)))
    query, key, value = (t.expand(*leading, *t.shape[-own:]) for t in (query, key, value))
    if attn_mask is not None:
        full = (*query.shape[:-1], key.shape[-2])
        try:
            attn_mask = attn_mask.expand(full)
        except RuntimeError:
            raise ValueError(f"attn_mask of shape {list(attn_mask.shape)} does not broadcast to {list(full)}") from None
    return query, key, value, attn_mask


@torch.library.custom_op("moa::scaled_dot_product_attention", mutates_args=())
def _operator(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None,
              is_causal: bool, lower_right: bool, scale: float, enable_gqa: bool) -> torch.Tensor:
    query, key, value, attn_mask = broadcast(query, key, value, attn_mask, enable_gqa)
    shape, rank = query.shape, query.dim()
    if query.is_cuda and rank > 4:
        flat = lambda t: None if t is None else t.reshape(-1, *t.shape[-3:])
        query, key, value, attn_mask, rank = flat(query), flat(key), flat(value), flat(attn_mask), 4
    compute = "f64" if query.dtype == torch.float64 or attn_mask is not None and attn_mask.dtype == torch.float64 \
        else "f32"
    shared = [rank > 2 and t.shape[-3] != query.shape[-3] for t in (key, value)]
    mask = None if attn_mask is None else SCALARS[attn_mask.dtype]
    text = specification(rank, *shared, query.shape[-1], value.shape[-1], mask, is_causal, lower_right,
                         compute)
    settings = {"T": SCALARS[query.dtype]}
    if query.is_cuda and query.shape[-2] == 1:
        settings["N"] = "1"
    kernel = _kernels.compiled(text, query.device, settings)
    out = torch.empty(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    arrays = [*map(_kernels.copyable, (query, key, value))] + ([] if attn_mask is None else [attn_mask])
    _kernels.run(kernel, [*arrays, scale], [out])
    return out.reshape(*shape[:-1], value.shape[-1])


@_operator.register_fake
def _(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa):
    query, key, value, attn_mask = broadcast(query, key, value, attn_mask, enable_gqa)
    return query.new_empty(*query.shape[:-1], value.shape[-1])


def _no_gradient(ctx, gradient):
    raise NotImplementedError("moa.torch.scaled_dot_product_attention has no gradient; call it under torch.no_grad()")


_operator.register_autograd(_no_gradient)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """Computes attention as torch.nn.functional.scaled_dot_product_attention does, on the device of the tensors.

    A row that sees no key gives 0. The mask is not copied, and may be a CausalBias. There is no dropout and no
    gradient.
    """
    lower_right = False
    if isinstance(attn_mask, CausalBias):
        lower_right = corner(attn_mask, query, key, is_causal)
        attn_mask, is_causal = None, True
    check(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    _kernels.refuse_gradients("scaled_dot_product_attention", query, key, value, attn_mask)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    return _operator(query, key, value, attn_mask, is_causal, lower_right, float(scale), enable_gqa)
