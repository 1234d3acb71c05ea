"""Expressions of a traced function: nodes with sharing, and their text in the specification language.

A node stands for a scalar per batch entry, head, query and key, or for a small array of such scalars (its `shape`).
Its dtype is PyTorch's. Nodes with equal operations and operands are one object.
"""
import math

import torch

VARIABLES = {"b": "B", "h": "H", "i": "N", "j": "M"}
SCALARS = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
           torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
           torch.uint16: "u16", torch.uint32: "u32", torch.bool: "bool"}
LARGEST = {torch.float32: torch.finfo(torch.float32).max, torch.float64: torch.finfo(torch.float64).max}


class Node:
    """One operation. `args` are nodes or plain values, `free` the index variables it depends on."""

    __slots__ = ("op", "args", "dtype", "shape", "free", "low", "high", "depth")

    def __init__(self, op, args, dtype, shape):
        self.op, self.args, self.dtype, self.shape = op, args, dtype, tuple(shape)
        nodes = list(Writer.children(self))
        self.free = frozenset(args) if op == "var" else frozenset(VARIABLES) if op == "score" else \
            frozenset().union(*(a.free for a in nodes))
        self.depth = 1 + max((a.depth for a in nodes), default=0)
        self.low, self.high = bounds(self)

    is_float = property(lambda self: self.dtype.is_floating_point)
    is_bool = property(lambda self: self.dtype == torch.bool)

    def is_value(self, value):
        return self.op == "const" and self.args[0] == value


def bounds(node):
    """Returns constant bounds of an integer of 64 bits, or infinities. Sums of indices do not wrap in 64 bits."""
    low, high = -math.inf, math.inf
    if node.dtype != torch.int64:
        return low, high
    a = [x for x in node.args if isinstance(x, Node)]
    if node.op == "const":
        return node.args[0], node.args[0]
    if node.op == "var":
        return 0, math.inf
    if node.op == "select":
        return min(a[1].low, a[2].low), max(a[1].high, a[2].high)
    if node.op == "+":
        return a[0].low + a[1].low, a[0].high + a[1].high
    if node.op == "-":
        return a[0].low - a[1].high, a[0].high - a[1].low
    if node.op == "*" and a[0].low >= 0 and a[1].low >= 0:
        return a[0].low * a[1].low, math.inf
    if node.op == "idiv" and a[0].low >= 0 and a[1].low > 0:
        return 0, a[0].high
    if node.op == "imod" and a[1].low > 0:
        return 0, a[1].high - 1
    if node.op == "abs":
        return 0, math.inf
    if node.op == "min":
        return min(a[0].low, a[1].low), min(a[0].high, a[1].high)
    if node.op == "max":
        return max(a[0].low, a[1].low), max(a[0].high, a[1].high)
    return low, high


class Captured:
    """A tensor that the function reads: a parameter of the kernel."""

    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor
        self.shape = tuple(tensor.shape) or (1,)
        self.whole = set()            # axes whose extent stands as a number in the text
        self.limits = {}              # axis -> (variable, place): the variable subscripts it directly

    def extent(self, axis):
        return str(int(self.shape[axis])) if axis in self.whole else f"{self.name}_{axis}"

    def declaration(self):
        return f"{self.name} : {SCALARS[self.tensor.dtype]}[{', '.join(map(self.extent, range(len(self.shape))))}]"

    def symbols(self):
        return [self.extent(k) for k in range(len(self.shape)) if k not in self.whole]


class Graph:
    """Builds nodes with PyTorch's rules of types."""

    def __init__(self):
        self.nodes, self.captured, self.by_id = {}, [], {}

    def make(self, op, *args, dtype, shape=()):
        key = (op, tuple(id(a) if isinstance(a, (Node, Captured)) else (type(a), repr(a)) for a in args), dtype, shape)
        if key not in self.nodes:
            self.nodes[key] = Node(op, args, dtype, shape)
        return self.nodes[key]

    def var(self, name):
        return self.make("var", name, dtype=torch.int64)

    def const(self, value, dtype):
        if dtype.is_floating_point:
            value = float(value)
            if dtype != torch.float64:
                value = torch.tensor(value, dtype=torch.float32).item()
        else:
            value = bool(value) if dtype == torch.bool else int(value)
        return self.make("const", value, dtype=dtype)

    def capture(self, tensor):
        if id(tensor) not in self.by_id:
            entry = Captured(f"c{len(self.captured)}", tensor)
            self.captured.append(entry)
            self.by_id[id(tensor)] = entry
        return self.by_id[id(tensor)]

    def read(self, tensor):
        """Returns the node of a captured tensor: all its elements."""
        entry = self.capture(tensor)
        entry.whole.update(range(len(entry.shape)))
        return self.make("read", entry, dtype=tensor.dtype, shape=tuple(map(int, tensor.shape)))

    # Conversions and arithmetic.

    def convert(self, node, dtype):
        if node.dtype == dtype:
            return node
        if node.op == "const" and not (node.is_float and not dtype.is_floating_point):
            return self.const(node.args[0], dtype)
        return self.make("convert", node, dtype=dtype, shape=node.shape)

    def apply(self, op, *nodes, dtype):
        """A point-wise operation on nodes of the right types; shapes broadcast."""
        shape = tuple(torch.broadcast_shapes(*(n.shape for n in nodes))) if any(n.shape for n in nodes) else ()
        if op == "and" and any(n.is_value(False) for n in nodes) or op == "or" and any(n.is_value(True) for n in nodes):
            return self.const(op == "or", torch.bool)
        if op in ("and", "or"):
            rest = [n for n in nodes if n.op != "const"]
            if len(rest) < 2:
                return rest[0] if rest else nodes[0]
        if op == "not" and nodes[0].op == "const":
            return self.const(not nodes[0].args[0], torch.bool)
        if op == "not" and nodes[0].op == "not":
            return nodes[0].args[0]
        if op == "select" and nodes[0].op == "const":
            return nodes[1] if nodes[0].args[0] else nodes[2]
        return self.make(op, *nodes, dtype=dtype, shape=shape)

    def arithmetic(self, op, a, b, dtype):
        return self.apply(op, self.convert(a, dtype), self.convert(b, dtype), dtype=dtype)

    def compare(self, op, a, b):
        dtype = torch.promote_types(a.dtype, b.dtype)
        return self.apply(op, self.convert(a, dtype), self.convert(b, dtype), dtype=torch.bool)

    def select(self, p, a, b):
        dtype = torch.promote_types(a.dtype, b.dtype)
        return self.apply("select", p, self.convert(a, dtype), self.convert(b, dtype), dtype=dtype)

    def both(self, *nodes):
        result = nodes[0]
        for node in nodes[1:]:
            result = self.apply("and", result, node, dtype=torch.bool)
        return result

    def either(self, a, b):
        return self.apply("or", a, b, dtype=torch.bool)

    def negation(self, a):
        return self.apply("not", a, dtype=torch.bool)


class Writer:
    """Writes nodes as definitions and expressions of the language."""

    BINARY = {"+": "+", "-": "-", "*": "*", "/": "/", "idiv": "/", "imod": "%", "remainder": "%", "<": "<",
              "<=": "<=", ">": ">", ">=": ">=", "==": "==", "!=": "!=", "and": "and", "or": "or", "&": "&", "|": "|",
              "^": "^", "<<": "<<", ">>": ">>"}

    def __init__(self, compute, score="S"):
        self.compute, self.score = compute, score
        self.lines, self.names, self.uses, self.fresh = [], {}, {}, 0

    def count(self, *roots):
        """Counts the uses of each node, so that a node with several uses becomes a definition."""
        seen, stack = set(), [r for r in roots]
        for root in roots:
            self.uses[id(root)] = self.uses.get(id(root), 0) + 1
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            for child in self.children(node):
                self.uses[id(child)] = self.uses.get(id(child), 0) + 1
                stack.append(child)

    @staticmethod
    def children(node):
        for a in node.args:
            if isinstance(a, Node):
                yield a
            elif isinstance(a, tuple):
                yield from (e for e in a if isinstance(e, Node))

    def narrow(self, dtype):
        """Returns whether values of this type must be rounded where the kernel computes in `compute`."""
        return dtype in (torch.bfloat16, torch.float16) or dtype == torch.float32 and self.compute == torch.float64

    def text(self, node, at=()):
        """Returns the text of one element of a node; `at` has a text for each axis of its shape."""
        if self.uses.get(id(node), 0) > 1 and node.op not in ("const", "var", "score", "read", "item") \
                or node.depth % 40 == 39 and node.op not in ("const", "var"):
            return self.named(node, at)
        return self.body(node, at)

    def named(self, node, at):
        variables = [v for v in VARIABLES if v in node.free]
        if id(node) not in self.names:
            axes = [self.variable() for _ in node.shape]
            body = self.body(node, tuple(axes))
            bound = [f"{v} < {VARIABLES[v]}" for v in variables] + [f"{a} < {n}" for a, n in zip(axes, node.shape)]
            name = f"t{len(self.names)}"
            self.lines.append(f"{name} = [{', '.join(bound)}] {body}" if bound else f"{name} = {body}")
            self.names[id(node)] = name
        subscripts = variables + list(at)
        return self.names[id(node)] + (f"[{', '.join(subscripts)}]" if subscripts else "")

    def variable(self):
        self.fresh += 1
        return f"k{self.fresh}"

    def operands(self, node, at):
        result = []
        for a in node.args:
            own = at[len(at) - len(a.shape):]
            result.append(self.text(a, tuple("0" if n == 1 else x for x, n in zip(own, a.shape))))
        return result

    def body(self, node, at):
        op = node.op
        if op == "const":
            return self.number(node)
        if op == "var":
            return node.args[0]
        if op == "score":
            return f"{self.score}[b, h, i, j]"
        if op == "read":
            return f"{node.args[0].name}[{', '.join(at) or '0'}]"
        if op == "item":
            return self.item(node, at)
        if op == "reduce":
            return self.reduce(node, at)
        if op == "view":
            source, place = node.args
            return self.text(source, tuple(at[p] if p is not None else "0" for p in place))
        if op == "convert":
            return self.cast(node, self.text(node.args[0], at))
        parts = self.operands(node, at)
        if op == "select":
            result = f"select({', '.join(parts)})"
        elif op == "not":
            return f"(not {parts[0]})"
        elif op in self.BINARY:
            result = f"({parts[0]} {self.BINARY[op]} {parts[1]})"
            if node.is_bool or op in ("idiv", "imod"):
                return result
        elif op in ("neg", "~"):
            result = f"({'-' if op == 'neg' else '~'}{parts[0]})"
        else:
            result = f"{op}({', '.join(parts)})"
            if op in ("min", "max", "floor", "ceil", "round", "trunc", "fmod"):
                return result
        return result if op == "select" else self.rounded(node, result)

    def rounded(self, node, text):
        """Rounds or wraps a computed value to its type, where the kernel computes in a wider one."""
        if node.is_float:
            return f"{SCALARS[node.dtype]}({text})" if self.narrow(node.dtype) else text
        if node.dtype in (torch.int64, torch.bool):
            return text
        return f"{SCALARS[node.dtype]}({text})"

    def cast(self, node, text):
        source, target = node.args[0].dtype, node.dtype
        if source == torch.bool:
            return f"select({text}, 1.0, 0.0)" if node.is_float else f"select({text}, 1, 0)"
        if target == torch.bool:
            return f"({text} != 0)"
        if target.is_floating_point:
            if self.narrow(target) and target not in (source,):
                return f"{SCALARS[target]}({text})"
            # A conversion to the compute type, which operands have anyway.
            return text if source.is_floating_point else f"{SCALARS[self.compute]}({text})"
        if source.is_floating_point or torch.iinfo(target).bits < torch.iinfo(source).bits or target != torch.int64:
            return f"{SCALARS[target]}({text})"
        return text

    def number(self, node):
        value = node.args[0]
        if node.is_bool:
            return "true" if value else "false"
        if not node.is_float:
            return str(value) if value >= 0 else f"(-{-value})" if value > -2**63 else f"(-{2**63 - 1} - 1)"
        if math.isnan(value):
            return "(inf - inf)"
        if math.isinf(value) or abs(value) > LARGEST[self.compute]:
            return "inf" if value > 0 else "(-inf)"
        text = repr(abs(value)).replace("e+", "e")
        if "." not in text and "e" not in text:
            text += ".0"
        return f"(-{text})" if math.copysign(1, value) < 0 else text

    def item(self, node, at):
        """A subscripted captured tensor. Negative subscripts count from the end, as in PyTorch."""
        entry, subscripts = node.args[0], node.args[1]
        rest, parts = list(at), []
        for axis, subscript in enumerate(subscripts):
            if subscript is None:
                parts.append(rest.pop(0))
            elif isinstance(subscript, slice):
                place = rest.pop(0)
                parts.append(f"({subscript.start} + {subscript.step} * {place})")
            else:
                parts.append(self.subscript(entry, axis, subscript))
        return f"{entry.name}[{', '.join(parts)}]"

    def subscript(self, entry, axis, node):
        if node.op in ("const", "var"):
            return self.text(node)
        extent = entry.extent(axis)
        if node.low >= 0:
            return f"min({self.text(node)}, {extent} - 1)"
        # The sign, shifted to all bits, selects the extent. The subscript stands twice, so it is a definition.
        text = self.named(node, ())
        return f"min(max({text} + (({text} >> 63) & {extent}), 0), {extent} - 1)"

    REDUCTIONS = {"sum": "+/", "prod": "*/", "amax": "max/", "amin": "min/", "any": "or/", "all": "and/"}

    def reduce(self, node, at):
        source, kind, axes = node.args
        places, rest, new = [], list(at), []
        for k in range(len(source.shape)):
            if k in axes:
                new.append((self.variable(), source.shape[k]))
                places.append(new[-1][0])
            else:
                places.append(rest.pop(0))
        text = self.text(source, tuple(places))
        for name, extent in reversed(new):
            text = f"({self.REDUCTIONS[kind]} ([{name} < {extent}] {text}))"
        return self.rounded(node, text) if kind in ("sum", "prod") else text
