# REQUIRES: x86_64
# RUN: %python %s
"""Kernels for CPUs through the run-time library: NumPy's results, the bits of the entry points, and their codes and texts."""
import ctypes
import json
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import runtime_library as rt

# More integers and floats than registers take, of every type.
MANY = """kernel many[N](x : f32[N], a1 : f32, i1 : i8, a2 : f64, i2 : u8, a3 : bf16, i3 : i16, a4 : f16, i4 : u16, a5 : f32, i5 : i32,
    a6 : f32, i6 : u32, a7 : f32, i7 : i64, a8 : f64, k : bool, a9 : f64, a10 : f32)
    -> (y : f64[N], z : i64[N])
{
  y = [i < N] select(k, x[i], 0.0) + a1 + a2 * 2 + a3 * 4 + a4 * 8 + a5 * 16 + a6 * 32 + a7 * 64 + a8 * 128 + a9 * 256 + a10 * 512
  z = [i < N] i1 + i2 * 3 + i3 * 5 + i4 * 7 + i5 * 11 + i6 * 13 + i7 * 17 + i
}
"""
WITHIN = """kernel close[N, M](q : f32[N, 16], k : f32[M, 16], v : f32[M, 16], scale : f32) -> y : f32[N, 16] within 1e-3
{ y = softmax((q +.* transpose(k)) * scale) +.* v }
"""


class Cpu(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="moa-test-")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def make(self, name, spec, **settings):
        """The function, and the same kernel called as C does."""
        base = os.path.join(self.directory.name, name)
        if "\n" in spec:
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(spec)
            spec = base + ".moa"
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        made = mt.tool("moa-codegen", spec, *sets, "-o", base + ".o", "--header", base + ".h", "--manifest", base + ".json")
        self.assertEqual(made.returncode, 0, made.stderr)
        subprocess.run([os.environ["CC"], "-shared", base + ".o", "-o", base + ".so", mt.LIBOMP, "-lm",
                        f"-Wl,-rpath,{os.path.dirname(mt.LIBOMP)}"], check=True)
        with open(base + ".json", encoding="utf-8") as file:
            text = file.read()
        found = rt.Function(rt.Program(text, library=base + ".so"), json.loads(text)["programs"][0])
        direct = mt.Kernel.__new__(mt.Kernel)
        direct.open(base)
        return found, direct

    def test_attention(self):
        found, direct = self.make("gqa", mt.example("gqa_causal"), T="f32", D=64)
        B, H, G, N, M, D = 2, 4, 2, 33, 40, 64
        generator = np.random.default_rng(1)
        given = {"Q": generator.standard_normal((B, H, N, D)), "K": generator.standard_normal((B, G, M, D)),
                 "V": generator.standard_normal((B, G, M, D)), "scale": 0.125}
        values, outputs = direct.bind(given, {"O": (B, H, N, D), "lse": (B, H, N)})
        self.assertEqual(found.prepare(0), (0, ""))
        self.assertEqual(found.shapes(values), (0, "", {"O": (B, H, N, D), "lse": (B, H, N)}))
        self.assertEqual(found.check(values), (0, ""))
        self.assertEqual(found.workspace_bytes(values), direct.workspace_bytes(values))
        self.assertEqual(found.launch(values), 0)
        Q, K, V = (np.float32(given[name]).astype(np.float64) for name in "QKV")
        K, V = np.repeat(K, H // G, 1), np.repeat(V, H // G, 1)
        scores = Q @ K.transpose(0, 1, 3, 2) * 0.125
        scores[..., np.arange(M)[None, :] > np.arange(N)[:, None] + (M - N)] = -np.inf
        largest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - largest)
        total = weights.sum(-1, keepdims=True)
        for name, wanted in (("O", weights / total @ V), ("lse", (largest + np.log(total))[..., 0])):
            error = np.linalg.norm(outputs[name] - wanted) / np.linalg.norm(wanted)
            self.assertLess(error, 1e-5, name)
        kept = {name: array.copy() for name, array in outputs.items()}
        again = direct.run(given, {"O": (B, H, N, D), "lse": (B, H, N)})
        for name in kept:
            self.assertTrue((kept[name] == again[name]).all())

    def test_refusals(self):
        found, direct = self.make("refusals", mt.example("gqa_causal"), T="f32", D=64)
        shapes = {"Q": (1, 2, 3, 64), "K": (1, 2, 5, 64), "V": (1, 2, 5, 64)}

        def values(**fields):
            given = {name: np.zeros(shape) for name, shape in shapes.items()} | {"scale": 1.0}
            made, keep = direct.bind(given, {"O": shapes["Q"], "lse": (1, 2, 3)})
            made["keep"] = keep
            for field, value in fields.items():
                setattr(made["K"], field, value)
            return made

        cases = [values(), {**values(), "O": None}] + [values(**fields) for fields in (
            {"ndim": 3}, {"code": 1}, {"shape": None}, {"shape": mt.int64s((1, 3, 5, 64))}, {"data": None}, {"device_type": 2},
            {"byte_offset": 1}, {"strides": mt.int64s((640, 320, -64, 1))})]
        codes = set()
        for case in cases:
            expected = direct.check(case)
            self.assertEqual(found.check(case), expected)
            codes.add(expected[0])
            self.assertEqual(found.workspace_bytes(case), direct.workspace_bytes(case))
            if expected[0]:
                self.assertEqual(found.call(case, None, 0), expected)
        self.assertGreater(len(codes), 7)
        size = found.workspace_bytes(values())
        if size:
            self.assertEqual(found.call(values(), None, 0)[0], mt.WORKSPACE)

    def test_scalars(self):
        found, direct = self.make("many", MANY)
        given = {f"a{k}": 0.1 * k for k in range(1, 11)} | {"i1": -7, "i2": 200, "i3": -30000, "i4": 60000, "i5": -2**31, "i6": 2**32 - 1,
                                                            "i7": 2**40, "k": True, "x": np.arange(5)}
        shapes = {"y": (5,), "z": (5,)}
        expected = direct.run(given, shapes)
        values, outputs = direct.bind(given, shapes)
        self.assertEqual(found.check(values), (0, ""))
        self.assertEqual(found.launch(values), 0)
        for name in outputs:
            self.assertTrue((outputs[name] == expected[name]).all(), name)
        self.assertEqual(found.check({**values, "i2": 256}), (mt.DTYPE, "i2: expects u8, but got 256"))

    def test_shown(self):
        found, direct = self.make("close", WITHIN)
        self.assertTrue(found.has_shown() and direct.has_shown())
        for scale, expected in ((0.25, mt.OK), (1e4, mt.NOT_SHOWN)):
            given = {name: np.sin(np.arange(160).reshape(10, 16)) for name in "qkv"} | {"scale": scale}
            values, _ = direct.bind(given, {"y": (10, 16)})
            self.assertEqual(found.launch(values), expected)
            self.assertEqual(direct.launch(values), expected)
            told = found.shown(values)
            self.assertEqual(told, direct.shown(values))
            self.assertEqual((told[0], bool(told[1])), (expected, bool(expected)))

    def test_header(self):
        """The header is C99 and C++, and may stand before or after that of a kernel; its codes are the same."""
        self.make("header", WITHIN)
        include = os.path.join(mt.SOURCE_ROOT, "include")
        both = ('#include "moa-c/runtime.h"\n', f'#include "{self.directory.name}/header.h"\n')
        for compiler, language in (("CC", ["-xc", "-std=c99"]), ("CXX", ["-xc++", "-std=c++11"])):
            for lines in (both, both[::-1], both[:1] * 2):
                done = subprocess.run([os.environ[compiler], *language, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                       "-I" + include, "-"], input="".join(lines), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual(done.returncode, 0, done.stdout)
        texts = []
        for path in (os.path.join(include, "moa", "DLPack.h"), os.path.join(self.directory.name, "header.h")):
            with open(path, encoding="utf-8") as file:
                texts.append(re.search(r"#define MOA_CODES\n(.*?)#endif", file.read(), re.S)[1])
        self.assertEqual(*texts)

    def test_what_cannot_be_loaded(self):
        found, _ = self.make("close", WITHIN)
        text = json.dumps({"version": 3, "target": "cpu", "programs": [found.facts]})
        path = os.path.join(self.directory.name, "close.so")
        for manifest, library, said in ((text, path + ".none", "cannot open shared object file"),
                                        (text.replace('"name": "close"', '"name": "far"'), path, "has no function 'far' of the manifest"),
                                        (text.replace('"cpu"', '"sm_90a"'), path, "load it with moa_program_load_gpu")):
            with self.assertRaises(rt.Refused) as caught:
                rt.Program(manifest, library=library)
            self.assertEqual(caught.exception.args[0], rt.PROGRAM)
            self.assertIn(said, caught.exception.args[1])

    def test_functions_of_the_process(self):
        found, direct = self.make("close", WITHIN)
        text = json.dumps({"version": 3, "target": "cpu", "programs": [found.facts]})
        library, asked = ctypes.CDLL(os.path.join(self.directory.name, "close.so")), []

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        def find(context, name):
            asked.append((context, name.decode()))
            return ctypes.cast(getattr(library, name.decode()), ctypes.c_void_p).value if context == 7 else None

        runtime, message = rt.load(rt.library_path()), ctypes.create_string_buffer(1024)

        def load(finder, context):
            handle = ctypes.c_void_p()
            code = runtime.moa_program_load_functions(finder, ctypes.c_void_p(context), text.encode(), ctypes.byref(handle),
                                                      message, ctypes.c_size_t(len(message)))
            return code, handle

        code, handle = load(find, 7)
        self.assertEqual((code, message.value), (0, b""))
        self.assertEqual(sorted(name for _, name in asked),
                         ["close", "close_check", "close_prepare", "close_shown", "close_workspace"])
        function = ctypes.c_void_p(runtime.moa_program_find(handle, b"close"))
        self.assertEqual(runtime.moa_function_has_shown(function), 1)
        self.assertEqual(runtime.moa_function_prepare(function, 0, message, ctypes.c_size_t(len(message))), 0)
        runtime.moa_program_destroy(handle)
        code, handle = load(find, 8)
        self.assertEqual((code, message.value, handle.value),
                         (rt.PROGRAM, b"the code has no function 'close' of the manifest", None))
        code, handle = load(None, 7)
        self.assertEqual((code, message.value), (rt.PROGRAM, b"the finder of the functions is NULL"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
