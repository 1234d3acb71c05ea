"""Calls kernels through the run-time library, by its C interface (include/moa-c/runtime.h)."""
import ctypes
import functools
import json
import os

import moa_testing as mt

PROGRAM = 16  # a code of the library alone
MAP_BYTES = 128


def library_path():
    return os.environ.get("MOA_RUNTIME_LIBRARY") or os.path.join(mt.BINARY_ROOT, "lib", "libmoa-runtime.so")


class Scalar(ctypes.Union):
    _fields_ = [("f", ctypes.c_double), ("i", ctypes.c_int64)]


class ParameterFacts(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("shape", ctypes.c_char_p),
                ("role", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


@functools.lru_cache(maxsize=None)
def load(path):
    library = ctypes.CDLL(path)
    for name in ("moa_program_function", "moa_program_find"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("moa_program_count", "moa_function_parameters"):
        getattr(library, name).restype = ctypes.c_size_t
    library.moa_program_name.restype = ctypes.c_char_p
    library.moa_function_workspace.restype = ctypes.c_int64
    return library


class Refused(RuntimeError):
    pass


class Program:
    """A program that lives as long as this object."""

    def __init__(self, manifest, image=None, library=None, runtime=None):
        """`manifest` is JSON text; `image` PTX or a cubin; `library` a path; `runtime` another copy of the library."""
        self.runtime = load(runtime or library_path())
        self.handle = ctypes.c_void_p()
        text = ctypes.create_string_buffer(1024)
        last = manifest.encode(), ctypes.byref(self.handle), text, ctypes.c_size_t(len(text))
        if library is None:
            code = self.runtime.moa_program_load_gpu(image, ctypes.c_size_t(len(image)), *last)
        else:
            code = self.runtime.moa_program_load_cpu(library.encode(), *last)
        if code:
            raise Refused(code, text.value.decode())

    def __del__(self):
        if self.handle:
            self.runtime.moa_program_destroy(self.handle)


def open_ptx(base, runtime=None):
    """The program of BASE.ptx and BASE.json."""
    with open(base + ".ptx", "rb") as image, open(base + ".json", encoding="utf-8") as manifest:
        return Program(manifest.read(), image.read(), runtime=runtime)


class Function:
    """A kernel of a program, with the methods of mt.Kernel."""

    def __init__(self, program, facts, launcher=mt.Kernel):
        """`facts` is the entry of the manifest."""
        self.program, self.runtime, self.facts, self.launcher = program, program.runtime, facts, launcher
        self.name = facts["name"]
        self.handle = ctypes.c_void_p(self.runtime.moa_program_find(program.handle, self.name.encode()))
        self.parameters = [mt.Parameter("out" if a["role"] == "output" else "in", a["name"], a["type"],
                                        ", ".join(a["shape"])) for a in facts["arguments"]]
        self.arrays = [p for p in self.parameters if not p.is_scalar]
        self.scalars = [p for p in self.parameters if p.is_scalar]

    def arguments(self, values):
        arrays = (ctypes.c_void_p * max(len(self.arrays), 1))()
        for k, parameter in enumerate(self.arrays):
            value = values[parameter.name]
            arrays[k] = ctypes.addressof(value) if value is not None else None
        scalars = (Scalar * max(len(self.scalars), 1))()
        for k, parameter in enumerate(self.scalars):
            if parameter.kind in ("f64", "f32", "bf16", "f16"):
                scalars[k].f = values[parameter.name]
            else:
                scalars[k].i = values[parameter.name]
        return self.handle, arrays, scalars

    def message(self, room):
        text = ctypes.create_string_buffer(b"?" * max(room, 1), max(room, 1))
        return text, (text if room else None, ctypes.c_size_t(room))

    def check(self, values, room=512):
        text, last = self.message(room)
        code = self.runtime.moa_function_check(*self.arguments(values), *last)
        return code, text.value.decode()

    def workspace_bytes(self, values):
        return self.runtime.moa_function_workspace(*self.arguments(values), None, ctypes.c_size_t(0))

    def call(self, values, pointer, size, stream=None, room=512):
        """The code and the message of a call."""
        text, last = self.message(room)
        code = self.runtime.moa_function_call(*self.arguments(values), pointer, ctypes.c_size_t(size),
                                              ctypes.c_void_p(stream), *last)
        return code, text.value.decode()

    def launch(self, values, workspace=None, size=None):
        if workspace is None:
            workspace = mt.aligned(max(self.workspace_bytes(values), 0))
        pointer = ctypes.c_void_p(workspace.ctypes.data if workspace.size else None)
        size = workspace.size if size is None else size
        self.given = workspace, pointer, size
        return self.call(values, pointer, size)[0]

    def has_shown(self):
        return bool(self.runtime.moa_function_has_shown(self.handle))

    def shown(self, values, size=None, room=1024):
        text, last = self.message(room)
        code = self.runtime.moa_function_shown(*self.arguments(values), self.given[1],
                                               ctypes.c_size_t(self.given[2] if size is None else size), None, *last)
        return code, text.value.decode() if room else ""

    def prepare(self, device):
        text, last = self.message(512)
        return self.runtime.moa_function_prepare(self.handle, device, *last), text.value.decode()

    def shapes(self, values):
        """The code, the message and the shapes of the outputs."""
        text, last = self.message(512)
        outputs = [p for p in self.arrays if p.is_output]
        places = [(ctypes.c_int64 * max(len(p.extents), 1))() for p in outputs]
        table = (ctypes.c_void_p * len(places))(*map(ctypes.addressof, places))
        handle, arrays, _ = self.arguments({**{p.name: None for p in outputs}, **values,
                                            **{p.name: 0 for p in self.scalars}})
        code = self.runtime.moa_function_shapes(handle, arrays, table, *last)
        return code, text.value.decode(), {p.name: tuple(place[:len(p.extents)]) for p, place in zip(outputs, places)}


def functions(base, runtime=None):
    """The functions of BASE.ptx."""
    program = open_ptx(base, runtime)
    with open(base + ".json", encoding="utf-8") as file:
        return [Function(program, facts) for facts in json.load(file)["programs"]]
