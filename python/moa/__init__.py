"""MoA compiles attention kernels from their specification and calls them.

    import moa, numpy
    kernel = moa.compile("sdpa.moa", D=64, T="f32")
    O = kernel(Q, K, V, scale=0.125)

Arrays are those of NumPy, PyTorch, JAX, CuPy, or of any library with DLPack. They are never copied.
docs/Python.md has the details.
"""
from moa._errors import (ArgumentError, ArgumentTypeError, CompileError, CompileWarning, DeviceError, Diagnostic, Error,
                         ToleranceWarning)

__all__ = ["compile", "Kernel", "Options", "Parameter", "Diagnostic", "Error", "CompileError", "CompileWarning",
           "ArgumentError", "ArgumentTypeError", "DeviceError", "ToleranceWarning"]


def __getattr__(name):
    # The extension module and the libraries are loaded when they are first needed.
    if name in ("compile", "Kernel", "Parameter"):
        from moa import _kernel
        value = getattr(_kernel, name)
    elif name == "Options":
        from moa._options import Options as value
    elif name == "__version__":
        from moa import _libraries
        value = _libraries.version()
    else:
        raise AttributeError(f"module 'moa' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, "__version__"})
