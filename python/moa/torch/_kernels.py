"""Compiles specifications and runs kernels on tensors. The only place that knows how kernels are built."""
import contextlib
import functools
import warnings

import torch
from torch.autograd import forward_ad

import moa

from ._graph import SCALARS

# LLVM's level for code of a CPU. Tests of many kernels lower it.
optimization = 1


def compile_kernel(text, target="cpu", **settings):
    return moa.compile(text, target, options=moa.Options(optimization=optimization), **settings)


@functools.lru_cache(maxsize=4096)
def _compiled(text, target, settings):
    return compile_kernel(text, target=target, **dict(settings))


def require_device(device):
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"tensors are on {device}, but kernels run on cpu and cuda")


def compiled(text, device, settings):
    """Returns the kernel of a specification for a device. Each text is compiled once per process."""
    require_device(device)
    return _compiled(text, device.type, tuple(sorted(settings.items())))


@functools.lru_cache(maxsize=1024)
def _adaptive(text, target, settings, result, tolerance, options):
    options = moa.Options(optimization=optimization, within={result: tolerance}, decisions=True, warn_if_unused=True,
                          **dict(options))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kernel = moa.compile(text, target, options=options, **dict(settings))
    said = [w.message.diagnostic.message for w in found if isinstance(w.message, moa.CompileWarning)]
    # Remedies that name options of the tools are not for callers of a module.
    said = [text.replace("; '--spend=4096' takes them from so many keys on all the same", "") for text in said]
    unasked = ("no plans to decide between",) + (() if options.spend else ("computes nothing in fewer bits",))
    return kernel, tuple(text for text in said if not any(part in text for part in unasked))


def adaptive(text, device, settings, result, tolerance, **options):
    """Returns the kernel of a specification with variants within the tolerance of `result`, and a tuple of reasons
    why it lacks variants. It returns the decisions too, if it has variants."""
    require_device(device)
    return _adaptive(text, device.type, tuple(sorted(settings.items())), result, tolerance,
                     tuple(sorted(options.items())))


def refuse_tangents(name, *tensors):
    """Raises an error for tensors of forward-mode differentiation, for which PyTorch's custom operators give 0."""
    if torch.compiler.is_compiling():
        return
    if any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise NotImplementedError(f"{name} has no forward-mode derivative (torch.func.jvp, dual tensors); use reverse "
                                  "mode, or PyTorch's function")


def autocast(*tensors):
    """Returns the tensors in the type of autocast, if it is on. PyTorch's attention functions do so too."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(t if t is None or not t.is_floating_point() or t.dtype == torch.float64 else t.to(dtype)
                 for t in tensors)


def context(device):
    """Returns a context in which kernels allocate and launch on the device."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def run(kernel, inputs, outputs):
    """Calls a kernel with output tensors, on the device of the first one."""
    device = outputs[0].device
    with context(device):
        kernel(*inputs, out=outputs[0] if len(outputs) == 1 else tuple(outputs))


def attend(text, arrays, others, results, splits=True):
    """Compiles a specification of attention, runs it and returns its results. They are given as tensors, or as
    (shape, type).

    `arrays` are query, key and value, and `others` the inputs after them. For one query on a GPU the keys are split
    over the multiprocessors, unless `splits` is false.
    """
    query = arrays[0]
    settings = {"T": SCALARS[query.dtype]}
    if splits and query.is_cuda and query.shape[-2] == 1:
        settings["N"] = "1"
    outputs = [r if isinstance(r, torch.Tensor) else torch.empty(r[0], dtype=r[1], device=query.device)
               for r in results]
    run(compiled(text, query.device, settings), [*map(copyable, arrays), *others], outputs)
    return outputs


def copyable(tensor):
    """Returns the tensor, or a copy that the copy engine of a GPU takes: adjacent last axis, 16-byte strides."""
    if tensor.device.type != "cuda" or tensor.element_size() > 2:
        return tensor
    size = tensor.element_size()
    strides = [s for s, n in zip(tensor.stride()[:-1], tensor.shape[:-1]) if n > 1]
    good = tensor.data_ptr() % 16 == 0 and (tensor.stride(-1) == 1 or tensor.shape[-1] < 2) \
        and all(s > 0 and s * size % 16 == 0 for s in strides)
    return tensor if good else tensor.contiguous().clone() if tensor.data_ptr() % 16 else tensor.contiguous()


def refuse_gradients(name, *tensors):
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        raise NotImplementedError(
            f"{name} has no gradient, but an input requires one; call it under torch.no_grad(), or make an operator "
            "with a backward kernel (docs/PyTorch.md, Gradients)")
