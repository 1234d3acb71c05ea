"""moa.compile and the kernels that it returns."""
from __future__ import annotations

import collections
import json
import os
import sys
import threading
import time
import warnings
from typing import NamedTuple

from moa import _cache, _frameworks, _libraries, _native
from moa._errors import (ArgumentError, ArgumentTypeError, CompileError, CompileWarning, DeviceError, Diagnostic, Error,
                         ToleranceWarning)
from moa._options import Options, texts_of

FORMS = ("moa", "dnf", "onf", "lifted", "vector", "llvm", "device", "cuda", "ptx", "launcher", "manifest", "header")
_TARGETS = ("cpu", "cuda")

#===-----------------------------------------------------------------------===#
# The extension module
#===-----------------------------------------------------------------------===#

# Codes of calls, docs/Calling.md.
_DTYPE, _DEVICE, _PROCESSOR, _LAUNCH = 3, 8, 13, 14


def _refuse(kernel, code, text):
    kind = (ArgumentTypeError if code == _DTYPE else DeviceError if code in (_DEVICE, _PROCESSOR, _LAUNCH)
            else ArgumentError)
    error = kind(text or f"{kernel} returned the code {code}")
    error.code = code
    raise error


def _warn(kernel, text):
    warnings.warn(ToleranceWarning(f"{kernel}: {text}"), stacklevel=2)


_native.open_runtime(_libraries.find_library("libmoa-runtime.so"))
_native.configure(argument_error=ArgumentError, argument_type_error=ArgumentTypeError, device_error=DeviceError,
                  refuse=_refuse, resolve=_frameworks.resolve, scalar=_frameworks.read_scalar,
                  stream=_frameworks.read_stream, warn=_warn, adapters={}, numpy=_frameworks.numpy_adapter)

#===-----------------------------------------------------------------------===#
# Kernels
#===-----------------------------------------------------------------------===#


class Parameter(NamedTuple):
    """One parameter of a kernel.

    `role` is "input", "scalar" or "output". `dtype` is "f64", "f32", "bf16", "f16", "bool", "i8" …
    "i64" or "u8" … "u32". `shape` has one expression over the symbols for each axis. `range` is the
    declared range of the elements, and `within` the tolerance of an output, or None.
    """
    name: str
    role: str
    dtype: str
    shape: tuple[str, ...]
    range: str | None = None
    within: str | None = None

    def __str__(self):
        return f"{self.name}: {self.dtype}" + (f"[{', '.join(self.shape)}]" if self.role != "scalar" else "")


class _Source:
    """What a kernel was compiled from; the compilation is made again when it is needed."""

    def __init__(self, text, name, target, settings, options):
        self.text, self.name, self.target, self.settings, self.options = text, name, target, settings, options
        self.texts = texts_of(options)
        self.architecture = options.architecture or ("sm_90a" if target == "cuda" else None)
        self._lock = threading.Lock()
        self._made = {}

    def compilation(self, explain=False, loads=False):
        """Returns a compilation for queries, or for code that is loaded. Code for a CPU has no architecture of a GPU."""
        from moa import _compiler
        architecture = None if loads and self.target == "cpu" else self.architecture
        with self._lock:
            if (architecture, explain) not in self._made:
                self._made[architecture, explain] = _compiler.Compilation(
                    self.text, self.name, self.settings, self.options, architecture, self.texts, explain)
            return self._made[architecture, explain]

    def key(self):
        facts = {name: getattr(self.options, name) for name in self.options.__dataclass_fields__
                 if name not in ("settings", "name", "schedule", "plans", "cache")}
        facts["within"] = {name: str(given) for name, given in facts["within"].items()}
        processor = None
        if self.target == "cpu":
            processor = _cache.processor()
        return _cache.key(text=self.text, is_ir=self.name.endswith(".mlir"), target=self.target,
                          settings=self.settings, options=facts, texts=self.texts, processor=processor)


class Kernel(_native.Function):
    """A compiled kernel, which is called with arrays; moa.compile makes it.

        O = kernel(Q, K, V, scale=0.125)

    Inputs are given by position or by name, in the order of the specification. An array is one of
    NumPy, PyTorch, JAX or CuPy, or of any library with DLPack, and is not copied. Its strides may be
    any that are not negative. Shapes count elements.

    out: the arrays to write, one or a tuple in order. By default they are allocated with the library
        of the first array, on its device.
    stream: for CUDA, a stream or its handle; by default the current stream of that library.
    workspace: for CUDA and the CPU, an array of u8 with workspace_bytes(…) elements; by default the
        library of the first array allocates it.

    Returns the result, or a named tuple of the results. Nothing is written unless all arguments are
    right. Raises TypeError for wrong arguments, and ArgumentTypeError, ArgumentError or DeviceError
    for what is wrong with one of them. Warns with ToleranceWarning if a result is not shown to be
    within its tolerance.

    name, target: as compiled. text: the interface as one line of the specification.
    parameters: inputs and scalars in order, then outputs, as Parameter.
    symbols, constraints: tuples of texts; the symbols are the sizes that follow from the shapes.
    specification: the text that was compiled. settings: a dict of its compile-time parameters.
    options: its moa.Options. manifest: the manifest as a dict (docs/Calling.md).
    """
    name: str
    target: str
    text: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    constraints: tuple[str, ...]

    def __init__(self, source, program, interface, manifest):
        self.name, self.text = interface["name"], interface["text"]
        self.target = source.target
        self.parameters = tuple(Parameter(name, role, dtype, tuple(shape), *rest)
                                for name, role, dtype, shape, *rest in interface["parameters"])
        self.symbols, self.constraints = tuple(interface["symbols"]), tuple(interface["constraints"])
        self._source, self._manifest = source, manifest
        outputs = [parameter.name for parameter in self.parameters if parameter.role == "output"]
        results = collections.namedtuple(f"{self.name}_results", outputs, rename=True) if len(outputs) > 1 else None
        self._bind(program, self.name, source.target == "cuda", results, self._signature())

    def _signature(self):
        inputs = ", ".join(str(parameter) for parameter in self.parameters if parameter.role != "output")
        outputs = [str(parameter) for parameter in self.parameters if parameter.role == "output"]
        results = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        return f"{self.name}({inputs}) -> {results}"

    def __repr__(self):
        return f"<moa.Kernel {self._signature()}, target {self.target}>"

    def __reduce__(self):
        source = self._source
        return _rebuild, (source.text, source.name, source.target, self.name, source.options, source.settings)

    @property
    def specification(self) -> str:
        return self._source.text

    @property
    def settings(self) -> dict[str, str]:
        return dict(self._source.settings)

    @property
    def options(self) -> Options:
        return self._source.options

    @property
    def manifest(self) -> dict:
        return json.loads(self._manifest)

    def source(self, form: str) -> str:
        """Returns a form of the specification with its kernels: "moa", "dnf", "onf", "lifted", "vector", "llvm",
        "device", "cuda", "ptx", "launcher", "manifest" or "header"."""
        if form not in FORMS:
            raise ArgumentError(f"there is no form {form!r}; there are {', '.join(FORMS)}")
        if form == "manifest":
            return self._manifest
        return self._source.compilation().get(form)

    def math(self) -> str:
        """Returns the normal forms as readable mathematics."""
        return self._source.compilation().get("mathematics")

    def explain(self) -> str:
        """Returns how the kernel was derived, law by law."""
        return self._source.compilation(explain=True).get("explain")

    def report(self, format: str = "text", **sizes: int) -> str:
        """Returns the report of data movement, workspace and schedule, as "text" or "json".

        With values of all symbols, every polynomial is followed by its value. Values of only some
        raise ArgumentError.
        """
        if format not in ("text", "json"):
            raise ArgumentError(f"there is no format {format!r} of a report; there are text, json")
        try:
            return self._source.compilation().report(("text", "json").index(format), sizes)
        except CompileError as error:
            if sizes:
                raise ArgumentError(str(error)) from error
            raise

    @property
    def schedule(self) -> str:
        """The schedule, which can be edited and given back as Options(schedule=…)."""
        return self._source.compilation().get("schedule")


def _rebuild(text, name, target, kernel, options, settings):
    return _compile(_Source(text, name, target, settings, options), kernel)


#===-----------------------------------------------------------------------===#
# Compilation
#===-----------------------------------------------------------------------===#


class _Progress:
    """Writes a line on standard error if the work takes long, on a terminal or with MOA_PROGRESS=1."""

    def __init__(self, what, after=2.0):
        self._what, self._timer, self._lock, self._said = what, None, threading.Lock(), False
        shows = os.environ.get("MOA_PROGRESS")
        try:
            if shows == "1" or (shows != "0" and sys.stderr.isatty()):
                self._timer = threading.Timer(after, self._say)
                self._timer.daemon = True
        except (AttributeError, ValueError):  # no standard error, or it is closed
            pass

    def _say(self):
        with self._lock:
            self._said = True
            print(f"moa: compiling {self._what} …", end="", file=sys.stderr, flush=True)

    def __enter__(self):
        self._begin = time.monotonic()
        if self._timer:
            self._timer.start()

    def __exit__(self, *_):
        if self._timer:
            self._timer.cancel()
            with self._lock:
                if self._said:
                    print(f" {time.monotonic() - self._begin:.1f} s", file=sys.stderr, flush=True)


def _make(source) -> tuple[dict, bytes]:
    """Compiles. Returns the facts of a cache entry, and the code."""
    unit = source.compilation(loads=True)
    if source.target == "cuda":
        code, manifest = unit.ptx()
    else:
        code, manifest = unit.object(), unit.get("manifest")
    warned = [_write_diagnostic(found, source.name) for found in unit.diagnostics() if found.severity == "warning"]
    return {"kernels": unit.kernels(), "manifest": manifest, "warnings": warned}, code


def _write_diagnostic(found, name):
    # An entry of the cache serves every file with this text, so it does not keep the file's name.
    return [found.severity, None if found.file == name else found.file, found.line, found.column, found.message,
            [_write_diagnostic(note, name) for note in found.notes]]


def _read_diagnostic(fields, name):
    severity, file, line, column, message, notes = fields
    return Diagnostic(severity, name if file is None else file, line, column, message,
                      tuple(_read_diagnostic(note, name) for note in notes))


def _load(source, facts, code):
    """Loads the code into this process."""
    if source.target == "cuda":
        return _native.load_gpu(code, facts["manifest"])
    from moa import _compiler
    loaded = _compiler.Code(code)
    return _native.load_functions(loaded.addresses([info["name"] for info in facts["kernels"]]), facts["manifest"],
                                  loaded)


def _choose(facts, name):
    names = [info["name"] for info in facts["kernels"]]
    if name is None and len(names) == 1:
        return facts["kernels"][0]
    if name in names:
        return facts["kernels"][names.index(name)]
    listed = ", ".join(names)
    raise CompileError(f"there is no kernel '{name}'; the specification has {listed}" if name is not None else
                       f"the specification has several kernels; choose one by kernel=: {listed}" if names else
                       "the specification has no kernel")


def _compile(source, name, stacklevel=3):
    key = source.key() if source.options.cache and _cache.directory() else None
    entry = _cache.read(key) if key else None
    program = None
    if entry:
        try:
            program = _load(source, *entry)
        except (CompileError, ValueError):  # an entry that cannot be loaded is compiled again
            entry = None
    if not entry:
        with _Progress(f"{source.name} for {source.target}"):
            entry = _make(source)
            program = _load(source, *entry)
        if key:
            _cache.write(key, *entry)
    facts, _ = entry
    for fields in facts["warnings"]:
        found = _read_diagnostic(fields, source.name)
        place = f"{found.file}:{found.line}:{found.column}: " if found.line else ""
        warnings.warn(CompileWarning(place + found.message, found), stacklevel=stacklevel)
    return Kernel(source, program, _choose(facts, name), facts["manifest"])


_SETTINGS = {"float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16", "half": "f16",
             "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
             "uint16": "u16", "uint32": "u32", "bool_": "bool"}


def _setting(name, value) -> str:
    """Returns the value of a setting as text: a number, a name, or a type of a library of arrays."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        raise TypeError(f"the setting {name} must be a number, a text or an element type, not {value!r}")
    if isinstance(value, float):  # also a float64 of NumPy
        return float.__repr__(value)
    if hasattr(value, "__index__"):
        return str(value.__index__())
    text = getattr(value, "__name__", None) or getattr(value, "name", None) or str(value)
    text = text.rpartition(".")[2]
    if text not in _SETTINGS and text != "bool":
        raise TypeError(f"the setting {name} must be a number, a text or an element type, not {value!r}")
    return _SETTINGS.get(text, text)


def _read_source(source, name) -> tuple[str, str]:
    """Returns the text of a specification and the name of its file."""
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"expects a specification as a text, or the path of its file, but got {type(source).__name__}")
    if isinstance(source, str) and not (source.endswith((".moa", ".mlir")) and "\n" not in source):
        return source, name or "input.moa"
    path = os.fspath(source)
    with open(path, "rb") as file:
        content = file.read()
    try:
        return content.decode(), name or path
    except UnicodeDecodeError as error:
        raise CompileError(f"{path}: the file is not UTF-8: {error}") from None


def compile(source: str | os.PathLike, target: str = "cpu", *, kernel: str | None = None,
            options: Options | None = None, **settings: int | float | str) -> Kernel:
    """Compiles a specification and returns a kernel.

    source: a path (pathlib.Path, or a text that ends in ".moa"), else the specification itself.
    target: "cpu" for this machine, or "cuda" for a GPU of sm_90a.
    kernel: the name of the kernel, if the specification has several.
    options: a moa.Options.
    settings: values of the compile-time parameters, for example D=64, eps=1e-5, T="f32". A type of
        NumPy or PyTorch stands for its name.

    Raises CompileError, whose text has file, line, column and a caret, and OSError for the file.
    Warnings of the compiler become CompileWarning. What was compiled is kept on disk.
    """
    if target not in _TARGETS:
        raise ArgumentError(f"there is no target {target!r}; there are cpu, cuda")
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise TypeError(f"options must be a moa.Options, not {type(options).__name__}")
    text, name = _read_source(source, options.name)
    if "\0" in text:
        raise CompileError(f"{name}: the specification has a zero byte")
    given = {key: _setting(key, value) for key, value in {**options.settings, **settings}.items()}
    return _compile(_Source(text, name, target, given, options), kernel)
