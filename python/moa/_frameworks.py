"""Adapts libraries of arrays: allocation, streams and devices.

Each type of arrays has an Adapter, which the extension module looks up by the type. No library is
imported before an array of it is seen.
"""
from __future__ import annotations

import ctypes
import os
import sys
from typing import Callable, NamedTuple

from moa._errors import ArgumentError, ArgumentTypeError, DeviceError


class Adapter(NamedTuple):
    """The fields are those of native.h."""
    is_numpy: bool
    export: Callable | None
    empty: Callable
    finish: Callable | None
    stream: Callable
    workspace: Callable
    enter: Callable
    leave: Callable
    writable: bool


_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "bool": "bool_", "i8": "int8",
          "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32"}


def _nothing(*_):
    return None


def _no_device(*_):
    raise DeviceError("the kernel runs on a CUDA device, but no argument is on one; give arrays of PyTorch or CuPy")


#===-----------------------------------------------------------------------===#
# NumPy
#===-----------------------------------------------------------------------===#


class _Types(dict):
    """The types of NumPy by the names of the specification."""

    def __missing__(self, name):
        import numpy
        if name != "bf16":
            made = numpy.dtype(getattr(numpy, _NAMES[name]))
        else:
            try:
                import ml_dtypes
            except ImportError:
                raise ArgumentTypeError("a result has elements of bf16, which NumPy lacks; install ml_dtypes, or give "
                                        "arrays of PyTorch") from None
            made = numpy.dtype(ml_dtypes.bfloat16)
        self[name] = made
        return made


_TYPES = _Types()


def _make_numpy():
    from numpy import empty as allocate

    def empty(shape, dtype, device):
        return allocate(shape, _TYPES[dtype])

    return Adapter(True, None, empty, None, _no_device, _no_device, _nothing, _nothing, True)


def numpy_adapter():
    """Returns the adapter of a call without input arrays."""
    try:
        return _resolve_name("numpy")
    except ImportError:
        raise ArgumentError("the kernel has no input arrays, and NumPy, which would hold its results, is not "
                            "installed; give out=") from None


#===-----------------------------------------------------------------------===#
# DLPack
#===-----------------------------------------------------------------------===#


def _export(array, name, waits=False):
    """Returns the capsule of an array. The library does not synchronise, because the kernel runs in its stream. With
    `waits` it orders the export by itself."""
    try:
        type_, _ = array.__dlpack_device__()
        options = {"stream": -1} if type_ in (2, 13) and not waits else {}
        try:
            return array.__dlpack__(max_version=(1, 3), **options)
        except TypeError:  # the library predates DLPack 1.0
            return array.__dlpack__(**options)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name}: __dlpack__ refuses the array: {error}") from error


def _default_stream(device):
    return 0


def _no_workspace(bytes, device, handle, given):
    raise ArgumentError("the library of the first array allocates no memory for this package; give workspace=, an "
                        f"array of {bytes} elements of u8 on CUDA device {device}")


def _make_generic():

    def empty(shape, dtype, device):
        if device >= 0:
            raise ArgumentError("the library of the first array allocates no memory for this package; give out=")
        return _resolve_name("numpy").empty(shape, dtype, device)

    return Adapter(False, _export, empty, None, _default_stream, _no_workspace, _nothing, _nothing, True)


#===-----------------------------------------------------------------------===#
# PyTorch
#===-----------------------------------------------------------------------===#


def _make_torch():
    import torch
    types = {name: getattr(torch, numpy.rstrip("_"), None) for name, numpy in _NAMES.items()}
    allocate, needs_gradients, export_tensor = torch.empty, torch.is_grad_enabled, torch.utils.dlpack.to_dlpack
    devices = {-1: torch.device("cpu")}
    cuda = torch.cuda

    def export(tensor, name):
        if tensor.requires_grad:
            if needs_gradients():
                raise ArgumentTypeError(f"{name}: requires a gradient, which this call does not compute; give "
                                        f"{name}.detach(), call under torch.no_grad(), or use moa.torch")
            tensor = tensor.detach()
        try:
            return export_tensor(tensor)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{name}: PyTorch does not export the tensor: {error}") from error

    def empty(shape, dtype, device):
        type_ = types[dtype]
        if type_ is None:
            raise ArgumentTypeError(f"this PyTorch has no type for elements of {dtype}")
        where = devices.get(device)
        if where is None:
            where = devices[device] = torch.device("cuda", device)
        return allocate(shape, dtype=type_, device=where)

    def stream(device):
        return cuda.current_stream(device).cuda_stream

    def workspace(bytes, device, handle, given):
        # PyTorch keeps freed memory by stream, so that the next call gets the same one.
        tensor = allocate(bytes, dtype=torch.uint8, device=torch.device("cuda", device))
        if given is not None:
            tensor.record_stream(cuda.ExternalStream(handle, device=device))
        return tensor.data_ptr(), tensor

    def enter(device):
        before = cuda.current_device()
        if before == device:
            return None
        cuda.set_device(device)
        return before

    return Adapter(False, export, empty, None, stream, workspace, enter, cuda.set_device, True)


#===-----------------------------------------------------------------------===#
# CuPy
#===-----------------------------------------------------------------------===#


def _make_cupy():
    import cupy

    def empty(shape, dtype, device):
        if dtype == "bf16":
            import ml_dtypes
            return cupy.empty(shape, ml_dtypes.bfloat16)
        return cupy.empty(shape, _NAMES[dtype])

    def stream(device):
        return cupy.cuda.get_current_stream(device).ptr

    def workspace(bytes, device, handle, given):
        if given is None:
            memory = cupy.cuda.alloc(bytes)
        else:
            with cupy.cuda.ExternalStream(handle):
                memory = cupy.cuda.alloc(bytes)
        return memory.ptr, memory

    def enter(device):
        before = cupy.cuda.runtime.getDevice()
        if before == device:
            return None
        cupy.cuda.runtime.setDevice(device)
        return before

    return Adapter(False, _export, empty, None, stream, workspace, enter, cupy.cuda.runtime.setDevice, True)


#===-----------------------------------------------------------------------===#
# JAX
#===-----------------------------------------------------------------------===#


def _make_jax():
    import jax
    import numpy

    def export(array, name):
        jax.block_until_ready(array)
        return _export(array, name, waits=True)  # JAX takes -1 for the handle of a stream

    def empty(shape, dtype, device):
        type_ = _TYPES[dtype]
        if device >= 0:
            made = jax.numpy.empty(shape, type_, device=_jax_device(jax, device))
            if made.dtype != type_:
                raise ArgumentTypeError(f"a result has elements of {dtype}, which JAX disables by default; set "
                                        "jax_enable_x64")
            return made
        count = type_.itemsize
        for extent in shape:
            count *= extent
        memory = numpy.empty(count + 64, numpy.uint8)  # JAX takes memory as it is at multiples of 64 bytes
        begin = -memory.ctypes.data % 64
        return memory[begin:begin + count].view(type_).reshape(shape)

    def finish(array):
        if isinstance(array, jax.Array):
            return array
        if array.dtype.name == "bfloat16" or not array.size:  # NumPy exports neither
            return jax.numpy.asarray(array)
        return jax.dlpack.from_dlpack(array)

    def workspace(bytes, device, handle, given):
        made = jax.block_until_ready(jax.numpy.empty(bytes, "uint8", device=_jax_device(jax, device)))
        return made.unsafe_buffer_pointer(), made

    contexts = _Contexts()
    return Adapter(False, export, empty, finish, _default_stream, workspace, contexts.enter, contexts.leave, False)


def _jax_device(jax, number):
    """Returns the GPU with a number of CUDA."""
    for device in jax.local_devices(backend="gpu"):
        if device.local_hardware_id == number:
            return device
    raise DeviceError(f"JAX does not see CUDA device {number}; make it visible to JAX")


class _Contexts:
    """Makes the context of a device current for a call, and waits for the device at its end.

    JAX does not tell its streams, so only waiting orders its operations after a kernel.
    """

    def __init__(self):
        self.driver = None

    def ask(self, function, *arguments):
        code = getattr(self.driver, function)(*arguments)
        if code:
            raise DeviceError(f"the CUDA driver refuses {function} with error {code}; an earlier kernel may have "
                              "failed")

    def enter(self, device):
        if self.driver is None:
            self.driver = ctypes.CDLL(os.environ.get("MOA_LIBCUDA") or "libcuda.so.1")
        before, context, number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self.ask("cuCtxGetCurrent", ctypes.byref(before))
        self.ask("cuDeviceGet", ctypes.byref(number), device)
        self.ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.ask("cuCtxSetCurrent", context)
        return before.value, number

    def leave(self, token):
        before, number = token
        try:
            self.ask("cuCtxSynchronize")
        finally:
            self.ask("cuCtxSetCurrent", ctypes.c_void_p(before))
            self.ask("cuDevicePrimaryCtxRelease_v2", number)


#===-----------------------------------------------------------------------===#
# Lookup
#===-----------------------------------------------------------------------===#

_MAKERS = {"numpy": _make_numpy, "torch": _make_torch, "cupy": _make_cupy, "jax": _make_jax, "": _make_generic}
_made: dict[str, Adapter] = {}


def _resolve_name(name):
    if name not in _made:
        _made[name] = _MAKERS[name]()
    return _made[name]


def resolve(type_):
    """Returns the adapter of a type of arrays, or None if it is no such type."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(type_, numpy.ndarray):
        if any(base.__module__.startswith("numpy.ma") for base in type_.__mro__):
            raise ArgumentTypeError("masked arrays of NumPy are not taken, because kernels do not read their masks; "
                                    "give array.filled(…), or the mask as an input")
        return _resolve_name("numpy")
    if not hasattr(type_, "__dlpack__") or not hasattr(type_, "__dlpack_device__"):
        return None
    if numpy is not None and issubclass(type_, numpy.generic):
        return None
    for base in type_.__mro__:
        name = base.__module__.partition(".")[0]
        name = "jax" if name == "jaxlib" else name
        if name in ("torch", "cupy", "jax"):
            return _resolve_name(name)
    return _resolve_name("")


def read_scalar(value, name, dtype):
    """Returns a scalar of any library as an int or a float. Arrays must have no axes."""
    is_float = dtype in ("f64", "f32", "bf16", "f16")
    wanted = "a number" if is_float else "a bool" if dtype == "bool" else "an integer"
    given = type(value).__name__
    if getattr(value, "ndim", 0):
        raise ArgumentTypeError(f"{name}: expects {wanted} ({dtype}), but got an array with {value.ndim} axes")
    if getattr(value, "requires_grad", False):
        raise ArgumentTypeError(f"{name}: requires a gradient, which this call does not compute; give {name}.item()")
    if not isinstance(value, (str, bytes)):
        try:
            if is_float:
                return float(value)
            if dtype == "bool" and str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool":
                return int(bool(value))
            return value.__index__()
        except (TypeError, AttributeError):
            pass
    raise ArgumentTypeError(f"{name}: expects {wanted} ({dtype}), but got {given}")


def read_stream(stream):
    """Returns the handle of a stream: an int, or a stream of PyTorch, CuPy or any library with __cuda_stream__."""
    handle = stream
    if hasattr(stream, "__cuda_stream__"):
        _, handle = stream.__cuda_stream__()
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(handle, attribute, handle)
    if isinstance(handle, int) and handle >= 0:
        return handle
    raise ArgumentTypeError("stream: expects a stream of PyTorch or CuPy, or its handle, but got "
                            f"{type(stream).__name__}")
