"""PyTorch's scaled_dot_product_attention."""
import functools
import math
from typing import Optional, Tuple  # PyTorch 2.6 reads these forms alone

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant

from . import _kernels
from ._graph import SCALARS

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def declarations(rank, key_heads, value_heads, mask, causal):
    """Returns the declarations that the forward and the backward pass share, on arrays of `rank` axes:

    - the function that writes the shape of an array with other heads and trailing axes,
    - symbols, constraints, and definitions up to the scores,
    - the names of keys and values per query head,
    - parameters.

    `mask` is None, "bool" or a float type. `key_heads` and `value_heads` say whether several query heads share one.
    `causal` is None, or the condition of query i and key j.
    """
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
        lines.append(f"S = mask([{'_, ' * len(leading)}i, j] {causal}, S)")
    parameters = [f"Q : T{shape('', 'N', 'D')}", f"K : T{shape('G' if key_heads else '', 'M', 'D')}",
                  f"V : T{shape('F' if value_heads else '', 'M', 'E')}"]
    if mask:
        parameters.append(f"W : {mask}{shape('', 'N', 'M')}")
    return shape, symbols + ["N", "M"], requires, lines, used, parameters


def condition(is_causal, lower_right):
    """Returns the causal condition: the first query sees the first key, or the last one the last."""
    return ("j <= i + (M - N)" if lower_right else "j <= i") if is_causal else None


def kernel_text(name, symbols, widths, parameters, results, requires, lines):
    return (f"kernel {name}[{', '.join(symbols)}; T : float, D = {widths[0]}, E = {widths[1]}](\n    "
            + ", ".join(parameters) + f")\n    -> ({', '.join(results)})\n"
            + (f"  require {' and '.join(requires)}\n" if requires else "")
            + "{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")


def is_float(mask):
    """Returns whether a mask is added. Then lse may lose the logarithm: -3.4e38 + log 4 is -3.4e38. So gradients need
    the maximum and the sum of each row in its place."""
    return mask is not None and mask != "bool"


@functools.lru_cache(maxsize=4096)
def specification(rank, key_heads, value_heads, widths, mask, causal, compute, lse=False):
    """Returns the text of attention, and of the statistics of each row that its gradients need if `lse` is set."""
    shape, symbols, requires, lines, used, parameters = declarations(rank, key_heads, value_heads, mask, causal)
    lines.append(f"O = softmax(S) +.* {used[1]}")
    results = [f"O : T{shape('', 'N', 'E')}"]
    if lse and is_float(mask):
        lines += ["top = max/ S", "total = +/ exp(S -@(1,0) top)"]
        results += [f"{name} : {compute}{shape('', 'N')}" for name in ("top", "total")]
    elif lse:
        lines.append("lse = logsumexp(S)")
        results.append(f"lse : {compute}{shape('', 'N')}")
    return kernel_text("sdpa", symbols, widths, parameters + [f"scale : {compute}"], results, requires, lines)


@functools.lru_cache(maxsize=4096)
def backward_specification(rank, key_heads, value_heads, widths, mask, causal, compute, types):
    """Returns the text of the gradients of query, key and value, which have the types `types` and one entry per query
    head. The weights are computed again from statistics of rows, so no N×M array is stored (docs/Recipes.md, Backward
    pass)."""
    shape, symbols, requires, lines, used, parameters = declarations(rank, key_heads, value_heads, mask, causal)
    statistics = ("top", "total") if is_float(mask) else ("lse",)
    weights = "exp(S -@(1,0) top) /@(1,0) total" if is_float(mask) else "exp(S -@(1,0) lse)"
    lines += [f"P = {weights}", "delta = +/ (dO * O)",
              f"dS = P * ((dO +.* transpose({used[1]})) -@(1,0) delta)", f"dQ = (dS +.* {used[0]}) * scale",
              "dK = (transpose(dS) +.* Q) * scale", "dV = transpose(P) +.* dO"]
    parameters += [f"O : T{shape('', 'N', 'E')}", f"dO : T{shape('', 'N', 'E')}",
                   *(f"{name} : {compute}{shape('', 'N')}" for name in statistics), f"scale : {compute}"]
    results = [f"{name} : {dtype}{shape('', *axes)}" for name, dtype, axes in
               zip(("dQ", "dK", "dV"), types, (("N", "D"), ("M", "D"), ("M", "E")))]
    return kernel_text("sdpa_backward", symbols, widths, parameters, results, requires, lines)


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
    try:
        leading_axes(query, key, value, enable_gqa)
    except RuntimeError:
        own = 3 if enable_gqa else 2
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


def leading_axes(query, key, value, enable_gqa):
    """Returns the extents before heads or, without enable_gqa, before lengths, to which the arrays broadcast."""
    own = 3 if enable_gqa else 2
    shapes = [t.shape[:-own] for t in (query, key, value)]
    # torch.broadcast_shapes takes as long as a small kernel.
    return shapes[0] if shapes[0] == shapes[1] == shapes[2] else torch.broadcast_shapes(*shapes)


def broadcast(query, key, value, attn_mask, enable_gqa):
    """Gives the arrays equal leading axes, by strides of 0. Heads stay shared with enable_gqa."""
    own = 3 if enable_gqa else 2
    leading = leading_axes(query, key, value, enable_gqa)
    query, key, value = (t.expand(*leading, *t.shape[-own:]) for t in (query, key, value))
    if attn_mask is not None:
        full = (*query.shape[:-1], key.shape[-2])
        try:
            attn_mask = attn_mask.expand(full)
        except RuntimeError:
            raise ValueError(f"attn_mask of shape {list(attn_mask.shape)} does not broadcast to {list(full)}") from None
    return query, key, value, attn_mask


class Call:
    """The arrays of a call with equal leading axes, and the facts that its kernels depend on."""

    def __init__(self, query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa):
        arrays = broadcast(query, key, value, attn_mask, enable_gqa)
        self.leading = arrays[0].shape[:-2]
        self.is_flat = query.is_cuda and len(self.leading) > 2
        self.query, self.key, self.value, self.mask = map(self.flat, arrays)
        self.scale, is_wide = scale, attn_mask is not None and attn_mask.dtype == torch.float64
        self.compute = torch.float64 if query.dtype == torch.float64 or is_wide else torch.float32
        self.is_added = attn_mask is not None and attn_mask.dtype != torch.bool
        self.widths = (query.shape[-1], value.shape[-1])
        rank = self.query.dim()
        shared = [rank > 2 and t.shape[-3] != self.query.shape[-3] for t in (self.key, self.value)]
        self.facts = (rank, *shared, self.widths, None if attn_mask is None else SCALARS[attn_mask.dtype],
                      condition(is_causal, lower_right), SCALARS[self.compute])

    def flat(self, tensor, own=2):
        """Merges leading axes for a GPU, whose kernels take few of them. `own` counts the axes after the heads."""
        return tensor if tensor is None or not self.is_flat else tensor.reshape(-1, *tensor.shape[-1 - own:])

    def forward(self, lse):
        """Returns the output and, with `lse`, statistics of the rows: lse and nothing, or the maximum and the sum."""
        shape, count = self.query.shape[:-1], 0 if not lse else 2 if self.is_added else 1
        results = [((*shape, self.widths[1]), self.query.dtype)] + [(shape, self.compute)] * count
        out, *rest = _kernels.attend(specification(*self.facts, lse=lse), (self.query, self.key, self.value),
                                     ([] if self.mask is None else [self.mask]) + [self.scale], results)
        n = self.query.shape[-2]
        rest = [t.reshape(*self.leading, n) for t in rest]
        if lse and not self.is_added:
            rest.append(out.new_empty(0, dtype=self.compute))
        return out.reshape(*self.leading, n, self.widths[1]), *rest

    def backward(self, gradient, out, lse, total, shapes):
        """Returns the gradients of query, key and value, summed to the shapes of the inputs."""
        full = self.query.shape[:-2]
        sizes = [(*self.leading, *t.shape[-2:]) for t in (self.query, self.key, self.value)]
        types = [self.query.dtype if size == tuple(shape) else self.compute for size, shape in zip(sizes, shapes)]
        text = backward_specification(*self.facts, tuple(SCALARS[t] for t in types))
        arrays = [*map(_kernels.copyable, (self.flat(out), self.flat(gradient))), self.flat(lse, 1),
                  *([self.flat(total, 1)] if self.is_added else []), self.scale]
        made = _kernels.attend(text, (self.query, self.key, self.value),
                               ([] if self.mask is None else [self.mask]) + arrays,
                               [((*full, *size[-2:]), t) for size, t in zip(sizes, types)], splits=False)
        return [summed(t.reshape(size), shape).to(self.query.dtype) for t, size, shape in zip(made, sizes, shapes)]


def summed(tensor, shape):
    """Adds up a gradient over heads that share keys, and over axes along which the input was broadcast."""
    if len(shape) > 2 and shape[-3] not in (1, tensor.shape[-3]):
        tensor = tensor.unflatten(-3, (shape[-3], -1)).sum(-3)
    return tensor.sum_to_size(shape)


@torch.library.custom_op("moa::scaled_dot_product_attention", mutates_args=())
def _operator(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Optional[torch.Tensor],
              is_causal: bool, lower_right: bool, scale: float, enable_gqa: bool) -> torch.Tensor:
    return Call(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa).forward(lse=False)[0]


@torch.library.custom_op("moa::scaled_dot_product_attention_lse", mutates_args=())
def _operator_lse(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Optional[torch.Tensor],
                  is_causal: bool, lower_right: bool, scale: float,
                  enable_gqa: bool) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return Call(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa).forward(lse=True)


@torch.library.custom_op("moa::scaled_dot_product_attention_backward", mutates_args=())
def _operator_backward(gradient: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                       attn_mask: Optional[torch.Tensor], out: torch.Tensor, lse: torch.Tensor, total: torch.Tensor,
                       is_causal: bool, lower_right: bool, scale: float,
                       enable_gqa: bool) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    call = Call(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa)
    return tuple(call.backward(gradient, out, lse, total, [t.shape for t in (query, key, value)]))


@_operator.register_fake
def _fake(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa):
    query, key, value, attn_mask = broadcast(query, key, value, attn_mask, enable_gqa)
    return query.new_empty(*query.shape[:-1], value.shape[-1])


@_operator_lse.register_fake
def _fake_lse(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa):
    out = _fake(query, key, value, attn_mask, is_causal, lower_right, scale, enable_gqa)
    is_wide = torch.float64 in (query.dtype, None if attn_mask is None else attn_mask.dtype)
    lse = out.new_empty(out.shape[:-1], dtype=torch.float64 if is_wide else torch.float32)
    is_added = attn_mask is not None and attn_mask.dtype != torch.bool
    return out, lse, torch.empty_like(lse) if is_added else lse.new_empty(0)


@_operator_backward.register_fake
def _fake_backward(gradient, query, key, value, attn_mask, out, lse, total, is_causal, lower_right, scale, enable_gqa):
    return tuple(t.new_empty(t.shape) for t in (query, key, value))


def _save(ctx, inputs, output):
    *tensors, ctx.is_causal, ctx.lower_right, ctx.scale, ctx.enable_gqa = inputs
    out, lse, total = output if isinstance(output, tuple) else (output, None, None)
    if lse is not None:
        ctx.mark_non_differentiable(lse, total)
    ctx.save_for_backward(*tensors, out, lse, total)


def _backward(ctx, gradient, *_):
    refuse_mask_gradient(ctx.needs_input_grad[3])
    query, key, value, attn_mask, out, lse, total = ctx.saved_tensors
    options = (ctx.is_causal, ctx.lower_right, ctx.scale, ctx.enable_gqa)
    if lse is None:  # the operator without lse was called
        out, lse, total = _operator_lse(query, key, value, attn_mask, *options)
    return *_operator_backward(gradient, query, key, value, attn_mask, out, lse, total, *options), *[None] * 5


def _no_second(ctx, *_):
    raise NotImplementedError("moa.torch.scaled_dot_product_attention has no second derivative; use PyTorch's under "
                              "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)")


_operator.register_autograd(_backward, setup_context=_save)
_operator_lse.register_autograd(_backward, setup_context=_save)
_operator_backward.register_autograd(_no_second)


def refuse_mask_gradient(is_required):
    if is_required:
        raise NotImplementedError("attn_mask requires a gradient, but masks have none; give attn_mask.detach(), or use "
                                  "PyTorch's scaled_dot_product_attention")


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: Optional[torch.Tensor] = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> torch.Tensor:
    """Computes attention as torch.nn.functional.scaled_dot_product_attention does, on the device of the tensors.

    query: [..., heads, N, D]; key: [..., heads, M, D]; value: [..., heads, M, E]; float64, float32, bfloat16 or
        float16. Leading axes broadcast.
    attn_mask: a boolean (False hides a pair) or a float (is added) that broadcasts to [..., heads, N, M], or a
        CausalBias. It is not copied.
    is_causal: query i sees the keys up to i. dropout_p must be 0.
    scale: multiplies the products; by default 1/sqrt(D).
    enable_gqa: the heads of key and value divide those of query.

    Returns [..., heads, N, E]. A row that sees no key gives 0. Query, key and value may require gradients, which are
    deterministic. Raises ValueError for wrong arguments, and NotImplementedError for dropout, for a mask that requires
    a gradient and for forward-mode derivatives.
    """
    lower_right = False
    if isinstance(attn_mask, CausalBias):
        lower_right = corner(attn_mask, query, key, is_causal)
        attn_mask, is_causal = None, True
    _kernels.refuse_tangents("scaled_dot_product_attention", query, key, value, attn_mask)
    query, key, value, attn_mask = _kernels.autocast(query, key, value, attn_mask)
    check(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    arguments = query, key, value, attn_mask, is_causal, lower_right, float(scale), enable_gqa
    if torch.is_grad_enabled():
        refuse_mask_gradient(attn_mask is not None and attn_mask.requires_grad)
        if query.requires_grad or key.requires_grad or value.requires_grad:
            return _operator_lse(*arguments)[0]
    return _operator(*arguments)
