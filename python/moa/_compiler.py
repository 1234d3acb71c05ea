"""The compiler, libmoa-c.so, through ctypes (include/moa-c/moa.h)."""
from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_void_p

from moa import _libraries
from moa._errors import CompileError, Diagnostic, Error

LEVELS = ("moa", "dnf", "onf", "lifted", "vector", "llvm", "device")
_PTX = {"ptx": 0, "launcher": 1}
_SEVERITIES = ("error", "warning", "remark", "note")
_MEMORY, _INTERNAL = 4, 5


class Tolerance(ctypes.Structure):
    _fields_ = [("epsilon", c_double), ("is_relative", c_bool), ("is_sampled", c_bool)]


# Results and arguments of the functions; p: a pointer to an opaque object.
_p, _s, _z, _e = c_void_p, c_char_p, c_size_t, POINTER(c_void_p)
_FUNCTIONS = {
    "moa_api_version": (c_int32,), "moa_version_text": (_s,),
    "moa_error_code": (c_int32, _p), "moa_error_message": (_s, _p), "moa_error_destroy": (None, _p),
    "moa_error_diagnostic_count": (_z, _p), "moa_error_diagnostic": (_p, _p, _z),
    "moa_diagnostic_severity": (c_int32, _p), "moa_diagnostic_file": (_s, _p), "moa_diagnostic_line": (c_uint32, _p),
    "moa_diagnostic_column": (c_uint32, _p), "moa_diagnostic_message": (_s, _p),
    "moa_diagnostic_note_count": (_z, _p), "moa_diagnostic_note": (_p, _p, _z),
    "moa_text_data": (_p, _p), "moa_text_size": (_z, _p), "moa_text_destroy": (None, _p),
    "moa_options_create": (_p,), "moa_options_destroy": (None, _p),
    "moa_options_add_setting": (c_int32, _p, _s), "moa_options_add_tolerance": (c_int32, _p, _s),
    "moa_options_set_schedule": (c_int32, _p, _s, _s), "moa_options_set_plans": (c_int32, _p, _s, _s),
    "moa_options_set_processor": (c_int32, _p, _s), "moa_options_set_architecture": (c_int32, _p, _s),
    "moa_options_set_optimization": (c_int32, _p, c_uint32),
    "moa_options_set_mixed_precision_from": (c_int32, _p, c_int64),
    "moa_options_set_pilot_from": (c_int32, _p, c_int64), "moa_options_set_low_rank_from": (c_int32, _p, c_int64),
    **{f"moa_options_set_{name}": (c_int32, _p, c_bool) for name in (
        "explain", "checks_tolerances", "mixed_precision", "variants_of_gpu", "decisions", "checks_plans",
        "warns_if_unused")},
    "moa_compile_text": (_p, _p, _s, _s, _e), "moa_compilation_destroy": (None, _p),
    "moa_compilation_diagnostic_count": (_z, _p), "moa_compilation_diagnostic": (_p, _p, _z),
    "moa_compilation_print": (_p, _p, c_int32, _e), "moa_compilation_ptx": (_p, _p, c_int32, _e),
    **{f"moa_compilation_{name}": (_p, _p, _e) for name in (
        "mathematics", "explain", "cuda", "object", "header", "schedule", "manifest")},
    "moa_compilation_report": (_p, _p, c_int32, POINTER(_s), POINTER(c_int64), _z, _e),
    "moa_compilation_kernel_count": (_z, _p), "moa_compilation_kernel": (_p, _p, _z),
    "moa_kernel_info_name": (_s, _p), "moa_kernel_info_text": (_s, _p),
    **{f"moa_kernel_info_{name}_count": (_z, _p) for name in ("symbol", "constraint", "parameter")},
    "moa_kernel_info_symbol": (_s, _p, _z), "moa_kernel_info_constraint": (_s, _p, _z),
    "moa_kernel_info_parameter": (_p, _p, _z),
    "moa_parameter_name": (_s, _p), "moa_parameter_element_type": (_s, _p), "moa_parameter_extent_count": (_z, _p),
    "moa_parameter_extent": (_s, _p, _z), "moa_parameter_range": (_s, _p), "moa_parameter_is_output": (c_bool, _p),
    "moa_parameter_is_scalar": (c_bool, _p), "moa_parameter_tolerance": (c_bool, _p, POINTER(Tolerance)),
    "moa_load_object": (_p, _s, _z, _e), "moa_code_function": (_p, _p, _s, _e), "moa_code_destroy": (None, _p),
}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Loads libmoa-c.so."""
    path = _libraries.find_library("libmoa-c.so")
    opened = ctypes.CDLL(path)
    for name, (result, *arguments) in _FUNCTIONS.items():
        try:
            function = getattr(opened, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}; the library is too old for this package") from None
        function.restype, function.argtypes = result, arguments
    return opened


def _diagnostic(place) -> Diagnostic:
    lib = library()
    return Diagnostic(
        _SEVERITIES[lib.moa_diagnostic_severity(place)], lib.moa_diagnostic_file(place).decode(errors="replace"),
        lib.moa_diagnostic_line(place), lib.moa_diagnostic_column(place),
        lib.moa_diagnostic_message(place).decode(errors="replace"),
        tuple(_diagnostic(lib.moa_diagnostic_note(place, k)) for k in range(lib.moa_diagnostic_note_count(place))))


def _ask(function, *arguments):
    """Calls a function whose last argument is the error, and raises it."""
    lib, error = library(), c_void_p()
    answer = function(*arguments, byref(error))
    if answer:
        return answer
    if not error:
        raise Error("the compiler gave no reason")
    try:
        status = lib.moa_error_code(error)
        message = lib.moa_error_message(error).decode(errors="replace").rstrip("\n")
        found = tuple(_diagnostic(lib.moa_error_diagnostic(error, k))
                      for k in range(lib.moa_error_diagnostic_count(error)))
    finally:
        lib.moa_error_destroy(error)
    if status == _MEMORY:
        raise MemoryError(message)
    raise Error(message) if status == _INTERNAL else CompileError(message, found)


def _text(handle) -> bytes:
    lib = library()
    try:
        return ctypes.string_at(lib.moa_text_data(handle), lib.moa_text_size(handle))
    finally:
        lib.moa_text_destroy(handle)


def _set(status, what):
    if status:
        raise MemoryError(what) if status == _MEMORY else CompileError(f"the option {what} is out of range")


def _tolerance(result, given) -> str:
    return f"{result}=" + ",".join(str(given).split())


def _options(options, settings, architecture, texts, explain):
    """Returns the options as the library has them."""
    lib = library()
    handle = lib.moa_options_create()
    if not handle:
        raise MemoryError("memory ran out")
    try:
        for name, value in settings.items():
            _set(lib.moa_options_add_setting(handle, f"{name}={value}".encode()), name)
        for name, given in options.within.items():
            _set(lib.moa_options_add_tolerance(handle, _tolerance(name, given).encode()), "within")
        for name, (text, file) in texts.items():
            _set(getattr(lib, f"moa_options_set_{name}")(handle, text.encode(), file.encode()), name)
        defaults = type(options)()
        for name, value, setter in (
                ("processor", options.processor and options.processor.encode(), "processor"),
                ("architecture", architecture and architecture.encode(), "architecture"),
                ("optimization", options.optimization, "optimization"), ("spend", options.spend, "mixed_precision"),
                ("spend_from", options.spend_from, "mixed_precision_from"),
                ("pilot_from", options.pilot_from, "pilot_from"), ("low_rank", options.low_rank, "low_rank_from"),
                ("spend_as_gpu", options.spend_as_gpu, "variants_of_gpu"),
                ("decisions", options.decisions, "decisions"), ("check_plans", options.check_plans, "checks_plans"),
                ("check_tolerances", options.check_tolerances, "checks_tolerances"),
                ("warn_if_unused", options.warn_if_unused, "warns_if_unused"), ("explain", explain, "explain")):
            if value != getattr(defaults, name, False):  # a setter of tolerances has effects beside its value
                _set(getattr(lib, f"moa_options_set_{setter}")(handle, value), name)
        return handle
    except BaseException:
        lib.moa_options_destroy(handle)
        raise


class Compilation:
    """One compiled specification. One thread at a time uses it."""

    def __init__(self, text, name, settings, options, architecture, texts, explain=False):
        self._lock = threading.Lock()
        self._handle = None
        handle = _options(options, settings, architecture, texts, explain)
        try:
            self._handle = _ask(library().moa_compile_text, handle, text.encode(), name.encode())
        finally:
            library().moa_options_destroy(handle)

    def __del__(self, ends=sys.is_finalizing):  # at the end of the process nothing needs to be freed
        if getattr(self, "_handle", None) and not ends():
            library().moa_compilation_destroy(self._handle)

    def _query(self, function, *arguments) -> bytes:
        with self._lock:
            return _text(_ask(function, self._handle, *arguments))

    def get(self, form) -> str:
        """Returns a text: a level, "cuda", "ptx", "launcher", "manifest", "header", "schedule", "mathematics" or
        "explain"."""
        lib = library()
        if form in LEVELS:
            answer = self._query(lib.moa_compilation_print, LEVELS.index(form))
        elif form in _PTX:
            answer = self._query(lib.moa_compilation_ptx, _PTX[form])
        else:
            answer = self._query(getattr(lib, f"moa_compilation_{form}"))
        return answer.decode()

    def object(self) -> bytes:
        return self._query(library().moa_compilation_object)

    def ptx(self) -> tuple[bytes, str]:
        """Returns the PTX and its manifest."""
        function = library().moa_compilation_ptx
        return self._query(function, 0), self._query(function, 2).decode()

    def report(self, format, sizes) -> str:
        names = (c_char_p * len(sizes))(*(name.encode() for name in sizes))
        values = (c_int64 * len(sizes))(*sizes.values())
        return self._query(library().moa_compilation_report, format, names, values, len(sizes)).decode()

    def diagnostics(self) -> list[Diagnostic]:
        lib = library()
        with self._lock:
            return [_diagnostic(lib.moa_compilation_diagnostic(self._handle, k))
                    for k in range(lib.moa_compilation_diagnostic_count(self._handle))]

    def kernels(self) -> list[dict]:
        """Returns the interfaces of the kernels."""
        lib = library()
        return [_interface(lib.moa_compilation_kernel(self._handle, k))
                for k in range(lib.moa_compilation_kernel_count(self._handle))]


def _interface(info) -> dict:
    lib = library()

    def all_of(kind, get):
        return [get(info, k) for k in range(getattr(lib, f"moa_kernel_info_{kind}_count")(info))]

    return {"name": lib.moa_kernel_info_name(info).decode(), "text": lib.moa_kernel_info_text(info).decode(),
            "symbols": [name.decode() for name in all_of("symbol", lib.moa_kernel_info_symbol)],
            "constraints": [text.decode() for text in all_of("constraint", lib.moa_kernel_info_constraint)],
            "parameters": [_parameter(place) for place in all_of("parameter", lib.moa_kernel_info_parameter)]}


def _parameter(place) -> list:
    lib, tolerance = library(), Tolerance()
    role = ("output" if lib.moa_parameter_is_output(place) else
            "scalar" if lib.moa_parameter_is_scalar(place) else "input")
    shape = [lib.moa_parameter_extent(place, k).decode() for k in range(lib.moa_parameter_extent_count(place))]
    within = None
    if lib.moa_parameter_tolerance(place, byref(tolerance)):
        within = (f"{tolerance.epsilon:g}" + " relative" * tolerance.is_relative + " sampled" * tolerance.is_sampled)
    return [lib.moa_parameter_name(place).decode(), role, lib.moa_parameter_element_type(place).decode(), shape,
            lib.moa_parameter_range(place).decode() or None, within]


class Code:
    """The code of an object in this process."""

    def __init__(self, object: bytes):
        self._handle = None
        self._handle = _ask(library().moa_load_object, object, len(object))

    def __del__(self, ends=sys.is_finalizing):  # at the end of the process nothing needs to be freed
        if getattr(self, "_handle", None) and not ends():
            library().moa_code_destroy(self._handle)

    def addresses(self, names) -> dict[str, int]:
        """Returns the addresses of the entry points of kernels."""
        lib, found = library(), {}
        for name in names:
            for part in ("", "_check", "_workspace", "_prepare"):
                found[name + part] = _ask(lib.moa_code_function, self._handle, (name + part).encode())
            shown = lib.moa_code_function(self._handle, (name + "_shown").encode(), None)
            if shown:
                found[name + "_shown"] = shown
        return found
