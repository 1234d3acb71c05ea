"""FlexAttention's interface: Python functions of scores and masks become one kernel."""
import math
from typing import List, Optional  # PyTorch 2.6 reads these forms alone

import torch

from . import _capture, _kernels
from ._graph import SCALARS, VARIABLES, Writer
from ._trace import Tracer, UnsupportedError, name_of

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def absence(g, node):
    """Splits a score into (predicate or None, value, risky).

    Where the predicate is false, the score is -inf in PyTorch, which gives no weight. `risky` says that the value may
    be -inf elsewhere.
    """
    if node.op == "const":
        return (g.const(False, torch.bool), g.const(0, node.dtype), False) if node.is_value(-math.inf) else \
            (None, node, math.isinf(node.args[0]))
    if node.op == "select":
        p, a, b = node.args
        (pa, ea, ra), (pb, eb, rb) = absence(g, a), absence(g, b)
        if pa is None and pb is None:
            return None, g.select(p, ea, eb), ra or rb
        if pb is not None and pb.is_value(False):
            return (p if pa is None else g.both(p, pa)), ea, ra
        if pa is not None and pa.is_value(False):
            return (g.negation(p) if pb is None else g.both(g.negation(p), pb)), eb, rb
        left = p if pa is None else g.both(p, pa)
        right = g.negation(p) if pb is None else g.both(g.negation(p), pb)
        return g.either(left, right), g.select(p, ea, eb), ra or rb
    if node.op in ("+", "-"):
        parts, values, risky = [], [], False
        for operand, hidden in zip(node.args, (-math.inf, -math.inf if node.op == "+" else math.inf)):
            if hidden < 0:
                p, e, r = absence(g, operand)
            elif captured(operand):
                p, e, r = g.compare("!=", operand, g.const(hidden, operand.dtype)), operand, False
            else:
                p, e, r = None, operand, may_be_infinite(operand)
            parts += [] if p is None else [p]
            values.append(e)
            risky |= r
        return (g.both(*parts) if parts else None), g.arithmetic(node.op, *values, node.dtype), risky
    if node.op in ("*", "/") and is_positive(node.args[1]):
        p, e, r = absence(g, node.args[0])
        return p, g.arithmetic(node.op, e, node.args[1], node.dtype), r
    if node.op == "convert" and node.args[0].is_float:
        p, e, r = absence(g, node.args[0])
        return p, g.convert(e, node.dtype), r
    if captured(node):  # as an additive mask
        return g.compare("!=", node, g.const(-math.inf, node.dtype)), node, False
    return None, node, may_be_infinite(node)


def is_positive(node):
    """Returns whether a float is known to be positive and finite."""
    return node.op == "const" and 0 < node.args[0] < math.inf or node.op == "convert" and node.args[0].low > 0


def captured(node):
    """Returns whether a value is a float of a captured tensor, converted or not."""
    while node.op == "convert" and node.args[0].is_float:
        node = node.args[0]
    return node.op in ("item", "read") and node.is_float


def may_be_infinite(node):
    """Returns whether a value may be -inf. Captured factors count as finite, and so does the score."""
    if not node.is_float:
        return False
    if node.op == "const":
        return math.isinf(node.args[0])
    if node.op in ("log", "log2", "log1p", "item", "read"):
        return True
    if node.op == "*":
        return any(may_be_infinite(a) for a in node.args if not captured(a))
    if node.op in ("/", "floor_divide"):
        divisor = node.args[1]
        nonzero = is_positive(divisor) or divisor.op == "const" and divisor.args[0] < 0
        return not nonzero or may_be_infinite(node.args[0])
    if node.op in ("select", "+", "-", "neg", "min", "max", "abs", "floor", "ceil", "round", "trunc", "remainder",
                   "sqrt", "convert"):
        return any(may_be_infinite(a) for a in Writer.children(node))
    return False


class Traced:
    """The graphs of a call's functions: where scores are seen, their values, and the tensors they read.

    `risky` says that values may be -inf where they are seen.
    """

    def __init__(self, q, k, score_mod, mask_mod):
        tracer = Tracer(q.device)
        g = tracer.graph
        indices = [g.var(name) for name in VARIABLES]
        self.score = g.make("score", dtype=torch.float64 if q.dtype == torch.float64 else torch.float32)
        self.value, self.risky, predicates = self.score, False, []
        if mask_mod is not None:
            mask = tracer.run(mask_mod, *indices)
            if not mask.is_bool:
                raise UnsupportedError(f"{name_of(mask_mod)} returned {mask.dtype}, not a boolean; "
                                       "compare it, as in x != 0")
            predicates.append(mask)
        if score_mod is not None:
            result = tracer.run(score_mod, self.score, *indices)
            result = g.convert(result, torch.promote_types(result.dtype, self.score.dtype))
            predicate, self.value, self.risky = absence(g, result)
            predicates += [] if predicate is None else [predicate]
        predicate = g.both(*predicates) if predicates else None
        self.predicate = None if predicate is None or predicate.is_value(True) else predicate
        self.captured = list(g.captured)
        check_limits(self.captured, {"b": q.shape[0], "h": q.shape[1], "i": q.shape[2], "j": k.shape[2]})
        doubles = q.dtype == torch.float64 or any(c.tensor.dtype == torch.float64 for c in self.captured)
        self.compute = torch.float64 if doubles else torch.float32
        self.wide = torch.float64 if self.value.dtype == torch.float64 else torch.float32

    def definitions(self, scores):
        """Returns the definitions from the scores on, and the name of the last one."""
        writer, lines, last = Writer(self.compute), [scores], "S"
        writer.count(self.value, *([] if self.predicate is None else [self.predicate]))
        if self.value is not self.score:
            text = writer.text(self.value)
            lines += writer.lines + [f"P = [b < B, h < H, i < N, j < M] {text}"]
            writer.lines, last = [], "P"
        if self.predicate is not None:
            text = writer.text(self.predicate)
            axes = ", ".join(f"{v} < {n}" if v in self.predicate.free else "_" for v, n in VARIABLES.items())
            lines += writer.lines + [f"X = mask([{axes}] {text}, {last})"]
            last = "X"
        if self.risky:
            lines.append(f"Y = mask({last} != -inf, {last})")
            last = "Y"
        return lines, last


def specification(traced, q, k, v, results):
    """Returns the text of the kernel. `results` names further results: lse, and top, the largest score."""
    lines, captured, wide = [], traced.captured, SCALARS[traced.wide]
    grouped = q.shape[1] != k.shape[1]
    heads, values = ("G", "Vh") if grouped else ("H", "V")
    if grouped:
        lines = ["Kh = [b < B, h < H] K[b, h / (H/G)]", "Vh = [b < B, h < H] V[b, h / (H/G)]"]
    more, last = traced.definitions(f"S = (Q +.* transpose({'Kh' if grouped else 'K'})) * scale")
    forms = {"lse": f"logsumexp({last})", "top": f"max/ {last}"}
    lines += more + [f"O = softmax({last}) +.* {values}"] + [f"{name} = {forms[name]}" for name in results]
    outputs = ["O : T[B, H, N, E]"] + [f"{name} : {wide}[B, H, N]" for name in results]
    requires = ["H % G == 0"] if grouped else []
    for c in captured:
        requires += [f"{VARIABLES[variable]} <= {c.extent(axis)}" for axis, variable in sorted(c.limits)]
        requires += [f"{s} >= 1" for s in c.symbols()]
    sizes = ["B", "H"] + (["G"] if grouped else []) + ["N", "M"] + [s for c in captured for s in c.symbols()]
    parameters = ["Q : T[B, H, N, D]", f"K : T[B, {heads}, M, D]", f"V : T[B, {heads}, M, E]",
                  *(c.declaration() for c in captured), f"scale : {SCALARS[traced.compute]}"]
    return (f"kernel flex[{', '.join(sizes)}; T : float, D = {q.shape[3]}, E = {v.shape[3]}](\n    "
            + ", ".join(parameters) + f")\n    -> ({', '.join(outputs)})\n"
            + (f"  require {' and '.join(dict.fromkeys(requires))}\n" if requires else "")
            + "{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")


def check_limits(captured, extents):
    for c in captured:
        for (axis, variable), place in c.limits.items():
            if extents[variable] > c.shape[axis]:
                raise IndexError(f"{place}\n  the index goes to {extents[variable] - 1}, but axis {axis} of the "
                                 f"captured tensor has extent {c.shape[axis]}")


def mask_function(block_mask):
    """Returns the mask function of a BlockMask, or one that reads its tables, or None."""
    from torch.nn.attention import flex_attention as flex
    mask_mod = getattr(block_mask, "mask_mod", None)
    if mask_mod is None:
        raise UnsupportedError("the BlockMask has no mask function; give mask_mod=")
    if getattr(flex, "_sliced_mask_mod_error", None) is mask_mod:
        raise UnsupportedError("a sliced BlockMask has lost its mask function; give mask_mod=")
    if mask_mod is not flex.noop_mask:
        return mask_mod
    table = block_mask.to_dense() != 0
    rows, columns = block_mask.BLOCK_SIZE
    if not torch.compiler.is_dynamo_compiling() and bool(table.all()):
        return None

    def of_block(b, h, i, j):
        b, h = (0 if table.shape[k] == 1 else x for k, x in enumerate((b, h)))
        return table[b, h, i // rows, j // columns]
    return of_block


def check(query, key, value, enable_gqa):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() != 4:
            raise ValueError(f"{name} has {t.dim()} axes, but flex_attention takes [batch, heads, length, width]")
        if t.dtype != query.dtype:
            raise ValueError(f"{name} is {t.dtype} and query is {query.dtype}; convert one of them")
        if t.device != query.device:
            raise ValueError(f"{name} is on {t.device} and query on {query.device}; move one of them")
    if query.dtype not in FLOATS:
        raise ValueError(f"query is {query.dtype}, but must be float64, float32, bfloat16 or float16")
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(f"key {list(key.shape)} and value {list(value.shape)} differ in batch, heads or length")
    if query.shape[3] != key.shape[3]:
        raise ValueError(f"query has width {query.shape[3]} and key {key.shape[3]}; they must be equal")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ValueError(f"query has {query.shape[1]} heads and key {key.shape[1]}; give enable_gqa=True")
    if key.shape[1] == 0 != query.shape[1] or key.shape[1] and query.shape[1] % key.shape[1]:
        raise ValueError(f"the {query.shape[1]} heads of query are no multiple of the {key.shape[1]} heads of key")


@torch.library.custom_op("moa::flex_attention", mutates_args=())
def _operator(specification: str, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              captured: List[torch.Tensor], scale: float, rows: int, wide: torch.dtype) -> List[torch.Tensor]:
    results = [((*query.shape[:3], value.shape[3]), query.dtype)] + [(query.shape[:3], wide)] * rows
    return _kernels.attend(specification, (query, key, value), [*captured, scale], results)


@_operator.register_fake
def _(specification, query, key, value, captured, scale, rows, wide):
    out = query.new_empty(*query.shape[:3], value.shape[3])
    return [out] + [query.new_empty(query.shape[:3], dtype=wide) for _ in range(rows)]


def _no_gradient(ctx, *_):
    raise NotImplementedError("moa.torch.flex_attention has no gradient; call it under torch.no_grad()")


_operator.register_autograd(_no_gradient)


def compute(query, key, value, score_mod, mask_mod, scale, results):
    """Traces the functions and returns the output and the results that `results` names, as a list."""
    if scale is None:
        scale = 1 / math.sqrt(int(query.shape[3])) if query.shape[3] else 1.0
    traced = Traced(query, key, score_mod, mask_mod)
    captured = [c.tensor.reshape(c.shape).to(query.device) for c in traced.captured]
    return _operator(specification(traced, query, key, value, results), query, key, value, captured, float(scale),
                     len(results), traced.wide)


@torch.compiler.disable
def compute_outside(*arguments):
    """Breaks the graph of torch.compile."""
    return compute(*arguments)


def flex_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, score_mod=None, block_mask=None,
                   scale: Optional[float] = None, enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options=None, *, mask_mod=None, return_aux=None):
    """Computes attention with a Python function of the scores and one of the mask, as
    torch.nn.attention.flex_attention.flex_attention does (https://arxiv.org/abs/2412.05496).

    query: [batch, heads, N, D]; key: [batch, key heads, M, D]; value: [batch, key heads, M, E]; float64, float32,
        bfloat16 or float16, on one device, a CPU or a GPU of sm_90a.
    score_mod: score_mod(score, b, h, q_idx, kv_idx) returns a score; the indices are integers.
    mask_mod: mask_mod(b, h, q_idx, kv_idx) returns whether a pair is seen. It may be given without a BlockMask.
    block_mask: a BlockMask of N queries and M keys. Its tables are read only if it has no mask function.
    scale: multiplies the products before score_mod; by default 1/sqrt(D).
    enable_gqa: several query heads share a key head. kernel_options are ignored.

    Returns the output [batch, heads, N, E], and with return_lse or return_aux what PyTorch returns: lse [batch, heads,
    N] is the natural logarithm of each row's sum. A row that sees no key gives 0 and an lse of -inf.
    Raises ValueError or IndexError for wrong arguments, UnsupportedError for an operation that is not traced, and
    NotImplementedError if an input requires a gradient.
    """
    _kernels.refuse_tangents("flex_attention", query, key, value)
    query, key, value = _kernels.autocast(query, key, value)
    check(query, key, value, enable_gqa)
    if block_mask is not None:
        if mask_mod is not None:
            raise ValueError("give block_mask or mask_mod, not both")
        rows, columns = block_mask.shape[-2:]
        if max(block_mask.BLOCK_SIZE) < 1 << 30 and (rows, columns) != (query.shape[2], key.shape[2]):
            raise ValueError(f"block_mask is for {rows} queries and {columns} keys, but there are {query.shape[2]} "
                             f"and {key.shape[2]}; make a block mask of these lengths")
        mask_mod = mask_function(block_mask)
    if key.shape[0] != query.shape[0]:
        if key.shape[0] != 1:
            raise ValueError(f"query has {query.shape[0]} batch entries and key {key.shape[0]}; they must be equal")
        key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    _kernels.refuse_gradients("flex_attention", query, key, value)
    results = [name for name, wanted in (
        ("lse", return_lse or return_aux is not None and return_aux.lse),
        ("top", return_aux is not None and return_aux.max_scores)) if wanted]
    run = compute
    if torch.compiler.is_dynamo_compiling():
        run = _capture.compute if _capture.IS_KNOWN else compute_outside
    out, *further = run(query, key, value, score_mod, mask_mod, scale, results)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        named = dict(zip(results, further))
        return out, AuxOutput(lse=named.get("lse"), max_scores=named.get("top"))
    return (out, further[0]) if return_lse else out
