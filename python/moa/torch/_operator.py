"""Kernels as operators of PyTorch, for torch.compile, export and CUDA graphs."""
import ast
import hashlib
import itertools

import torch

TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
         "u16": torch.uint16, "u32": torch.uint32}
OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
             ast.Div: lambda a, b: a // b, ast.Mod: lambda a, b: a % b}
_libraries, _numbers = [], itertools.count()


def evaluate(text, symbols):
    """Evaluates an extent, for example "2*N + 1", with numbers or symbolic sizes."""
    def value(node):
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        return node.value if isinstance(node, ast.Constant) else symbols[node.id]
    return value(ast.parse(text, mode="eval").body)


def allocate(kernel, arguments):
    """Returns row-major tensors for the results, on the device of the first array."""
    symbols, device = {}, None
    for parameter, argument in zip(kernel.parameters, arguments):
        if parameter.role == "input":
            device = argument.device if device is None else device
            for extent, size in zip(parameter.shape, argument.shape):
                if extent in kernel.symbols:
                    symbols.setdefault(extent, size)
    return [torch.empty([evaluate(extent, symbols) for extent in p.shape], dtype=TYPES[p.dtype], device=device)
            for p in kernel.parameters if p.role == "output"]


def schema_of(kernel):
    kinds = {"bool": "bool", "f64": "float", "f32": "float", "bf16": "float", "f16": "float"}
    inputs = [f"Tensor {p.name}" if p.role == "input" else f"{kinds.get(p.dtype, 'SymInt')} {p.name}"
              for p in kernel.parameters if p.role != "output"]
    count = sum(p.role == "output" for p in kernel.parameters)
    return f"({', '.join(inputs)}) -> " + ("Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})")


def operator(kernel, name=None, backward=None, setup_context=None):
    """Registers a kernel as an operator of PyTorch and returns it, as torch.ops.moa.NAME.

    The operator takes the inputs of the kernel, arrays first and then scalars, and returns its results. It allocates
    them as row-major tensors. `backward` and `setup_context` are those of torch.library.register_autograd. Without
    them a call with an input that requires a gradient is an error.

    Shapes and types are those of `kernel.parameters`. Raises ValueError if the kernel has no input array. A wrong call
    raises the errors of moa.Kernel.
    """
    if name is None:
        facts = repr((getattr(kernel, "specification", ""), kernel.parameters, kernel.target, next(_numbers)))
        name = f"{kernel.name}_{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    if not any(p.role == "input" for p in kernel.parameters):
        raise ValueError(f"kernel {kernel.name} has no input array, so nothing gives the device of its results")
    library = torch.library.Library("moa", "FRAGMENT")
    _libraries.append(library)  # an operator lives as long as its library
    library.define(name + schema_of(kernel), tags=(torch.Tag.pt2_compliant_tag,))

    is_single = sum(p.role == "output" for p in kernel.parameters) == 1
    call = kernel if is_single else lambda *arguments: tuple(kernel(*arguments))

    def fake(*arguments):
        outputs = allocate(kernel, arguments)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def no_gradient(ctx, *gradients):
        raise NotImplementedError(
            f"kernel {kernel.name} has no gradient; give operator(kernel, backward=…) a function that calls a kernel "
            "of the backward pass, or call it under torch.no_grad()")

    library.impl(name, call, {"cpu": "CPU", "cuda": "CUDA"}[kernel.target])
    torch.library.register_fake(f"moa::{name}", fake, lib=library)
    torch.library.register_autograd(f"moa::{name}", backward or no_gradient,
                                    setup_context=setup_context, lib=library)
    return getattr(torch.ops.moa, name)
