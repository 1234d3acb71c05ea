"""Kernels in CUDA C++, compiled by nvcc and called through their C entry points, and in PTX, called through the launcher
in C that comes with them.

With MOA_GPU_KERNELS the text of the kernels stands in that directory, written by
the same tests with MOA_TEST_TARGET=record on a machine that has the compiler;
without it moa-codegen writes it.
"""
import atexit
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np

import moa_testing as mt

FLAGS = ["-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings",
         "-shared", "-Xcompiler", "-fPIC"]


def file_name(spec, settings, variant=None, flags=()):
    """Where a kernel stands, given by its path or as text; a variant is one of its
    schedules. Of files in flags the last name counts."""
    if "\n" in spec:
        digest = hashlib.sha1(spec.encode()).hexdigest()[:8]
        spec = re.search(r"kernel (\w+)", spec).group(1) + "-" + digest
    words = [os.path.splitext(os.path.basename(spec))[0]]
    words += [f"{k}={v}" for k, v in sorted(settings.items())]
    words += [os.path.basename(flag).lstrip("-") for flag in flags]
    return "-".join(words) + (f"@{variant}" if variant else "")


def emit(spec, base, settings, schedule=None, flags=()):
    """Writes BASE.cu and BASE.h, and BASE.json with the text of a schedule."""
    sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
    if "\n" in spec:
        with open(base + ".moa", "w", encoding="utf-8") as file:
            file.write(spec)
        spec = base + ".moa"
    scheduled = []
    if schedule is not None:
        with open(base + ".json", "w", encoding="utf-8") as file:
            file.write(schedule)
        scheduled = [f"--schedule={base}.json"]
    for words in (["--target=cuda", "-o", base + ".cu", *scheduled], ["--target=cuda", "--header", base + ".h"]):
        made = mt.tool("moa-codegen", spec, *sets, *flags, *words)
        if made.returncode:
            raise RuntimeError(f"moa-codegen {spec}: {made.stderr}")


def emit_ptx(spec, base, settings, flags=(), schedule=None):
    """Writes BASE.c, which holds the PTX, next to what `emit` has written."""
    sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
    spec = base + ".moa" if "\n" in spec else spec
    scheduled = [] if schedule is None else [f"--schedule={base}.json"]
    made = mt.tool("moa-codegen", spec, *sets, *flags, *scheduled, "--target=ptx", "-o", base + ".ptx")
    if made.returncode:
        raise RuntimeError(f"moa-codegen {spec}: {made.stderr}")
    os.remove(base + ".ptx")


def compile(base):
    done = subprocess.run(["nvcc", *FLAGS, base + ".cu", "-o", base + ".so"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"nvcc {base}.cu: {done.stdout}")


def cuda_root():
    return os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc"))))


def compile_launcher(base):
    root = cuda_root()
    done = subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{root}/include", base + ".c",
                           "-o", base + ".ptx.so", f"-L{root}/lib64/stubs", "-lcuda"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"gcc {base}.c: {done.stdout}")


@functools.lru_cache(maxsize=None)
def runtime():
    root = cuda_root()
    for folder in ("lib64", "targets/x86_64-linux/lib"):
        path = os.path.join(root, folder, "libcudart.so")
        if os.path.exists(path):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libcudart.so")


def cuda(name, *arguments):
    code = getattr(runtime(), name)(*arguments)
    if code:
        raise RuntimeError(f"{name} failed with code {code}")


class DeviceArray:
    """A copy of a NumPy array's memory, strides included, on the device."""

    def __init__(self, array):
        self.array = array
        low, high = np.lib.array_utils.byte_bounds(array) if hasattr(
            np.lib, "array_utils") else np.byte_bounds(array)
        self.size = max(high - low, 1) if array.size else 0
        self.host, self.pointer = low, ctypes.c_void_p()
        if self.size:
            cuda("cudaMalloc", ctypes.byref(self.pointer), ctypes.c_size_t(self.size))
            self.copy(self.pointer, ctypes.c_void_p(low), 1)

    def copy(self, target, source, kind):
        cuda("cudaMemcpy", target, source, ctypes.c_size_t(self.size), kind)

    def fetch(self):
        if self.size:
            self.copy(ctypes.c_void_p(self.host), self.pointer, 2)

    def describe(self, kind):
        tensor = mt.describe(self.array, kind)
        offset = self.array.ctypes.data - self.host if self.size else 0
        tensor.data = (self.pointer.value or 0) + offset if self.size else None
        tensor.device_type = 2
        tensor.keep = (self, self.array)
        return tensor

    def __del__(self):
        if self.size:
            runtime().cudaFree(self.pointer)


class Kernel(mt.Kernel):
    library = ".so"

    def make(self, spec, base, settings, schedule, flags):
        emit(spec, base, settings, schedule, flags)

    def compile(self, base):
        compile(base)

    def open(self, base):
        self.read_header(base + ".h")
        self.loaded = ctypes.CDLL(base + self.library)

    def __init__(self, spec, variant=None, schedule=None, flags=(), **settings):
        """`schedule` is the text of the schedule that `variant` names."""
        stored = os.environ.get("MOA_GPU_KERNELS")
        if stored:
            base = os.path.join(stored, file_name(spec, settings, variant, flags))
        else:
            directory = tempfile.mkdtemp(prefix="moa-test-")
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            base = os.path.join(directory, "kernel")
            self.make(spec, base, settings, schedule, flags)
        if not os.path.exists(base + self.library):
            self.compile(base)
        self.open(base)

    def launch(self, values, workspace=None, size=None):
        """The code of NAME; a workspace on the device, of any contents, is made when none is given."""
        if workspace is None:
            workspace = DeviceArray(np.full(max(self.workspace_bytes(values), 0), 0xA5, np.uint8))
        size = workspace.size if size is None else size
        self.given = workspace, workspace.pointer, size
        return self.entry("", ctypes.c_int32)(*self.arguments(values), workspace.pointer,
                                              ctypes.c_size_t(size), None)

    def run(self, inputs, output_shapes, arrange=np.asarray):
        """As on a CPU, with copies on the device; the code is that of NAME_shown, where there is one."""
        values, outputs = {}, {}
        for parameter in self.parameters:
            name, kind = parameter.name, parameter.kind
            if parameter.is_scalar:
                values[name] = inputs[name]
                continue
            if parameter.is_output:
                array = np.empty(output_shapes[name], mt.STORAGE[kind][0])
                array.reshape(-1).view(np.uint8)[...] = self.fill
            else:
                array = mt.encode(inputs[name], kind)
            device = DeviceArray(arrange(array))
            if parameter.is_output:
                outputs[name] = device
            values[name] = device.describe(kind)
        self.code, self.told = self.launch(values), ""
        if self.code in (mt.OK, mt.NOT_SHOWN) and self.has_shown():
            self.code, self.told = self.shown(values)
        if self.code not in self.accepted:
            raise RuntimeError(f"{self.name} returned {self.code}: {self.told or self.check(values)}")
        cuda("cudaDeviceSynchronize")
        for device in outputs.values():
            device.fetch()
        return {name: device.array for name, device in outputs.items()}


class PtxKernel(Kernel):
    """The same in PTX."""
    library = ".ptx.so"

    def make(self, spec, base, settings, schedule, flags):
        emit(spec, base, settings, schedule, flags)
        emit_ptx(spec, base, settings, flags, schedule)

    def compile(self, base):
        compile_launcher(base)
