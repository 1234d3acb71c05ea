"""AdaptiveAttention: torch.nn.MultiheadAttention with variants of the kernel that a tolerance allows."""
import functools
import json
import math

import torch
from torch.nn import functional as F

from . import _kernels
from ._graph import SCALARS
from ._sdpa import FLOATS

# The fewest rows and keys for which the compiler makes variants.
_FEWEST = 256
# The keys from which few keys may stand for many if the caller gives no number; the default of `moa-run --low-rank`.
_LONG = 32768


def specification(width, compute, mask=None, mask_axes=2, padding=None, causal=False):
    """Returns the text of attention on [batch, heads, length, width].

    `mask` and `padding` are None, "bool" (True hides a key) or the type of a float that is added. The mask has
    `mask_axes` axes: [N, M] or [B, H, N, M].
    """
    parameters, lines = ["Q : T[B, H, N, D]", "K : T[B, H, M, D]", "V : T[B, H, M, D]"], []
    axes = ("[N, M]", "i, j") if mask_axes == 2 else ("[B, H, N, M]", "b, h, i, j")
    for name, kind, shape, at in (("A", mask, *axes), ("P", padding, "[B, M]", "b, j")):
        if kind:
            parameters.append(f"{name} : {kind}{shape}")
            lines.append(f"S = mask([b, h, i, j] not {name}[{at}], S)" if kind == "bool"
                         else f"S = addmask(S, [b < B, h < H, i < N, j < M] {name}[{at}])")
    if causal:
        lines.append("S = mask([b, h, i, j] j <= i, S)")
    return (f"kernel attend[B, H, N, M; T : float, D = {width}](\n    {', '.join(parameters)}, scale : {compute})\n"
            "    -> O : T[B, H, N, D]\n{\n  S = (Q +.* transpose(K)) * scale\n"
            + "".join(f"  {line}\n" for line in lines) + "  O = softmax(S) +.* V\n}\n")


class AttentionMetrics:
    """Tells how a call of AdaptiveAttention was computed.

    plans: int32 [batch, heads], or [heads] of an unbatched call. 0 is the unmodified kernel, p is variants[p].
    estimates: float32 [batch, heads, P] or [heads, P], relative L2 errors of the P variants. NaN: not estimated.
    tolerance: the relative error that each head may have, or None if nothing adapts.
    reasons: texts that say why a setting had no effect on this call.
    variants: P + 1 texts, the meanings of plans.
    decisions: the variant of each head as texts, nested as `plans`.
    sizes: the sizes of the call: batch B, heads H, queries N, keys M.
    bytes_read, bytes_written: the bytes of the distinct elements of the inputs and outputs of the attention kernel,
        without projections, weights, decisions and workspace. Keys that a mask hides from all queries count too.
    data_movement: the report of the compiler on these sizes, as a dict (docs/Tools.md, The report).

    Tensors stay on the device. `variants`, `decisions` and bytes are computed when they are read first.
    """

    def __init__(self, kernel, plans, estimates, tolerance, reasons, sizes):
        self._kernel, self.sizes = kernel, sizes
        self.plans, self.estimates, self.tolerance, self.reasons = plans, estimates, tolerance, tuple(reasons)

    @functools.cached_property
    def variants(self) -> tuple[str, ...]:
        if not self.estimates.shape[-1]:
            return "unmodified",
        within, = _report(self._kernel)["within"]
        return "unmodified", *(text.partition(": ")[2] for text in within["spent"])

    @functools.cached_property
    def decisions(self) -> list:
        def named(plans):
            return [named(p) for p in plans] if isinstance(plans, list) else self.variants[plans]
        return named(self.plans.tolist())

    @functools.cached_property
    def data_movement(self) -> dict:
        known = {name: size for name, size in self.sizes.items() if name in self._kernel.symbols}
        return _report(self._kernel, tuple(known.items()))["data_movement"]

    @property
    def bytes_read(self) -> int:
        return self.data_movement["input_bytes"]

    @property
    def bytes_written(self) -> int:
        return self.data_movement["output_bytes"]

    def __repr__(self):
        counts = torch.bincount(self.plans.flatten(), minlength=len(self.variants)).tolist()
        ran = ", ".join(f"{n} heads: {text}" for n, text in zip(counts, self.variants) if n)
        why = "".join(f"; {reason}" for reason in self.reasons)
        return f"<AttentionMetrics {ran or 'no heads'}; {self.bytes_read} bytes in, {self.bytes_written} out{why}>"


@functools.lru_cache(maxsize=256)
def _report(kernel, sizes=()):
    return json.loads(kernel.report("json", **dict(sizes)))["kernels"][0]


class AdaptiveAttention(torch.nn.MultiheadAttention):
    """Computes torch.nn.MultiheadAttention by kernels that MoA compiles, for inference.

    The first eleven arguments, the parameters and the keys of the state dict are those of torch.nn.MultiheadAttention,
    so `load_state_dict(torch.nn.MultiheadAttention(…).state_dict())` works. Dropout above 0 is refused in training.

    enable_adaptive_precision: let a head use products of fewer bits.
    enable_adaptive_rank: let a head use clusters of similar keys. Only calls without a mask do.
    tolerance: the relative L2 error that the attention of a head may have, before the output projection, for
        example 1e-2. 64 rows of each head are compared with the unmodified kernel; the estimate has 95 % confidence.
    adapt_from: the rows and keys from which variants are tried, at least 256. None: where a model of the
        compiler expects that bits pay, and 32768 for keys.
    return_metrics: return an AttentionMetrics as the third result of each call.

    Heads that keep no variant within the tolerance run unmodified. Types are float64, float32, bfloat16 and float16.
    float64 has no variants, and float16 no few keys. There is no gradient: call it under torch.no_grad().
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None, *, enable_adaptive_precision=False,
                 enable_adaptive_rank=False, tolerance=1e-2, adapt_from=_FEWEST, return_metrics=False):
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first,
                         device, dtype)
        if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 < tolerance < math.inf:
            raise ValueError(f"tolerance is {tolerance!r}, but must be a relative error above 0, for example 1e-2")
        if adapt_from is not None and adapt_from < _FEWEST:
            raise ValueError(f"adapt_from is {adapt_from}, but variants need {_FEWEST} rows and keys; give at least "
                             f"{_FEWEST}, or None")
        self.enable_adaptive_precision, self.enable_adaptive_rank = enable_adaptive_precision, enable_adaptive_rank
        self.tolerance, self.adapt_from, self.return_metrics = float(tolerance), adapt_from, return_metrics
        # torch.nn.TransformerEncoderLayer computes attention itself, without a call of forward, if this is True.
        self._qkv_same_embed_dim = False

    def extra_repr(self):
        names = ("enable_adaptive_precision", "enable_adaptive_rank", "tolerance", "adapt_from")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False, return_metrics=None):
        """Returns (output, weights or None), and the metrics as a third result if they are asked for.

        With N queries, M keys, a batch of B and E = embed_dim:

        query: [B, N, E] if batch_first, else [N, B, E]; unbatched [N, E]. key has kdim and value vdim as last axis.
        key_padding_mask: bool [B, M], unbatched [M]; True hides a key. A float is added to the scores.
        attn_mask: bool or float, [N, M] or [B·num_heads, N, M]; True hides a pair.
        need_weights: compute the weights too, with PyTorch and without variants; [B, N, M], averaged over the heads, or
            [B, num_heads, N, M] without average_attn_weights.
        is_causal: query i sees the keys up to i. A mask given as well must be causal; it is read with need_weights, a
            key_padding_mask or appended keys.

        A query that sees no key has weights of 0, and its output is the bias of the output projection.
        Raises ValueError for shapes and types, and NotImplementedError for dropout in training and for gradients.
        """
        if return_metrics is None:
            return_metrics = self.return_metrics
        if self.training and self.dropout > 0:
            raise NotImplementedError(f"dropout is {self.dropout} in training, but kernels have no dropout; call "
                                      "eval(), or construct AdaptiveAttention with dropout=0.0")
        _kernels.refuse_gradients("AdaptiveAttention", query, key, value, key_padding_mask, attn_mask,
                                  *self.parameters())
        batched = self._check(query, key, value)
        if is_causal and (self.bias_k is not None or self.add_zero_attn):  # every query sees the appended keys
            if attn_mask is None:
                rows, keys = (t.shape[-2 if not batched or self.batch_first else 0] for t in (query, key))
                attn_mask = torch.ones(rows, keys, dtype=torch.bool, device=query.device).triu(1)
            is_causal = False
        elif is_causal and attn_mask is not None:
            if key_padding_mask is None and not need_weights:
                attn_mask = None
            else:
                is_causal = False
        if not batched:
            at = 0 if self.batch_first else 1
            same = query is key, key is value
            query = query.unsqueeze(at)
            key = query if same[0] else key.unsqueeze(at)
            value = key if same[1] else value.unsqueeze(at)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        q, k, v = self.project(query, key, value)
        attn_mask, key_padding_mask = self._masks(q, k, attn_mask, key_padding_mask)
        k, v, attn_mask, key_padding_mask = self._append(k, v, attn_mask, key_padding_mask)
        out, metrics = self.attend(q, k, v, attn_mask, key_padding_mask, is_causal)
        out = F.linear(out.permute(0, 2, 1, 3).flatten(2) if self.batch_first else out.permute(2, 0, 1, 3).flatten(2),
                       self.out_proj.weight, self.out_proj.bias)
        weights = None
        if need_weights:
            weights = self._weights(q, k, attn_mask, key_padding_mask, is_causal)
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            out = out.squeeze(at)
            weights = None if weights is None else weights.squeeze(0)
            metrics.plans, metrics.estimates = metrics.plans[0], metrics.estimates[0]
        return (out, weights, metrics) if return_metrics else (out, weights)

    def project(self, query, key, value):
        """Returns the projected queries, keys and values as [batch, num_heads, length, head_dim]."""
        if self.in_proj_weight is None:
            given = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        elif query is key and key is value:
            return tuple(map(self._heads, F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)))
        else:
            given = self.in_proj_weight.chunk(3)
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return tuple(self._heads(F.linear(t, w, b)) for t, w, b in zip((query, key, value), given, biases))

    @torch.compiler.disable
    def attend(self, query, key, value, attn_mask=None, key_padding_mask=None, is_causal=False):
        """Returns (output, metrics) of projected heads, for callers that keep the keys and values of past tokens.

        query is [batch, num_heads, N, head_dim], key and value [batch, num_heads, M, head_dim], with any strides.
        attn_mask is [N, M] or [batch, num_heads, N, M], key_padding_mask [batch, M]; both are bool (True hides) or
        float (added). With is_causal, query i sees the keys up to i. The output is [batch, num_heads, N, head_dim].
        """
        self._check_heads(query, key, value, attn_mask, key_padding_mask)
        (b, h, n, d), m = query.shape, key.shape[2]
        arrays, settings, text = self._call(query, attn_mask, key_padding_mask, is_causal)
        inputs = [*map(_kernels.copyable, (query, key, value)), *arrays, 1 / math.sqrt(d)]
        kernel, reasons = self._adaptive_kernel(query, m, settings, text,
                                                is_causal or attn_mask is not None or key_padding_mask is not None)
        adapts = kernel is not None
        kernel = kernel or _kernels.compiled(text, query.device, settings)
        # Rows stand as the output projection reads them, so it copies nothing.
        out = query.new_empty((b, n, h, d) if self.batch_first else (n, b, h, d))
        out = out.permute(0, 2, 1, 3) if self.batch_first else out.permute(1, 2, 0, 3)
        has_decisions = adapts and any(p.name == "O_plan" for p in kernel.parameters)
        with _kernels.context(query.device):
            if has_decisions:
                _, plans, estimates = kernel(*inputs, out=(out, None, None))
            else:
                kernel(*inputs, out=out)
                plans = torch.zeros(b, h, dtype=torch.int32, device=query.device)
                estimates = torch.empty(b, h, 0, device=query.device)
        tolerance = self.tolerance if self.enable_adaptive_precision or self.enable_adaptive_rank else None
        return out, AttentionMetrics(kernel, plans, estimates, tolerance, reasons, {"B": b, "H": h, "N": n, "M": m})

    def _adaptive_kernel(self, query, keys, settings, text, masked):
        """Returns the kernel with variants, or None if none can be taken, and the reasons for what is missing."""
        precision, rank, reasons = self.enable_adaptive_precision, self.enable_adaptive_rank, []
        if rank and masked:
            rank = False
            reasons.append("no keys stand for others: the call has a mask, and clusters need keys that all rows see")
        if not precision and not rank:
            return None, reasons
        rows, fewest = query.shape[2], self.adapt_from or _FEWEST
        if min(rows, keys) < fewest:
            reasons.append(f"no variants are tried: {rows} rows and {keys} keys are fewer than {fewest}")
            return None, reasons
        kernel, said = _kernels.adaptive(
            text, query.device, settings, "O", f"{self.tolerance!r} relative sampled", spend=precision,
            spend_from=self.adapt_from or 0, low_rank=(self.adapt_from or _LONG) if rank else 0)
        return kernel, [*reasons, *said]

    def _call(self, query, attn_mask, key_padding_mask, is_causal):
        """Returns the mask arrays, the settings and the text of a kernel."""
        given = [t for t in (attn_mask, key_padding_mask) if t is not None]
        compute = "f64" if any(t.dtype == torch.float64 for t in (query, *given)) else "f32"
        text = specification(query.shape[-1], compute, None if attn_mask is None else SCALARS[attn_mask.dtype],
                             0 if attn_mask is None else attn_mask.dim(),
                             None if key_padding_mask is None else SCALARS[key_padding_mask.dtype], is_causal)
        settings = {"T": SCALARS[query.dtype]}
        if query.is_cuda and query.shape[2] == 1:  # keys are then split over blocks
            settings["N"] = "1"
        return given, settings, text

    def _weights(self, query, key, attn_mask, key_padding_mask, is_causal):
        """Returns the weights of all heads, [batch, num_heads, N, M]; 0 for a query that sees no key."""
        scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)
        if is_causal:
            scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        for mask in (attn_mask, None if key_padding_mask is None else key_padding_mask[:, None, None]):
            if mask is not None:
                scores = scores.masked_fill(mask, -math.inf) if mask.dtype == torch.bool \
                    else scores + mask.to(scores.dtype)
        unseen = (scores == -math.inf).all(-1, keepdim=True)
        return torch.softmax(scores, -1).masked_fill(unseen, 0)

    def _heads(self, t):
        """Returns a view of [B, L, E] or [L, B, E] as [B, num_heads, L, head_dim]."""
        t = t.unflatten(-1, (self.num_heads, self.head_dim))
        return t.permute(0, 2, 1, 3) if self.batch_first else t.permute(1, 2, 0, 3)

    def _append(self, k, v, attn_mask, key_padding_mask):
        """Appends the keys and values of bias_k, bias_v and add_zero_attn, which every query sees."""
        more = [], []
        if self.bias_k is not None:
            for rows, bias in zip(more, (self.bias_k, self.bias_v)):
                rows.append(bias.view(1, self.num_heads, 1, self.head_dim).expand(k.shape[0], -1, -1, -1).to(k.dtype))
        if self.add_zero_attn:
            for rows in more:
                rows.append(k.new_zeros(k.shape[0], self.num_heads, 1, self.head_dim))
        if more[0]:
            k, v = torch.cat([k, *more[0]], 2), torch.cat([v, *more[1]], 2)
            attn_mask, key_padding_mask = (None if t is None else F.pad(t, (0, len(more[0])))
                                           for t in (attn_mask, key_padding_mask))
        return k, v, attn_mask, key_padding_mask

    def _check(self, query, key, value):
        """Returns whether the inputs have a batch."""
        batched = query.dim() == 3
        for name, t, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            if t.is_nested:
                raise ValueError(f"{name} is a nested tensor; give a padded one and key_padding_mask")
            if t.dim() not in (2, 3) or t.dim() != query.dim():
                raise ValueError(f"{name} has {t.dim()} axes and query {query.dim()}; all must have 3, or 2 without "
                                 "a batch")
            if t.shape[-1] != width:
                raise ValueError(f"{name} has width {t.shape[-1]}, but this AdaptiveAttention takes {width}")
        at = 0 if self.batch_first else 1
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(f"key has the shape {list(key.shape)} and value {list(value.shape)}; all axes but the "
                             "last must be equal")
        if batched and query.shape[at] != key.shape[at]:
            raise ValueError(f"query has a batch of {query.shape[at]} and key one of {key.shape[at]}; they must be "
                             f"equal (batch_first is {self.batch_first})")
        return batched

    def _masks(self, q, k, attn_mask, key_padding_mask):
        """Checks the masks of PyTorch, and gives attn_mask [N, M] or [B, H, N, M]."""
        b, h, n, m = *q.shape[:3], k.shape[2]
        if attn_mask is not None:
            if list(attn_mask.shape) not in ([n, m], [b * h, n, m]):
                raise ValueError(f"attn_mask has the shape {list(attn_mask.shape)}, but must have {[n, m]} or "
                                 f"{[b * h, n, m]}")
            if attn_mask.dim() == 3:
                attn_mask = attn_mask.unflatten(0, (b, h))
        if key_padding_mask is not None and list(key_padding_mask.shape) != [b, m]:
            raise ValueError(f"key_padding_mask has the shape {list(key_padding_mask.shape)} with the batch first, but "
                             f"must have {[b, m]}")
        return attn_mask, key_padding_mask

    def _check_heads(self, query, key, value, attn_mask, key_padding_mask):
        _kernels.refuse_gradients("AdaptiveAttention", query, key, value, attn_mask, key_padding_mask)
        for name, t in (("query", query), ("key", key), ("value", value)):
            if t.dim() != 4 or (t.shape[1], t.shape[3]) != (self.num_heads, self.head_dim):
                raise ValueError(f"{name} has the shape {list(t.shape)}, but must have [batch, {self.num_heads}, "
                                 f"length, {self.head_dim}]")
            if t.dtype not in FLOATS or t.dtype != query.dtype:
                raise ValueError(f"{name} is {t.dtype} and query {query.dtype}, but all must have one type of float64, "
                                 "float32, bfloat16 and float16")
        for name, t in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
            if t is not None and t.dtype != torch.bool and t.dtype not in FLOATS:
                raise ValueError(f"{name} is {t.dtype}, but must be boolean or a float")
            if t is not None and t.device != query.device:
                raise ValueError(f"{name} is on {t.device} and query on {query.device}; move one of them")
