# REQUIRES: ptxas
# RUN: %python %s
"""The run-time library does what emitted launchers do: beside one stand-in for the driver, both launch the same kernels with the
same bytes, and refuse the same arguments with the same codes and texts.
"""
import ctypes
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import numpy as np

import moa_testing as mt
import ptx_equal
import runtime_library as rt
import shown_cases

TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("ptxas"))))
TARGETS = os.path.join(mt.SOURCE_ROOT, "test", "Target")
MIXED = """kernel mixed[N](x : f32[N], a : bf16, b : f16, flag : bool, k : i8, d : f64, h : u16, w : u32, l : i64, s : i16)
    -> y : f32[N]
{
  y = [i < N] select(flag, x[i] * a + b, x[i] + k) + d + h + w + l + s
}
"""
TWO = "kernel two[N, M](x : f32[N], y : f32[M]) -> (a : f32, b : f32[M]) { a = +/ x  b = 3.0 * y }\n"
TOLERANT = """kernel tolerant[N, M](x : f32[N, 16], y : f32[M, 16], v : f32[M, 16]) -> z : f32[N, 16] within 5e-2 relative sampled
{ z = softmax(x +.* transpose(y)) +.* v }
"""
NEVER = "kernel never[N](x : f32[N]) -> y : f32[N] within 1e-3 relative { y = x * 2 }\n"
SUMS = """kernel sums[N, M](x : f32[2*N + 1, M], y : f32[N], z : bool[N, M]) -> (a : f32[N], b : f32[N + M])
    require N >= 2 and N * M != 6 and M >= 1 and (N + 3) % M < 100
{ a = [i < N] x[2*i, 0] + y[i]  b = [i < N + M] y[i % N] }
"""
PLANS = "--within", "O=6e-2,relative,sampled", "--spend=256"
EXAMPLES = ("alibi", "backward", "causal", "cross_mask", "gqa_causal", "layernorm_product", "paper", "scaled_norm", "sdpa",
            "sigmoid_attention", "sliding_window", "softcap")
# name, specification, flags, settings
CASES = [(name, mt.example(name), (), {}) for name in EXAMPLES] + [
    ("sdpa-f32", mt.example("sdpa"), (), {"T": "f32"}),
    ("gqa-f16", mt.example("gqa_causal"), (), {"T": "f16", "D": 64}),
    ("spend", mt.example("sdpa"), PLANS, {}),
    ("pilot", mt.example("sdpa"), (*PLANS, "--pilot"), {}),
    ("decisions", mt.example("sdpa"), (*PLANS, "--decisions"), {}),
    ("low-rank", mt.example("sdpa"), ("--within", "O=6e-2,relative,sampled", "--low-rank=512"), {"T": "f32"}),
    ("shown", ptx_equal.SHOWN % "1e-2", (), {}),
    ("scalars", ptx_equal.SCALARS, (), {}),
    ("mixed", MIXED, (), {}),
    ("two", TWO, (), {}),
    ("tolerant", TOLERANT, ("--spend=300",), {}),
    ("never", NEVER, (), {}),
    ("bounds", shown_cases.SPEC, (), {}),
    ("sums", SUMS, (), {}),
]
for name, flags in (("beside", ()), ("blocks", ("--spend",)), ("early", ("--spend=256",)), ("stages", ("--low-rank=4096",)),
                    ("workspace", ("--spend=256",))):
    with open(os.path.join(TARGETS, name + ".moa"), encoding="utf-8") as file:
        # The last part of a file that is split.
        CASES.append((name, "\n" + re.split("//--- .*", file.read())[-1], flags, {}))
KINDS = {"pointer": 8, "workspace": 8, "symbol": 8, "tensor_map": 128}
SIZES = ptx_equal.SIZES + [{"N": 2100, "M": 2100, "B": 1, "H": 2, "G": 1}, {"N": 5, "M": 0}, {"N": 0, "M": 0}]


class Driver:
    """The stand-in, shared by all launchers and the library."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "libcuda.so.1")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "driver.c")
        subprocess.run([os.environ["CC"], "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", source, "-Wl,-soname,libcuda.so.1",
                        "-o", self.path], check=True)
        self.loaded = ctypes.CDLL(self.path)
        os.environ["MOA_LIBCUDA"] = self.path

    def number(self, name):
        return ctypes.c_int.in_dll(self.loaded, name)

    def text(self, name):
        return ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(self.loaded, name))).decode()

    def recorded(self, function):
        """The result of a function, and what was launched."""
        self.loaded.clear_record()
        return function(), self.text("record")

    def know(self, program):
        for launch in program["launches"]:
            sizes = [KINDS.get(p["kind"]) or mt.STORAGE[p["type"]][2] // 8 for p in launch["parameters"]]
            self.loaded.set_kernel(launch["kernel"].encode(), len(sizes), (ctypes.c_int * max(len(sizes), 1))(*sizes))


class Pair:
    """A kernel in a launcher and in the library."""

    def __init__(self, directory, driver, name, spec, flags=(), settings=None):
        base = self.base = os.path.join(directory, name)
        if "\n" in spec:
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(spec)
            spec = base + ".moa"
        sets = [w for k, v in (settings or {}).items() for w in ("--set", f"{k}={v}")]
        made = mt.tool("moa-codegen", spec, *sets, *flags, "--target=ptx", "-o", base + ".ptx")
        if made.returncode:
            raise RuntimeError(made.stderr)
        subprocess.run([os.environ["CC"], "-w", "-shared", "-fPIC", "-I" + TOOLKIT + "/include", base + ".c", driver.path,
                        "-o", base + ".so"], check=True)
        self.found = rt.functions(base)[0]
        self.facts = self.found.facts
        self.emitted = mt.Kernel.__new__(mt.Kernel)
        self.emitted.loaded = ctypes.CDLL(base + ".so")
        self.emitted.name, self.emitted.parameters = self.facts["name"], self.found.parameters

    def symbols(self, sizes):
        symbols = {name: sizes.get(name, 3) for name in self.facts["symbols"]}
        try:
            return symbols if all(eval(c["text"].replace("/", "//"), {}, dict(symbols)) for c in self.facts["constraints"]) else None
        except ZeroDivisionError:
            return None

    def values(self, symbols, wide=False, number=0.1):
        """Descriptors of memory of a device; `wide` ones have strides beyond their extents."""
        values = {}
        for k, p in enumerate(self.found.parameters):
            if p.is_scalar:
                values[p.name] = number if p.kind in ("f64", "f32", "bf16", "f16") else 1 if p.kind == "bool" else 7
                continue
            shape = [ptx_equal.value_of(e, symbols) for e in p.extents]
            tensor = mt.DLTensor()
            tensor.device_type, tensor.data, tensor.ndim = 2, 0x7000_0000_0000 + (k << 36), len(shape)
            _, tensor.code, tensor.bits, _ = mt.STORAGE[p.kind]
            tensor.lanes, tensor.shape = 1, mt.int64s(shape)
            if wide:
                strides, step = [], 1
                for extent in reversed(shape):
                    # Axes of one index or none keep any stride.
                    strides.append(step if extent > 1 else (-7, 0, 12345)[len(strides) % 3])
                    step = (step * max(extent, 1) + 15) // 16 * 16 + 32
                tensor.strides = mt.int64s(strides[::-1])
            if 0 in shape:
                tensor.data = None
            values[p.name] = tensor
        return values


class Runtime(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        cls.driver = Driver(cls.directory.name)
        cls.pairs = {}

    @classmethod
    def tearDownClass(cls):
        cls.pairs.clear()
        cls.directory.cleanup()

    def pair(self, name):
        if name not in self.pairs:
            case = next(c for c in CASES if c[0] == name)
            self.pairs[name] = Pair(self.directory.name, self.driver, *case)
        # Kernels of several programs have one name.
        self.driver.know(self.pairs[name].facts)
        return self.pairs[name]

    def compare(self, pair, values, what, fill=0):
        """Both do the same, with a workspace of these arguments; returns the code."""
        emitted, found = pair.emitted, pair.found
        expected = emitted.check(values)
        self.assertEqual(found.check(values), expected, what)
        for room in (0, 1, 12):
            self.assertEqual(found.check(values, room), (expected[0], expected[1][:max(room - 1, 0)] if room else "?"), what)
        size = emitted.workspace_bytes(values)
        self.assertEqual(found.workspace_bytes(values), size, what)
        space = mt.aligned(max(size, 0), fill) if size < 1 << 24 else np.empty(64, np.uint8)
        pointer = ctypes.c_void_p(space.ctypes.data // 64 * 64 + 64 if size >= 1 << 24 else space.ctypes.data if size > 0 else None)
        size = max(size, 0)
        stream = ctypes.c_void_p(0x1234)
        arguments = emitted.arguments(values)
        code, launched = self.driver.recorded(
            lambda: emitted.entry("", ctypes.c_int32)(*arguments, pointer, ctypes.c_size_t(size), stream))
        (again, said), same = self.driver.recorded(lambda: found.call(values, pointer, size, 0x1234))
        self.assertEqual((again, same), (code, launched), (what, said))
        self.assertEqual(said == "", code in (mt.OK, mt.NOT_SHOWN), said)
        if expected[0]:
            self.assertEqual((code, said, launched), (*expected, ""), what)
        if not found.has_shown() or size >= 1 << 24:
            return code
        text = ctypes.create_string_buffer(1024)
        code_shown, launched = self.driver.recorded(
            lambda: emitted.entry("_shown", ctypes.c_int32)(*arguments, pointer, ctypes.c_size_t(size), stream, text, ctypes.c_size_t(1024)))
        found.given = space, pointer, size
        answer, same = self.driver.recorded(lambda: found.shown(values))
        self.assertEqual(answer, (code_shown, text.value.decode()), what)
        self.assertEqual(same.replace("stream (nil)", "stream 0x1234"), launched, what)
        return code

    def test_launches(self):
        """Kernels, grids, blocks, shared memory, streams, attributes and every byte of their parameters are the same."""
        launched = 0
        for name, *_ in CASES:
            pair = self.pair(name)
            for sizes in SIZES:
                symbols = pair.symbols(sizes)
                for wide, fill in ((False, 0), (True, 0xFF)) if symbols else ():
                    with self.subTest(case=name, sizes=sizes, wide=wide):
                        values = pair.values(symbols, wide)
                        code = self.compare(pair, values, (name, sizes, wide), fill)
                        # Tiles take no strides that are not multiples of 16 bytes.
                        self.assertIn(code, (mt.OK, mt.NOT_SHOWN))
                        launched += self.driver.number("launches").value > 0
                        self.check_shapes(pair, values)
        self.assertGreater(launched, 200)

    def check_shapes(self, pair, values):
        inputs = {p.name: values[p.name] for p in pair.found.arrays if not p.is_output}
        code, said, shapes = pair.found.shapes(inputs)
        outputs = {p.name for p in pair.found.arrays if p.is_output}
        only = [b["symbol"] for b in pair.facts["bindings"] if any(b["value"].startswith(name + ".") for name in outputs)]
        if code and only:
            self.assertRegex(said, "does not follow from the shapes of the inputs$")
            return
        self.assertEqual((code, said), (0, ""))
        for name in outputs:
            self.assertEqual(shapes[name], tuple(values[name].shape[:values[name].ndim]), name)

    def test_refusals(self):
        """Each field of each descriptor is wrong in turn."""
        refused = set()
        for name in ("gqa_causal", "backward", "cross_mask", "layernorm_product", "mixed", "two", "sums", "workspace", "shown"):
            pair = self.pair(name)
            symbols = pair.symbols(ptx_equal.SIZES[1])

            def change(which, **fields):
                values = pair.values(symbols, wide=True)
                for field, value in fields.items():
                    setattr(values[which], field, value)
                return values

            cases = []
            for p in pair.found.arrays:
                tensor = pair.values(symbols)[p.name]
                shape = list(tensor.shape[:tensor.ndim])
                cases += [{**pair.values(symbols), p.name: None}]
                fields = [{"ndim": len(shape) + 1}, {"code": 0, "bits": 32}, {"code": 2, "bits": 64}, {"bits": 4}, {"lanes": 2},
                          {"code": 1}, {"device_type": 1}, {"device_id": 1}, {"device_type": 13, "device_id": 5}, {"data": None},
                          {"byte_offset": 1}, {"byte_offset": 2}, {"byte_offset": 8}, {"strides": None}]
                if shape:
                    fields.append({"shape": None})
                for axis in range(len(shape)):
                    for extent in (-1, 0, 1, shape[axis] + 1, 1 << 31, 1 << 40, 1 << 62):
                        fields.append({"shape": mt.int64s(shape[:axis] + [extent] + shape[axis + 1:])})
                    strides = list(pair.values(symbols, wide=True)[p.name].strides[:len(shape)])
                    for stride in (-1, 0, 1, 2, strides[axis] + 1, 1 << 45, 1 << 62):
                        fields.append({"strides": mt.int64s(strides[:axis] + [stride] + strides[axis + 1:])})
                for other in pair.found.arrays:
                    if other.name != p.name:
                        fields.append({"data": pair.values(symbols)[other.name].data + 64})
                cases += [change(p.name, **f) for f in fields]
            for axis in ptx_equal.SIZES[1]:
                for extent in (1 << 15, 1 << 22, 1 << 31, 1 << 45, 1 << 62):
                    changed = {**symbols, axis: extent}
                    if axis in symbols:
                        cases.append(pair.values(changed))
            for k, values in enumerate(cases):
                with self.subTest(case=name, number=k):
                    refused.add(self.compare(pair, values, (name, k)))
        self.assertLessEqual(set(range(13)) - {mt.WORKSPACE}, refused)

    def test_workspace(self):
        for name in ("backward", "workspace", "shown", "decisions"):
            pair = self.pair(name)
            values = pair.values(pair.symbols(SIZES[3]))
            size = pair.emitted.workspace_bytes(values)
            self.assertGreater(size, 0)
            output = next(p for p in pair.found.arrays if p.is_output)
            for pointer, room in itertools.product((None, 0x10000, 0x10020, values[output.name].data), (0, size - 1, size, 2 * size)):
                arguments = pair.emitted.arguments(values), ctypes.c_void_p(pointer), ctypes.c_size_t(room)
                code, launched = self.driver.recorded(
                    lambda: pair.emitted.entry("", ctypes.c_int32)(*arguments[0], *arguments[1:], None))
                (again, said), same = self.driver.recorded(lambda: pair.found.call(values, *arguments[1:2], room))
                self.assertEqual((again, same.replace("(nil)", "")), (code, launched.replace("(nil)", "")), said)
                if room < size:
                    self.assertEqual((code, said), (mt.WORKSPACE, f"the workspace has {room} bytes, but {size} are needed"))
                elif pointer != 0x10000:
                    self.assertRegex(said, "is NULL or not a multiple of 64$|^the workspace overlaps ")

    def test_scalars(self):
        pair = self.pair("mixed")
        symbols = {"N": 5}
        for number in (0.1, -3.3e-6, 1e-7, 65519.0, 65520.0, -1e9, 5.9e-8, 1.00048828125, 0.0, float("inf"), float("nan")):
            self.compare(pair, pair.values(symbols, number=number), number)
        for name, low, high in (("k", -128, 127), ("h", 0, 65535), ("w", 0, 2**32 - 1), ("s", -2**15, 2**15 - 1), ("l", -2**63, 2**63 - 1)):
            for value in (low, high, 0, 1):
                self.compare(pair, {**pair.values(symbols), name: value}, (name, value))
            if name != "l":
                kind = next(p.kind for p in pair.found.scalars if p.name == name)
                for value in (low - 1, high + 1):
                    self.assertEqual(pair.found.check({**pair.values(symbols), name: value}),
                                     (mt.DTYPE, f"{name}: expects {kind}, but got {value}"))

    def test_shown(self):
        """What stands in the workspace is compared with tolerances, as by launchers."""
        pair = self.pair("bounds")
        shown_cases.check(self, None, pair.facts, self.driver.loaded, pair.found)

    def test_never(self):
        """Without NAME_shown, what no input changes is told all the same."""
        pair = self.pair("never")
        self.assertFalse(pair.found.has_shown())
        values = pair.values({"N": 5})
        self.assertEqual(pair.found.launch(values), mt.NOT_SHOWN)
        code, said = pair.found.shown(values)
        self.assertEqual((code, said[:49]), (mt.NOT_SHOWN, "y is not shown to be within 1e-3 relative: no bou"))
        values = pair.values({"N": 0})
        self.assertEqual((pair.found.launch(values), pair.found.shown(values)), (mt.OK, (mt.OK, "")))

    def test_relied_on(self):
        """A launch does not overlap where one that a later one counts on has no blocks."""
        with open(os.path.join(TARGETS, "skip.mlir"), encoding="utf-8") as file:
            text = file.read()
        for old, new in (('symbols = ["B", "N"]', 'symbols = ["B", "N", "M"]'), ('arg_names = ["x"]', 'arg_names = ["x", "z"]'),
                         ("%x: !moa.array<[B], f32>,", "%x: !moa.array<[B], f32>, %z: !moa.array<[M], f32>,"),
                         ('@roles blocks "B*N"', '@roles blocks "B*M"')):
            text = text.replace(old, new)
        source, made = (os.path.join(self.directory.name, name) for name in ("skip.mlir", "made.mlir"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = mt.tool("moa-opt", source, "-device-skip-unchosen", "-device-verify", "-o", made)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        pair = Pair(self.directory.name, self.driver, "relied", made)
        self.driver.know(pair.facts)
        self.assertTrue(any("relied_on" in launch for launch in pair.facts["launches"]))
        for m in (0, 1, 7):
            self.assertEqual(self.compare(pair, pair.values({"B": 3, "N": 5, "M": m}), m), mt.OK)

    def fresh(self, pair):
        """The kernel in a copy of the library, which has not seen the driver."""
        path = os.path.join(self.directory.name, f"copy-{len(os.listdir(self.directory.name))}.so")
        shutil.copy(rt.library_path(), path)
        return rt.functions(pair.base, path)[0]

    def test_driver_refuses(self):
        """Each call of CUDA is refused in turn: the code fits, and nothing is launched after it."""
        for name in ("backward", "shown"):
            pair = self.pair(name)
            values = pair.values(pair.symbols(SIZES[1]))
            size = pair.emitted.workspace_bytes(values)
            space = mt.aligned(size, 0)
            pointer = ctypes.c_void_p(space.ctypes.data)
            for job in ("call", "prepare") + (("shown",) if pair.found.has_shown() else ()):
                names = []
                for k in itertools.count():
                    function = self.fresh(pair)
                    function.given = space, pointer, size
                    self.driver.number("refused_call").value = k
                    run = {"call": lambda: function.call(values, pointer, size), "prepare": lambda: function.prepare(0),
                           "shown": lambda: function.shown(values)}[job]
                    (code, said), launched = self.driver.recorded(run)
                    self.driver.number("refused_call").value = -1
                    refused = self.driver.text("refused_name")
                    if not refused:
                        self.assertIn(code, (mt.OK, mt.NOT_SHOWN))
                        break
                    names.append(refused)
                    is_device = refused.startswith(("cuInit", "cuCtx", "cuDe", "cuDriver"))
                    self.assertEqual(code, mt.DEVICE if is_device else mt.LAUNCH, (refused, said))
                    self.assertTrue(said, refused)
                    self.assertEqual(self.driver.number("after_refusal").value, 0)
                    if refused != "cuLaunchKernelEx" and job == "call":
                        self.assertEqual(launched, "")
                    # Later the same function works.
                    code, said = run()
                    self.assertIn(code, (mt.OK, mt.NOT_SHOWN), (refused, said))
                self.assertGreater(len(set(names)), 6)
                expected = {"call": "cuLaunchKernelEx", "prepare": "cuKernelGetFunction", "shown": "cuStreamSynchronize"}[job]
                self.assertIn(expected, names)

    def test_devices(self):
        """What the machine lacks is told with the remedy."""
        pair = self.pair("two")
        values = pair.values({"N": 5, "M": 7})
        for name, value, text in (
                ("version", 12040, "the CUDA driver is one of CUDA 12.4, but these kernels need one of CUDA 12.7 or later; "
                                   "update the NVIDIA driver"),
                ("capability", 80, "device 0 has compute capability 8.0, but these kernels are for sm_90a; use a device of compute "
                                   "capability 9.0"),
                ("capability", 100, "device 0 has compute capability 10.0, but these kernels are for sm_90a; use a device of compute "
                                    "capability 9.0")):
            before = self.driver.number(name).value
            self.driver.number(name).value = value
            function = self.fresh(pair)
            self.assertEqual(function.check(values), (mt.DEVICE, text))
            self.assertEqual(function.prepare(0), (mt.DEVICE, text))
            self.assertEqual(function.launch(values), mt.DEVICE)
            self.driver.number(name).value = before
        os.environ["MOA_LIBCUDA"] = os.path.join(self.directory.name, "none.so")
        code, text = self.fresh(pair).check(values)
        os.environ["MOA_LIBCUDA"] = self.driver.path
        self.assertEqual(code, mt.DEVICE)
        self.assertRegex(text, r"^there is no CUDA driver \(.*none\.so.*\); install the NVIDIA driver, which has libcuda\.so\.1$")
        self.assertEqual(self.fresh(pair).prepare(2),
                         (mt.DEVICE, "there is no CUDA device 2; nvidia-smi lists the devices of this machine"))
        # Without a current context that of device 0 is used.
        self.driver.number("has_context").value = 0
        function = self.fresh(pair)
        self.assertEqual(function.launch(values), mt.OK)
        self.assertEqual(self.driver.number("has_context").value, 1)

    def test_prepared(self):
        """After `prepare` a call only asks for the device, encodes and launches, so it may be captured; code is loaded once."""
        pair = self.pair("backward")
        values = pair.values(pair.symbols(SIZES[1]))
        size = pair.emitted.workspace_bytes(values)
        space = mt.aligned(size, 0)
        function = self.fresh(pair)
        opened = self.driver.number("opened").value
        self.assertEqual(function.prepare(0), (mt.OK, ""))
        loads = self.driver.number("loads").value
        self.driver.loaded.clear_record()
        self.assertEqual(function.call(values, ctypes.c_void_p(space.ctypes.data), size), (mt.OK, ""))
        made = self.driver.number("launches").value + self.driver.number("maps").value
        self.assertEqual(self.driver.number("calls").value, made + 2)
        self.assertEqual(self.driver.number("loads").value, loads)
        self.assertEqual(self.driver.number("opened").value, opened + 1)
        del function
        self.assertEqual(self.driver.number("opened").value, opened)

    def test_threads(self):
        pair = self.pair("two")
        function, codes = self.fresh(pair), []
        loads = self.driver.number("loads").value

        def check():
            for k in range(200):
                values = pair.values({"N": k, "M": 7})
                codes.append(function.check(values)[0])
                codes.append(function.prepare(0)[0])

        threads = [threading.Thread(target=check) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(codes), {mt.OK})
        self.assertEqual(self.driver.number("loads").value, loads + 1)

    def test_manifests(self):
        """A manifest that cannot be used is refused, whatever it has."""
        pair = self.pair("backward")
        with open(pair.base + ".json", encoding="utf-8") as file:
            text = file.read()
        image = b".visible .entry"

        def refused(manifest, **more):
            with self.assertRaises(rt.Refused) as caught:
                rt.Program(manifest if isinstance(manifest, str) else json.dumps(manifest), image, **more)
            code, message = caught.exception.args
            self.assertEqual(code, rt.PROGRAM)
            return message

        self.assertEqual(refused({**json.loads(text), "version": 2}),
                         "the manifest has version 2, but this library reads version 3; use moa-codegen and libmoa-runtime of one release")
        self.assertEqual(refused({**json.loads(text), "target": "cpu"}), "the manifest is for cpu; load it with moa_program_load_cpu")
        self.assertRegex(refused(text[:1000]), "^the manifest cannot be read: ")
        self.assertRegex(refused(text.replace('"Q.shape[0]"', '"Q.shape[9]"')), r"which has the unknown symbol 'Q\.shape\[9\]'$")
        self.assertRegex(refused(text.replace('"Q.shape[0]"', '"(Q.shape[0]"')), "which is no expression$")
        # Each value in turn is of another type or is left out.
        count = 0

        def spoil(value, whole):
            nonlocal count
            entries = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
            for key, item in entries:
                for wrong in (None, -3, "?", [], {}, 1 << 70, 0.5):
                    value[key] = wrong
                    made = json.dumps(whole)
                    try:
                        rt.Program(made, image)
                    except rt.Refused as error:
                        self.assertEqual(error.args[0], rt.PROGRAM)
                        self.assertTrue(error.args[1])
                        count += 1
                value[key] = item
                if isinstance(item, (dict, list)):
                    spoil(item, whole)

        small = json.loads(text)
        small["programs"][0]["launches"] = small["programs"][0]["launches"][:1]
        spoil(small, small)
        self.assertGreater(count, 500)

    def test_parameters(self):
        """The library tells what the manifest has."""
        for name in ("backward", "mixed"):
            function = self.pair(name).found
            count = function.runtime.moa_function_parameters(function.handle)
            self.assertEqual(count, len(function.facts["arguments"]))
            for k, argument in enumerate(function.facts["arguments"]):
                facts = rt.ParameterFacts()
                self.assertEqual(function.runtime.moa_function_parameter(function.handle, ctypes.c_size_t(k), ctypes.byref(facts)), 0)
                self.assertEqual((facts.name.decode(), facts.type.decode(), facts.shape.decode(), facts.role, facts.rank),
                                 (argument["name"], argument["type"], ", ".join(argument["shape"]),
                                  ("input", "scalar", "output").index(argument["role"]), len(argument["shape"])))
                self.assertEqual((facts.code, facts.bits, facts.lanes), (*mt.STORAGE[argument["type"]][1:3], 1))
            self.assertEqual(function.runtime.moa_function_parameter(function.handle, ctypes.c_size_t(count), ctypes.byref(facts)), mt.RANK)
            program = function.program.handle
            self.assertEqual(function.runtime.moa_program_count(program), 1)
            self.assertEqual(function.runtime.moa_program_name(program, ctypes.c_size_t(0)).decode(), function.name)
            self.assertIsNone(function.runtime.moa_program_name(program, ctypes.c_size_t(1)))
            self.assertIsNone(function.runtime.moa_program_find(program, b"none"))

    def test_several_kernels(self):
        """The kernels of one specification are functions of one program, whose code is loaded once."""
        base = os.path.join(self.directory.name, "several")
        with open(base + ".moa", "w", encoding="utf-8") as file:
            file.write(TWO + "kernel three[N](x : f32[N]) -> a : f32[N] { a = 2.0 * x }\n")
        made = mt.tool("moa-codegen", base + ".moa", "--target=ptx", "-o", base + ".ptx")
        self.assertEqual(made.returncode, 0, made.stderr)
        loads = self.driver.number("loads").value
        two, three = rt.functions(base)
        # A copy of the manifest of any target is the same.
        made = mt.tool("moa-codegen", base + ".moa", "--target=cubin", "--manifest", base + ".again")
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(base + ".again", encoding="utf-8") as again, open(base + ".json", encoding="utf-8") as first:
            self.assertEqual(again.read(), first.read())
        for function in (two, three):
            self.driver.know(function.facts)
            pair = Pair.__new__(Pair)
            pair.found = function
            values = pair.values({"N": 5, "M": 6})
            code, launched = self.driver.recorded(lambda: function.launch(values))
            self.assertEqual(code, mt.OK)
            self.assertIn(function.name, launched)
        self.assertEqual((two.name, three.name), ("two", "three"))
        program = three.program
        self.assertEqual(program.runtime.moa_program_count(program.handle), 2)

    def test_calls_allocate_nothing(self):
        """A program that counts what is allocated calls a kernel of several launches."""
        pair = self.pair("backward")
        path = os.path.join(self.directory.name, "count")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "count.c")
        subprocess.run([os.environ["CC"], "-std=c11", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(mt.SOURCE_ROOT, "include"), source,
                        "-o", path, rt.library_path(), "-Wl,-rpath," + os.path.dirname(rt.library_path()), "-ldl"], check=True)
        done = subprocess.run([path, pair.base + ".ptx", pair.base + ".json", self.driver.path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "0 allocations in 100 calls\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
