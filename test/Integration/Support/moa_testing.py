"""Builds kernels with the tools and calls them through their C entry points.

A `Kernel` is a specification compiled by moa-codegen to an object file and a
header, linked by the C compiler into a shared library and called with DLPack
descriptors through ctypes, as any program outside of the project would.
"""
import atexit
import ctypes
import hashlib
import itertools
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import amx

SOURCE_ROOT = os.environ["MOA_SOURCE_ROOT"]
BINARY_ROOT = os.environ["MOA_BINARY_ROOT"]
TOOLS = os.path.join(BINARY_ROOT, "bin")
LIBOMP = os.environ.get("MOA_LIBOMP", "/usr/lib/llvm-22/lib/libomp.so")

# The codes of the header that every kernel comes with.
OK, NULL_DESCRIPTOR, RANK, DTYPE, SHAPE, CONSTRAINT, STRIDES = range(7)
ALIGNMENT, DEVICE, NULL_DATA, OVERLAP, WORKSPACE, OVERFLOW, PROCESSOR, LAUNCH, NOT_SHOWN = range(7, 16)

# Tests make their kernels, for MOA_TEST_PROCESSOR, and run none: see emitting.py and ../CPU/processors.sh.
EMIT = "MOA_TEST_EMIT" in os.environ

# Relative L2 error against float64 that each element type may have.
BOUNDS = {"f64": 1e-14, "f32": 2e-6, "bf16": 3e-3}

# FlashAttention's grid of (queries, keys), and the small and empty ones.
GRID = [(0, 0), (0, 5), (5, 0), (1, 1), (1, 17), (17, 1), (64, 128), (128, 192),
        (256, 256), (239, 1), (799, 3), (113, 203), (113, 128), (128, 217),
        (113, 211), (108, 256), (256, 512), (384, 256), (640, 128), (512, 256),
        (1024, 1024), (1023, 1024), (1024, 1023)]
LARGE = [(4096, 4096), (4224, 4224)]

# Where kernels run: see make_kernel.
TARGET = os.environ.get("MOA_TEST_TARGET", "cpu")
# Whether kernels are for a processor with AMX, and run on this one all the same (amx.py).
EMULATE_AMX = bool(os.environ.get("MOA_TEST_EMULATE_AMX"))
if EMULATE_AMX:
    os.environ.update(MOA_TEST_PROCESSOR=amx.PROCESSOR, MOA_TEST_WORDS=amx.WORDS)
if TARGET == "device":
    # An interpreter: whole and partial tiles of rows and keys, one, none.
    GRID = [(0, 5), (5, 0), (1, 1), (17, 1), (1, 130), (150, 1), (7, 20), (113, 203)]
    LARGE = []


# How hard LLVM works on code for a CPU: see compile_soonest.
optimisation = os.environ.get("MOA_TEST_OPTIMISATION")


def compile_soonest():
    """For tests of what is computed, of many kernels or of kernels of many nests, on few rows: LLVM, which takes most of the time, does
    not optimise code for a CPU. MOA_TEST_OPTIMISATION=1 takes what users have."""
    global optimisation
    optimisation = optimisation or "0"


def example(name):
    return os.path.join(SOURCE_ROOT, "examples", name + ".moa")


def tool(name, *arguments, **options):
    """Runs one of the tools and returns the finished process, output as text.

    Where the compiler is not there, or need not be (EMIT), the test is skipped.
    """
    if EMIT or not os.path.exists(os.path.join(TOOLS, name)):
        raise unittest.SkipTest(f"needs {name}")
    return run_tool(name, *arguments, **options)


def run_tool(name, *arguments, **options):
    options.setdefault("timeout", 600)
    return subprocess.run([os.path.join(TOOLS, name), *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", **options)


# bfloat16 stands in NumPy arrays of uint16 that hold its bits.

def to_bf16(values):
    """Rounds to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def encode(values, kind):
    """NumPy values as the array that a parameter of this element type takes."""
    values = np.asarray(values)
    if kind == "bf16":
        return to_bf16(values)
    return np.ascontiguousarray(values.astype(STORAGE[kind][0]))


def decode(array, kind):
    """The values of a stored array in float64 (or as they are)."""
    if kind == "bf16":
        return from_bf16(array).astype(np.float64)
    return array.astype(np.float64) if kind in ("f32", "f64", "f16") else array


# Element type: NumPy storage, DLPack code, bits, C type of a scalar.
STORAGE = {
    "f64": (np.float64, 2, 64, ctypes.c_double),
    "f32": (np.float32, 2, 32, ctypes.c_float),
    "f16": (np.float16, 2, 16, ctypes.c_float),
    "bf16": (np.uint16, 4, 16, ctypes.c_float),
    "bool": (np.bool_, 6, 8, ctypes.c_bool),
    "i8": (np.int8, 0, 8, ctypes.c_int8),
    "i16": (np.int16, 0, 16, ctypes.c_int16),
    "i32": (np.int32, 0, 32, ctypes.c_int32),
    "i64": (np.int64, 0, 64, ctypes.c_int64),
    "u8": (np.uint8, 1, 8, ctypes.c_uint8),
    "u16": (np.uint16, 1, 16, ctypes.c_uint16),
    "u32": (np.uint32, 1, 32, ctypes.c_uint32),
}


class DLTensor(ctypes.Structure):
    """DLPack's descriptor, by its published layout."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def int64s(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def describe(array, kind, strides=True, byte_offset=0):
    """The descriptor of a NumPy array, of any strides."""
    _, code, bits, _ = STORAGE[kind]
    tensor = DLTensor()
    tensor.data = array.ctypes.data - byte_offset
    tensor.device_type = 1
    tensor.ndim = array.ndim
    tensor.code, tensor.bits, tensor.lanes = code, bits, 1
    tensor.shape = int64s(array.shape)
    if strides:
        tensor.strides = int64s([s // array.itemsize for s in array.strides])
    tensor.byte_offset = byte_offset
    tensor.keep = array  # the descriptor borrows the memory
    return tensor


class Parameter:
    """One line of the header: name, element type, extents as text, direction."""

    def __init__(self, direction, name, kind, extents):
        self.is_output = direction == "out"
        self.name, self.kind = name, "bool" if kind == "i1" else kind
        self.extents = [e.strip() for e in extents.split(",")] if extents else []
        self.is_scalar = not self.extents and not self.is_output


PAGE, PROT_NONE = mmap.PAGESIZE, 0
mprotect = ctypes.CDLL(None, use_errno=True).mprotect
mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class Pages:
    """`size` bytes between two pages that nobody may read or write: they end at the second one, rounded up to `alignment`, or begin
    right after the first one. A kernel that reads or writes outside of its arrays ends the process.
    """

    def __init__(self, size, alignment=1, at_end=True):
        room = -(-size // alignment) * alignment
        inner = max(-(-room // PAGE), 1) * PAGE
        self.memory = mmap.mmap(-1, inner + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for page in (base, base + PAGE + inner):
            if mprotect(page, PAGE, PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.first = PAGE + (inner - room if at_end else 0)


def aligned(size, fill=0xA5, at_end=True):
    """`size` bytes at a multiple of 64 between protected pages, filled with a pattern."""
    pages = Pages(size, alignment=64, at_end=at_end)
    array = np.ndarray((size,), np.uint8, pages.memory, pages.first)
    array[...] = fill
    return array


def between_pages(array, at_end=True):
    """A copy of an array, of any strides, whose elements end at a protected page or begin after one."""
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides)] if array.size else []
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    pages = Pages(high - low + array.itemsize if array.size else 0, at_end=at_end)
    copy = np.ndarray(array.shape, array.dtype, pages.memory, pages.first - low, array.strides)
    copy[...] = array
    return copy


def with_contents(flag):
    """A flag, with the text of the file that it names in place of the path."""
    name, equals, path = flag.rpartition("=")
    if not os.path.isfile(path):
        return flag
    with open(path, encoding="utf-8", errors="replace") as file:
        return name + equals + file.read()


class Kernel:
    """A specification, given by its path or as text, in a shared library.

    With MOA_CPU_KERNELS libraries stand in that directory and are made only where they are not there yet: for a
    processor that this machine does not have, on one that does not have the compiler. MOA_TEST_PROCESSOR is the
    processor of kernels that name none.
    """

    fill = 0xA5     # every byte of an output before a run
    accepted = (OK,)  # codes that a run may return
    code = None     # of the last run
    told = None     # what was said of it, where that is known
    # Whether arrays end at protected pages, or begin after them, by turns.
    turns = itertools.cycle((True, False))

    def __init__(self, spec, flags=(), processor=None, **settings):
        processor = processor or os.environ.get("MOA_TEST_PROCESSOR")
        if EMULATE_AMX and processor != amx.PROCESSOR:
            raise unittest.SkipTest(f"code for {processor} is not emulated")
        if EMULATE_AMX and not amx.find_tool("llc"):
            raise unittest.SkipTest("emulation needs LLVM's llc")
        directory = os.environ.get("MOA_CPU_KERNELS")
        if directory:
            what = repr((open(spec, encoding="utf-8").read() if "\n" not in spec else spec,
                         tuple(map(with_contents, flags)), processor, sorted(settings.items()), optimisation))
            base = os.path.join(directory, hashlib.sha256(what.encode()).hexdigest()[:20])
            if os.path.exists(base + ".so"):
                return self.open(base)
            if not os.path.exists(os.path.join(TOOLS, "moa-codegen")):
                raise unittest.SkipTest("this kernel was not carried here")
        else:
            directory = tempfile.mkdtemp(prefix="moa-test-")
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            base = os.path.join(directory, "kernel")
        if "\n" in spec:
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(spec)
            spec = base + ".moa"
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        if processor:
            sets.append(f"--mcpu={processor}")
        level = (f"-O{optimisation}",) if optimisation else ()
        parts = [base + ".o"]
        wanted = ["--emit=llvm", "-o", base + ".ll"] if EMULATE_AMX else ["-o", base + ".o"]
        made = run_tool("moa-codegen", spec, "--target=cpu", *level, *sets, *flags, *wanted, "--header", base + ".h")
        if made.returncode:
            raise RuntimeError(f"moa-codegen {spec}: {made.stderr}")
        if EMULATE_AMX:
            amx.compile_object(base + ".ll", base + ".o")
            parts.append(amx.tiles(directory))
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-shared", "-s", "-O2", "-fPIC", *parts, "-o", base + ".so",
                        LIBOMP, "-lm", f"-Wl,-rpath,{os.path.dirname(LIBOMP)}"],
                       check=True)
        if directory:
            os.remove(base + ".o")
        self.open(base)

    def open(self, base):
        """Reads the header and loads the library."""
        self.read_header(base + ".h")
        self.loaded = ctypes.CDLL(base + ".so")

    def read_header(self, path):
        with open(path, encoding="utf-8") as file:
            self.header = file.read()
        self.name = re.search(r"int32_t (\w+)_prepare\(", self.header).group(1)
        self.parameters = [
            Parameter(*match.groups()) for match in re.finditer(
                r"^ \*\s+(in|out)\s+(\w+) : (\w+)(?:\[(.*)\])?(?: within .*)?$",
                self.header, re.M)]
        self.by_name = {p.name: p for p in self.parameters}

    def ordered(self):
        """Parameters as the entry points take them."""
        arrays = [p for p in self.parameters if not p.is_scalar]
        return ([p for p in arrays if not p.is_output] +
                [p for p in self.parameters if p.is_scalar] +
                [p for p in arrays if p.is_output])

    def arguments(self, values):
        """C arguments from descriptors (or None) and Python scalars by name."""
        result = []
        for parameter in self.ordered():
            value = values[parameter.name]
            if parameter.is_scalar:
                result.append(STORAGE[parameter.kind][3](value))
            else:
                result.append(ctypes.byref(value) if value is not None else None)
        return result

    def entry(self, suffix, result):
        function = getattr(self.loaded, self.name + suffix)
        function.restype = result
        return function

    def workspace_bytes(self, values):
        return self.entry("_workspace", ctypes.c_int64)(*self.arguments(values))

    def check(self, values):
        """The code and the message of NAME_check."""
        text = ctypes.create_string_buffer(512)
        code = self.entry("_check", ctypes.c_int32)(
            *self.arguments(values), text, ctypes.c_size_t(len(text)))
        return code, text.value.decode()

    def launch(self, values, workspace=None, size=None):
        """The code of NAME; the workspace is made when none is given."""
        if workspace is None:
            workspace = aligned(max(self.workspace_bytes(values), 0))
        pointer = ctypes.c_void_p(workspace.ctypes.data if workspace.size else None)
        size = workspace.size if size is None else size
        self.given = workspace, pointer, size
        return self.entry("", ctypes.c_int32)(*self.arguments(values), pointer,
                                              ctypes.c_size_t(size), None)

    def has_shown(self):
        return f" {self.name}_shown(" in self.header

    def shown(self, values, size=None, room=1024):
        """The code and the message of NAME_shown, of a call with the same values."""
        text = ctypes.create_string_buffer(max(room, 1))
        code = self.entry("_shown", ctypes.c_int32)(
            *self.arguments(values), self.given[1], ctypes.c_size_t(self.given[2] if size is None else size), None,
            text if room else None, ctypes.c_size_t(room))
        return code, text.value.decode()

    def bind(self, inputs, output_shapes, arrange=np.asarray):
        """What `launch` takes, and the stored outputs, which start as a pattern of bytes; `arrange`
        puts an array elsewhere in memory, with strides of its own. All arrays stand at protected pages.
        """
        values, outputs = {}, {}
        at_end = next(self.turns)
        for parameter in self.parameters:
            name, kind = parameter.name, parameter.kind
            if parameter.is_scalar:
                values[name] = inputs[name]
            elif parameter.is_output:
                array = np.empty(output_shapes[name], STORAGE[kind][0])
                array.reshape(-1).view(np.uint8)[...] = self.fill
                outputs[name] = between_pages(arrange(array), at_end)
                values[name] = describe(outputs[name], kind)
            else:
                values[name] = describe(between_pages(arrange(encode(inputs[name], kind)), at_end), kind)
        return values, outputs

    def run(self, inputs, output_shapes, arrange=np.asarray):
        """Values in, stored outputs out, as `bind` makes them."""
        values, outputs = self.bind(inputs, output_shapes, arrange)
        self.code, self.told = self.launch(values), None
        if self.has_shown() and self.code in (OK, NOT_SHOWN):
            code, self.told = self.shown(values)
            # NAME has compared the same bounds.
            if code != self.code:
                raise RuntimeError(f"{self.name} returned {self.code}, and {self.name}_shown {code}: {self.told}")
        if self.code not in self.accepted:
            raise RuntimeError(f"{self.name} returned {self.code}: {self.told or self.check(values)}")
        return outputs

    def results(self, inputs, output_shapes):
        """Like run, with the outputs decoded to float64."""
        stored = self.run(inputs, output_shapes)
        return {name: decode(array, self.by_name[name].kind)
                for name, array in stored.items()}

    def seen_by_kernel(self, inputs):
        """The inputs after rounding to their element types, in float64."""
        return {name: decode(encode(value, self.by_name[name].kind),
                             self.by_name[name].kind)
                if not self.by_name[name].is_scalar else
                rounded_scalar(value, self.by_name[name].kind)
                for name, value in inputs.items()}


if EMIT:
    import emitting
    emitting.install(Kernel)


def make_kernel(spec, **settings):
    """A kernel for the target of the environment: this CPU, or a GPU by MOA_TEST_TARGET=cuda or ptx.

    MOA_TEST_TARGET=device runs the device level on this CPU, in the interpreter.

    MOA_TEST_TARGET=record runs on this CPU and writes the CUDA C++ of the kernel into
    MOA_GPU_KERNELS, for a machine that has a GPU but not the compiler.
    """
    if TARGET == "cpu":
        return Kernel(spec, **settings)
    if TARGET == "device":
        import device
        return device.Kernel(spec, **settings)
    import gpu
    if TARGET == "record":
        flags = settings.pop("flags", ())
        base = os.path.join(os.environ["MOA_GPU_KERNELS"], gpu.file_name(spec, settings, flags=flags))
        gpu.emit(spec, base, settings, flags=flags)
        return Kernel(spec, flags=flags, **settings)
    return (gpu.PtxKernel if TARGET == "ptx" else gpu.Kernel)(spec, **settings)


def rounded_scalar(value, kind):
    if kind == "f32":
        return float(np.float32(value))
    if kind == "bf16":
        return float(from_bf16(to_bf16(np.array([value])))[0])
    return value


def relative_error(result, expected):
    """Relative L2 error; infinities and NaN must stand at the same places."""
    result = np.asarray(result, np.float64)
    finite = np.isfinite(expected)
    if result.shape != expected.shape:
        return np.inf
    if not np.array_equal(result[~finite], expected[~finite], equal_nan=True):
        return np.inf
    if not np.isfinite(result[finite]).all():
        return np.inf
    # Squares of the largest numbers must not overflow here.
    unit = np.abs(expected[finite]).max(initial=0.0) or 1.0
    difference = np.linalg.norm((result[finite] - expected[finite]) / unit)
    norm = np.linalg.norm(expected[finite] / unit)
    return difference / norm if norm else (np.inf if difference else 0.0)


class DirectoryTest(unittest.TestCase):
    """Tests with files of their own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)


class KernelTest(unittest.TestCase):
    """Comparisons with a message that names what was compared."""

    worst = {}

    def assert_close(self, results, expected, bound, what):
        for name, reference in expected.items():
            error = relative_error(results[name], reference)
            key = (type(self).__name__, f"{bound:g}")
            self.worst[key] = max(self.worst.get(key, 0.0), error)
            self.assertLessEqual(error, bound, f"{what}: relative L2 error of {name}")

    def assert_same_bits(self, first, second, what):
        for name in first:
            self.assertEqual(first[name].tobytes(), second[name].tobytes(),
                             f"{what}: bits of {name}")

    @classmethod
    def tearDownClass(cls):
        for (_, bound), error in sorted(cls.worst.items()):
            print(f"largest relative L2 error {error:.2e} (bound {bound})")


def main():
    unittest.main(verbosity=2)
