"""Traces score and mask functions of FlexAttention to graphs of `_graph`.

The function is called once with tensors that record the ATen operations applied to them. Captured tensors take part as
they are; operations on captured tensors alone are executed.
"""
import linecache
import math
import os
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ._graph import SCALARS, Graph, Node

OWN = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.abspath(torch.__file__))
# The types of results, by operation and types of operands.
RESULT_TYPES = {}
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class UnsupportedError(NotImplementedError):
    """A score or mask function uses an operation that the language does not have."""


def user_line():
    """Returns the place of the innermost frame that belongs neither to PyTorch nor to this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((OWN, TORCH)) and not name.startswith("<"):
            line = linecache.getline(name, frame.f_lineno).strip()
            return f"{os.path.basename(name)}:{frame.f_lineno}" + (f": {line}" if line else "")
        frame = frame.f_back
    return "the function"


def refuse(operation, reason, remedy):
    raise UnsupportedError(f"{user_line()}\n  {operation}: {reason}; {remedy}")


class Traced(torch.Tensor):
    """A tensor without data that stands for a node."""

    @staticmethod
    def __new__(cls, node, device):
        made = torch.Tensor._make_wrapper_subclass(cls, node.shape, dtype=node.dtype, device=device)
        made.node = node
        return made

    def __repr__(self, *, tensor_contents=None):
        return f"traced {self.node.op} of {self.dtype}"

    def __int__(self):
        self.refuse_value()

    __index__ = __float__ = __bool__ = __int__

    def refuse_value(self):
        refuse("a Python number or condition made of a traced value", "the function is traced once for all indices",
               "write torch.where instead of if, and & | ~ instead of and, or, not")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        refuse(str(func), "a traced value is used after its trace", "return it from the function")


def is_float(value):
    return isinstance(value, float) or isinstance(value, (Traced, torch.Tensor)) and value.dtype.is_floating_point


class Subscripts(TorchFunctionMode):
    """Takes subscripts by traced values, which PyTorch would turn to Python numbers."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__:
            base, index = args
            entries = index if isinstance(index, tuple) else (index,)
            if isinstance(base, Traced) or any(isinstance(e, Traced) for e in entries):
                return self.tracer.subscript(base, entries)
        if func is torch.Tensor.__setitem__ and any(isinstance(a, Traced) for a in args):
            refuse("an assignment to elements", "definitions have no elements to replace", "use torch.where")
        return func(*args, **(kwargs or {}))


class Tracer(TorchDispatchMode):
    """Records the operations of one or several functions in a graph."""

    CREATED = {"scalar_tensor", "full", "zeros", "ones", "empty", "lift_fresh", "new_full", "new_zeros", "new_ones"}

    def __init__(self, device):
        super().__init__()
        self.graph, self.device, self.constants, self.depth, self.outer = Graph(), device, {}, 0, None
        self.records_gradients = torch.is_grad_enabled()

    # Values.

    def wrap(self, node):
        return Traced(node, self.device)

    def run(self, function, *nodes):
        """Returns the node that the function gives for arguments."""
        with torch.no_grad(), Subscripts(self), self:
            result = function(*(self.wrap(n) for n in nodes))
        if isinstance(result, (bool, int, float)):
            value, result = result, torch.tensor(result)
            self.constants[id(result)] = result, value
        if not isinstance(result, torch.Tensor):
            raise UnsupportedError(f"{name_of(function)} returned {type(result).__name__}, not a tensor; "
                                   "return one value per index")
        node = self.node(result)
        if node.shape:
            raise UnsupportedError(f"{name_of(function)} returned a tensor of shape {list(node.shape)}; "
                                   "return a tensor without axes")
        return node

    def node(self, value, dtype=None):
        """Returns the node of a traced tensor, a captured tensor or a number (of the given type)."""
        if isinstance(value, Traced):
            return value.node
        if isinstance(value, torch.Tensor):
            if id(value) in self.constants:
                return self.graph.const(self.constants[id(value)][1], value.dtype)
            self.check_captured(value)
            return self.graph.read(value)
        if isinstance(value, complex):
            refuse("a complex number", "the language has real numbers only", "compute the parts apart")
        if dtype is None:
            dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else \
                torch.get_default_dtype()
        return self.graph.const(value, dtype)

    def check_captured(self, tensor):
        if tensor.requires_grad and self.records_gradients:
            refuse("a captured tensor that requires a gradient", "kernels have no gradient", "capture t.detach()")
        if tensor.dtype not in SCALARS:
            refuse(f"a captured tensor of {tensor.dtype}", "the language has no such type", "convert it first")

    def number(self, value, dtype):
        """Returns the node of an operand converted to the type of the operation."""
        if isinstance(value, torch.Tensor):
            return self.graph.convert(self.node(value), dtype)
        return self.graph.const(value, dtype)

    # Subscripts.

    def subscript(self, base, entries):
        g = self.graph
        count = sum(e is not None and e is not Ellipsis for e in entries)
        if Ellipsis in [e for e in entries if not isinstance(e, torch.Tensor)]:
            at = next(k for k, e in enumerate(entries) if e is Ellipsis)
            entries = entries[:at] + (slice(None),) * (base.dim() - count) + entries[at + 1:]
        else:
            entries = entries + (slice(None),) * (base.dim() - count)
        if sum(e is not None for e in entries) != base.dim():
            refuse("a subscript", f"the tensor has {base.dim()} axes", "give one subscript per axis")
        shape, subscripts, axis, order = [], [], 0, []
        for e in entries:
            if e is None:
                order.append(None)
                shape.append(1)
                continue
            n = base.shape[axis]
            if isinstance(e, slice):
                start, stop, step = e.indices(n)
                length = len(range(start, stop, step))
                subscripts.append(None if (start, step, length) == (0, 1, n) else slice(start, stop, step))
                order.append(sum(x is not None for x in order))
                shape.append(length)
            else:
                node = self.node(e)
                if node.dtype not in INTEGERS or node.shape:
                    refuse("a subscript by an array or a boolean", "only integers without axes select elements",
                           "subscript by single indices, or use torch.where")
                if node.op == "const":
                    value = node.args[0]
                    if not -n <= value < n:
                        raise IndexError(f"{user_line()}\n  index {value} is outside of axis {axis} of extent {n}")
                    node = g.const(value % n, torch.int64)
                subscripts.append(node)
            axis += 1
        inner = [n for n, o in zip(shape, order) if o is not None]
        if isinstance(base, Traced):
            made = self.chosen(base.node, subscripts, inner)
        else:
            self.check_captured(base)
            made = self.item(g.capture(base), base.dtype, subscripts, inner)
        if None in order:
            made = g.make("view", made, tuple(k for k, o in enumerate(order) if o is not None), dtype=made.dtype,
                          shape=tuple(shape))
        return self.wrap(made)

    def item(self, entry, dtype, subscripts, shape):
        for axis, s in enumerate(subscripts):
            if isinstance(s, Node) and s.op == "var":
                if (axis, s.args[0]) not in entry.limits:
                    entry.limits[axis, s.args[0]] = user_line()
            elif not isinstance(s, Node) or s.op == "const":
                entry.whole.add(axis)
        return self.graph.make("item", entry, tuple(subscripts), dtype=dtype, shape=tuple(shape))

    def chosen(self, node, subscripts, shape):
        """Subscripts of a traced array: composed with those of a captured tensor, if it is one."""
        if all(s is None for s in subscripts):
            return node
        if node.op == "item" and all(s is None for s in node.args[1] if not isinstance(s, Node)):
            rest = list(subscripts)
            return self.item(node.args[0], node.dtype, [s if isinstance(s, Node) else rest.pop(0)
                                                        for s in node.args[1]], shape)
        refuse("a subscript of a computed array", "only captured tensors have subscripts", "subscript before computing")

    # Operations.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        name = func._schema.name.split("::")[-1]
        if not any(isinstance(a, Traced) for a in flat):
            is_changed = func._schema.is_mutable and args and isinstance(args[0], torch.Tensor)
            if is_changed and id(args[0]) not in self.constants:
                refuse(str(func), "a captured tensor changes", "do not assign to captured tensors")
            result = func(*args, **kwargs)
            if name in self.CREATED and isinstance(result, torch.Tensor) and result.dim() == 0 \
                    and (name != "lift_fresh" or id(args[0]) not in self.graph.by_id):
                self.constants[id(result)] = result, self.created(name, args, result)
            elif name in ("_to_copy", "alias", "detach", "clone", "lift_fresh_copy") and id(args[0]) in self.constants:
                self.constants[id(result)] = result, self.created(name, args, result)
            return result
        return self.operation(func, name, args, kwargs)

    def created(self, name, args, result):
        """Returns the number that a tensor made in the function holds. Under torch.compile the tensor has none."""
        if type(result) is torch.Tensor:
            return result.item()
        source = args[0] if args else None
        if isinstance(source, torch.Tensor) and id(source) in self.constants:
            value = self.constants[id(source)][1]
        elif name == "lift_fresh" and type(source) is torch.Tensor:
            value = source
        else:
            value = {"scalar_tensor": args[:1], "full": args[1:2], "new_full": args[2:3],
                     "zeros": [0], "new_zeros": [0], "ones": [1], "new_ones": [1]}.get(name)
            if not value:
                refuse(f"a tensor made by {name}", "its value is not known under torch.compile", "use a Python number")
            value = value[0]
        with _disable_current_modes():
            return torch.as_tensor(value).to(result.dtype).item()

    def operation(self, func, name, args, kwargs):
        g = self.graph
        if func.namespace == "aten" and name.endswith("_") and not name.startswith("_") and not name.endswith("__"):
            plain = getattr(torch.ops.aten, name[:-1], None)
            if plain is not None:
                if not isinstance(args[0], Traced):
                    refuse(str(func), "a captured tensor changes", "do not assign to captured tensors")
                result = self.operation(getattr(plain, func._overloadname), name[:-1], args, kwargs)
                args[0].node = g.convert(result.node, args[0].dtype)
                return args[0]
        method = getattr(self, "op_" + name, None)
        if method is not None and func.namespace in ("aten", "prims"):
            options = {k: v for k, v in kwargs.items() if k not in self.IGNORED}
            dtype = self.result_type(func, args, kwargs)
            if name in self.COMPOSED and dtype in (torch.bfloat16, torch.float16):
                # PyTorch computes these in float32 and rounds once.
                return self.wrap(self.graph.convert(method(torch.float32, *args, **options), dtype))
            return self.wrap(method(dtype, *args, **options))
        if name in ("_local_scalar_dense", "is_nonzero", "item", "equal", "nonzero"):
            Traced.refuse_value(None)
        from torch._decomp import decomposition_table
        rule = decomposition_table.get(func) or (func.decompose if func._can_decompose() else None)
        if rule is not None and self.depth < 8 and name not in self.INEXACT:
            self.outer = func if self.depth == 0 else self.outer
            self.depth += 1
            try:
                with self:
                    return rule(*args, **kwargs)
            finally:
                self.depth -= 1
        refuse(str(self.outer if self.depth else func), "the specification language has no operation with this meaning",
               "write it with the operations that docs/PyTorch.md lists")

    # Arguments that decide the type, which `result_type` finds, or only where a tensor stands.
    IGNORED = ("dtype", "layout", "device", "pin_memory", "non_blocking", "memory_format", "implicit")
    # Methods that compose an operation of several.
    COMPOSED = {"div", "mean", "pow", "sigmoid", "silu", "softplus", "tan"}
    # Decompositions that lose accuracy.
    INEXACT = {"asinh", "acosh", "atanh", "logaddexp", "logaddexp2", "erfc", "log10", "hypot",
               "rand_like", "randn_like", "bernoulli", "dropout", "native_dropout"}

    def result_type(self, func, args, kwargs):
        """Returns the type that PyTorch gives the result, by running the operation on meta tensors."""
        key = (func, torch.get_default_dtype(), tuple(
            (a.dtype, a.shape) if isinstance(a, torch.Tensor) else type(a) if type(a) in (int, float) else repr(a)
            for a in (*args, *kwargs.items())))
        if key in RESULT_TYPES:
            return RESULT_TYPES[key]

        def meta(value):
            if isinstance(value, torch.Tensor):
                return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta")
            return torch.device("meta") if isinstance(value, torch.device) else value
        args, kwargs = torch.utils._pytree.tree_map(meta, (args, kwargs))
        result = func(*args, **kwargs)
        RESULT_TYPES[key] = result.dtype if isinstance(result, torch.Tensor) else None
        return RESULT_TYPES[key]

    def two(self, op, dtype, a, b):
        return self.graph.apply(op, self.number(a, dtype), self.number(b, dtype), dtype=dtype)

    def one(self, op, dtype, a):
        return self.graph.apply(op, self.number(a, dtype), dtype=dtype)

    def op_add(self, dtype, a, b, alpha=1):
        g = self.graph
        if dtype == torch.bool:
            return g.either(self.number(a, dtype), self.number(b, dtype))
        if alpha != 1:
            b = self.wrap(self.two("*", dtype, b, alpha))
        if (not isinstance(a, Traced) and not is_float(a) and self.is_zero(a)) and dtype == self.node(b).dtype:
            return self.node(b)
        return self.two("+", dtype, a, b)

    def is_zero(self, value):
        return isinstance(value, (int, float)) and value == 0

    def op_sub(self, dtype, a, b, alpha=1):
        if alpha != 1:
            b = self.wrap(self.two("*", dtype, b, alpha))
        return self.two("-", dtype, a, b)

    def op_rsub(self, dtype, a, b, alpha=1):
        return self.op_sub(dtype, b, a, alpha)

    def op_mul(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.both(self.number(a, dtype), self.number(b, dtype))
        return self.two("*", dtype, a, b)

    def op_div(self, dtype, a, b, rounding_mode=None):
        if rounding_mode is None:
            return self.two("/", dtype, a, b)
        if not dtype.is_floating_point:
            return self.two("idiv", dtype, a, b) if rounding_mode == "floor" else self.truncated(dtype, a, b)[0]
        if rounding_mode == "floor":
            return self.op_floor_divide(dtype, a, b)
        return self.graph.apply("trunc", self.two("/", dtype, a, b), dtype=dtype)

    def op_floor_divide(self, dtype, a, b):
        return self.two("floor_divide" if dtype.is_floating_point else "idiv", dtype, a, b)

    def op_remainder(self, dtype, a, b):
        return self.rest("remainder", dtype, a, b) if dtype.is_floating_point else self.two("imod", dtype, a, b)

    def rest(self, op, dtype, a, b):
        """Returns a remainder of floats. Numbers are first rounded to the type of 16-bit operands."""
        nodes = [self.number(x, dtype) for x in (a, b)]
        nodes = [self.graph.const(torch.tensor(n.args[0], dtype=dtype).item(), dtype) if n.op == "const" else n
                 for n in nodes]
        return self.graph.apply(op, *nodes, dtype=dtype)

    def truncated(self, dtype, a, b):
        """Quotient and remainder of integers, rounded towards zero."""
        g = self.graph
        x, y = self.number(a, dtype), self.number(b, dtype)
        zero, one = g.const(0, dtype), g.const(1, dtype)
        q, r = (g.apply(op, x, y, dtype=dtype) for op in ("idiv", "imod"))
        differs = g.both(g.compare("!=", r, zero), g.compare("!=", g.compare("<", x, zero), g.compare("<", y, zero)))
        return (g.select(differs, g.arithmetic("+", q, one, dtype), q),
                g.select(differs, g.arithmetic("-", r, y, dtype), r))

    def op_fmod(self, dtype, a, b):
        return self.rest("fmod", dtype, a, b) if dtype.is_floating_point else self.truncated(dtype, a, b)[1]

    def op_atan2(self, dtype, a, b):
        return self.two("atan2", dtype, a, b)

    def op_neg(self, dtype, a):
        return self.one("neg", dtype, a)

    def op_abs(self, dtype, a):
        return self.one("abs", dtype, a)

    def op_trunc(self, dtype, a):
        return self.one("trunc", dtype, a) if dtype.is_floating_point else self.node(a)

    op_fix = op_trunc

    def op_frac(self, dtype, a):
        x = self.number(a, dtype)
        return self.graph.arithmetic("-", x, self.graph.apply("trunc", x, dtype=dtype), dtype)

    def op_floor(self, dtype, a):
        return self.one("floor", dtype, a) if dtype.is_floating_point else self.node(a)

    def op_ceil(self, dtype, a):
        return self.one("ceil", dtype, a) if dtype.is_floating_point else self.node(a)

    def op_round(self, dtype, a, decimals=0):
        if decimals:
            refuse("round with decimals", "the language rounds to integers only", "multiply, round and divide")
        return self.one("round", dtype, a) if dtype.is_floating_point else self.node(a)

    def op_sign(self, dtype, a):
        g, x = self.graph, self.number(a, dtype)
        if dtype == torch.bool:
            return x
        # The language's sign of NaN is NaN, but PyTorch's is 0.
        const = lambda value: g.const(value, dtype)
        other = g.select(g.compare("<", x, const(0)), const(-1), const(0))
        return g.select(g.compare(">", x, const(0)), const(1), other)

    op_sgn = op_sign

    def op_maximum(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.either(self.node(a), self.node(b))
        return self.two("max", dtype, a, b)

    def op_minimum(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.both(self.node(a), self.node(b))
        return self.two("min", dtype, a, b)

    def fused(self, op, dtype, a, b):
        """fmax and fmin: a NaN gives the other operand."""
        g, x, y = self.graph, self.number(a, dtype), self.number(b, dtype)
        if not dtype.is_floating_point:
            return self.two(op, dtype, a, b)
        return g.select(g.compare("!=", x, x), y, g.select(g.compare("!=", y, y), x, g.apply(op, x, y, dtype=dtype)))

    def op_fmax(self, dtype, a, b):
        return self.fused("max", dtype, a, b)

    def op_fmin(self, dtype, a, b):
        return self.fused("min", dtype, a, b)

    def op_clamp(self, dtype, a, min=None, max=None):
        node = self.number(a, dtype)
        if min is not None:
            node = self.graph.apply("max", node, self.number(min, dtype), dtype=dtype)
        if max is not None:
            node = self.graph.apply("min", node, self.number(max, dtype), dtype=dtype)
        return node

    def op_clamp_min(self, dtype, a, min):
        return self.op_clamp(dtype, a, min=min)

    def op_clamp_max(self, dtype, a, max):
        return self.op_clamp(dtype, a, max=max)

    def op_pow(self, dtype, a, b):
        g = self.graph
        exponent = b if isinstance(b, (int, float)) else \
            self.constants[id(b)][1] if isinstance(b, torch.Tensor) and id(b) in self.constants else None
        if exponent is not None and exponent == int(exponent) and 0 <= exponent <= 64 \
                and (exponent <= 3 or not dtype.is_floating_point):
            x = self.number(a, dtype)
            result = g.const(1, dtype) if exponent == 0 else x
            for bit in bin(int(exponent))[3:]:
                result = g.arithmetic("*", result, result, dtype)
                result = g.arithmetic("*", result, x, dtype) if bit == "1" else result
            return result
        if not dtype.is_floating_point:
            refuse("a power of integers", "the language has powers of floats", "convert the base to a float")
        if exponent in (0.5, -0.5):
            return self.one("sqrt" if exponent > 0 else "rsqrt", dtype, a)
        return self.two("pow", dtype, a, b)

    def op_reciprocal(self, dtype, a):
        return self.two("/", dtype, 1, a)

    def op_tan(self, dtype, a):
        x = self.number(a, dtype)
        sin, cos = (self.graph.apply(f, x, dtype=dtype) for f in ("sin", "cos"))
        return self.graph.arithmetic("/", sin, cos, dtype)

    def op_sigmoid(self, dtype, a):
        g, x = self.graph, self.number(a, dtype)
        power = g.apply("exp", g.apply("neg", x, dtype=dtype), dtype=dtype)
        return g.arithmetic("/", g.const(1, dtype), g.arithmetic("+", g.const(1, dtype), power, dtype), dtype)

    def op_silu(self, dtype, a):
        return self.graph.arithmetic("*", self.number(a, dtype), self.op_sigmoid(dtype, a), dtype)

    def op_relu(self, dtype, a):
        return self.op_clamp(dtype, a, min=0)

    def op_log_sigmoid_forward(self, dtype, a):
        refuse("log_sigmoid", "its ATen operation has two results", "write -torch.nn.functional.softplus(-x)")

    def op_softplus(self, dtype, a, beta=1, threshold=20):
        g, x = self.graph, self.number(a, dtype)
        scaled = self.two("*", dtype, a, beta)
        power = g.apply("exp", scaled, dtype=dtype)
        soft = self.two("/", dtype, self.wrap(self.op_log1p(dtype, self.wrap(power))), beta)
        return g.select(g.compare(">", scaled, g.const(threshold, dtype)), x, soft)

    # Logic.

    def op_where(self, dtype, p, a, b):
        g = self.graph
        p = self.node(p)
        p = p if p.is_bool else g.convert(p, torch.bool)
        return g.apply("select", p, self.number(a, dtype), self.number(b, dtype), dtype=dtype)

    def op_masked_fill(self, dtype, a, mask, value):
        return self.op_where(dtype, mask, value, a)

    def truth(self, value):
        return self.graph.convert(self.node(value), torch.bool)

    def op_logical_not(self, dtype, a):
        return self.graph.negation(self.truth(a))

    def op_logical_and(self, dtype, a, b):
        return self.graph.both(self.truth(a), self.truth(b))

    def op_logical_or(self, dtype, a, b):
        return self.graph.either(self.truth(a), self.truth(b))

    def op_logical_xor(self, dtype, a, b):
        return self.graph.compare("!=", self.truth(a), self.truth(b))

    def op_bitwise_not(self, dtype, a):
        return self.graph.negation(self.node(a)) if dtype == torch.bool else self.one("~", dtype, a)

    def op_bitwise_and(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.both(self.number(a, dtype), self.number(b, dtype))
        return self.two("&", dtype, a, b)

    def op_bitwise_or(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.either(self.number(a, dtype), self.number(b, dtype))
        return self.two("|", dtype, a, b)

    def op_bitwise_xor(self, dtype, a, b):
        if dtype == torch.bool:
            return self.graph.compare("!=", self.number(a, dtype), self.number(b, dtype))
        return self.two("^", dtype, a, b)

    op___and__, op___or__, op___xor__ = op_bitwise_and, op_bitwise_or, op_bitwise_xor

    def op_bitwise_left_shift(self, dtype, a, b):
        return self.two("<<", dtype, a, b)

    def op_bitwise_right_shift(self, dtype, a, b):
        return self.two(">>", dtype, a, b)

    op___lshift__, op___rshift__ = op_bitwise_left_shift, op_bitwise_right_shift

    def op_isnan(self, dtype, a):
        x = self.node(a)
        return self.graph.compare("!=", x, x)

    # Types and axes.

    def op_index(self, dtype, a, indices):
        return self.subscript(a, tuple(slice(None) if e is None else e for e in indices)).node

    def op__to_copy(self, dtype, a):
        return self.graph.convert(self.node(a), dtype)

    def op_clone(self, dtype, a):
        return self.node(a)

    op_alias = op_detach = op_lift_fresh = op_contiguous = op_clone

    def op_full_like(self, dtype, a, value):
        return self.graph.const(value, dtype)

    def op_zeros_like(self, dtype, a):
        return self.graph.const(0, dtype)

    def op_ones_like(self, dtype, a):
        return self.graph.const(1, dtype)

    def op_new_full(self, dtype, a, size, value):
        if size:
            refuse("new_full", "only tensors without axes are made", "give it the shape ()")
        return self.graph.const(value, dtype)

    def op_unsqueeze(self, dtype, a, dim):
        node = self.node(a)
        dim %= len(node.shape) + 1
        shape = node.shape[:dim] + (1,) + node.shape[dim:]
        place = tuple(k for k in range(len(shape)) if k != dim)
        return self.graph.make("view", node, place, dtype=node.dtype, shape=shape)

    def op_squeeze(self, dtype, a, dim=None):
        node = self.node(a)
        n = len(node.shape)
        given = dim if isinstance(dim, (list, tuple)) else [dim]
        dims = range(n) if dim is None else [d % n for d in given] if n else []
        kept = [k for k in range(n) if not (k in dims and node.shape[k] == 1)]
        place = tuple(kept.index(k) if k in kept else None for k in range(n))
        return self.graph.make("view", node, place, dtype=node.dtype, shape=tuple(node.shape[k] for k in kept))

    def op_expand(self, dtype, a, size):
        node = self.node(a)
        new = len(size) - len(node.shape)
        shape = tuple(node.shape[k - new] if n == -1 else n for k, n in enumerate(size))
        place = tuple(None if node.shape[k] == 1 else k + new for k in range(len(node.shape)))
        return self.graph.make("view", node, place, dtype=node.dtype, shape=shape)

    def op_select(self, dtype, a, dim, index):
        node = self.node(a)
        entries = [slice(None)] * len(node.shape)
        entries[dim % len(entries)] = index
        return self.subscript(self.wrap(node), tuple(entries)).node

    def reduction(self, kind, dtype, a, dims=None, keepdim=False):
        node = self.graph.convert(self.node(a), dtype)
        n = len(node.shape)
        dims = [dims] if isinstance(dims, int) else dims
        axes = tuple(sorted(d % n for d in dims)) if dims and n else tuple(range(n))
        if not axes:
            return node
        shape = tuple(x for k, x in enumerate(node.shape) if k not in axes)
        made = self.graph.make("reduce", node, kind, axes, dtype=dtype, shape=shape)
        if keepdim:
            for axis in axes:
                made = self.op_unsqueeze(dtype, self.wrap(made), axis)
        return made

    def op_sum(self, dtype, a, dim=None, keepdim=False):
        return self.reduction("sum", dtype, a, dim, keepdim)

    def op_prod(self, dtype, a, dim=None, keepdim=False):
        return self.reduction("prod", dtype, a, dim, keepdim)

    def op_mean(self, dtype, a, dim=None, keepdim=False):
        node = self.node(a)
        dims = range(len(node.shape)) if not dim else [dim] if isinstance(dim, int) else dim
        count = math.prod(node.shape[d] for d in dims)
        return self.two("/", dtype, self.wrap(self.reduction("sum", dtype, a, dim, keepdim)), count)

    def op_any(self, dtype, a, dim=None, keepdim=False):
        return self.reduction("any", torch.bool, self.wrap(self.truth(a)), dim, keepdim)

    def op_all(self, dtype, a, dim=None, keepdim=False):
        return self.reduction("all", torch.bool, self.wrap(self.truth(a)), dim, keepdim)

    def op_amax(self, dtype, a, dim=(), keepdim=False):
        return self.reduction("amax", dtype, a, list(dim), keepdim)

    def op_amin(self, dtype, a, dim=(), keepdim=False):
        return self.reduction("amin", dtype, a, list(dim), keepdim)

    def op_max(self, dtype, a):
        return self.reduction("amax", dtype, a)

    def op_min(self, dtype, a):
        return self.reduction("amin", dtype, a)

    def op_dot(self, dtype, a, b):
        # Products and sums are of the compute type, and the sum is rounded once, as in PyTorch.
        wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
        product = self.two("*", wide, a, b)
        return self.graph.convert(self.reduction("sum", wide, self.wrap(product)), dtype)


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def unary(op):
    return lambda self, dtype, a: self.one(op, dtype, a)


def comparison(op):
    def compare(self, dtype, a, b):
        common = torch.result_type(*(x if not isinstance(x, torch.Tensor) else
                                     torch.empty(tuple(x.shape), dtype=x.dtype, device="meta") for x in (a, b)))
        return self.graph.compare(op, self.number(a, common), self.number(b, common))
    return compare


for _op in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf", "log1p", "expm1", "asin",
            "acos", "atan", "sinh", "cosh"):
    setattr(Tracer, "op_" + _op, unary(_op))
for _op, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Tracer, "op_" + _op, comparison(_sign))
