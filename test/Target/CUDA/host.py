# REQUIRES: nvcc
# RUN: %python %s
"""What the checks of the emitted host code say of wrong arguments.

Nothing is launched and no GPU is needed: the library is loaded beside a
cudaGetDevice that answers 0, and only the checks run.
"""
import ctypes as C
import json
import os
import subprocess
import sys
import tempfile
import unittest

import moa_testing as mt
import shown_cases


class Device(C.Structure):
    _fields_ = [("type", C.c_int32), ("id", C.c_int32)]


class DataType(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", Device), ("ndim", C.c_int32),
                ("dtype", DataType), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


def tensor(shape, code=4, bits=16, strides=None, data=0x10000, device=(2, 0), lanes=1,
           has_shape=True, offset=0):
    def array(values):
        return C.cast((C.c_int64 * len(values))(*values), C.POINTER(C.c_int64)) if values else None
    return Tensor(data, Device(*device), len(shape), DataType(code, bits, lanes),
                  array(shape) if has_shape else None, array(strides), offset)


Q, K, V, O, LSE = 0x10000, 0x1000000, 0x2000000, 0x3000000, 0x4000000
ROWS = [2, 8, 64, 128]
KEYS = [2, 2, 96, 128]


def q(shape=ROWS, **more):
    return {"Q": tensor(shape, **more)}


def o(shape=ROWS, data=O, **more):
    return {"O": tensor(shape, data=data, **more)}


def lse(shape=ROWS[:3], code=2, bits=32, data=LSE, **more):
    return {"lse": tensor(shape, code, bits, data=data, **more)}


def keys(shape):
    return {"K": tensor(shape, data=K), "V": tensor(shape, data=V)}


HUGE = 2**62
# (arguments in place of right ones, code, message)
CASES = [
    ({}, 0, ""),
    ({"Q": None}, 1, "Q: the descriptor is NULL"),
    ({"lse": None}, 1, "lse: the descriptor is NULL"),
    (q([2, 8, 64]), 2, "Q: expects bf16[B, H, N, 128], rank 4, but got rank 3"),
    (q(code=2), 3, "Q: expects bf16[B, H, N, 128], but got DLPack type code 2 of 16 bits, 1 lanes"),
    (q(lanes=2), 3, "Q: expects bf16[B, H, N, 128], but got DLPack type code 4 of 16 bits, 2 lanes"),
    (q(has_shape=False), 1, "Q: the shape is NULL"),
    (q([2, -8, 64, 128]), 4, "Q: extent -8 on axis 1 is negative"),
    (keys([2, 3, 96, 128]), 5,
     "requires H % G == 0, but the left side is 2 and the right side 0"),
    (keys([2, 0, 96, 128]), 5, "H % G == 0 divides by zero"),
    ({"K": tensor([3, 2, 96, 128])}, 4,
     "K: expects bf16[B, G, M, 128], so B = 2 on axis 0, but got 3"),
    ({"V": tensor([2, 2, 95, 128])}, 4,
     "V: expects bf16[B, G, M, 128], so M = 96 on axis 2, but got 95"),
    (q([2, 8, 64, 127]), 4, "Q: expects bf16[B, H, N, 128], so 128 = 128 on axis 3, but got 127"),
    (lse([2, 8, 63]), 4, "lse: expects f32[B, H, N], so N = 64 on axis 2, but got 63"),
    (q([HUGE, 8, 64, 128]) | keys([HUGE, 2, 96, 128]) | o([HUGE, 8, 64, 128]) |
     lse([HUGE, 8, 64]), 12, "Q: the array exceeds 64 bits"),
    (q(strides=[65536, 8192, 128, -1]), 6, "Q: stride -1 on axis 3 is negative"),
    (q(data=None), 9, "Q: data is NULL, but the array is not empty"),
    (q(device=(1, 0)), 8,
     "Q: expects memory of a CUDA device (type 2), but got type 1"),
    (q(device=(2, 3)), 8, "Q: is on device 3, but device 0 is current"),
    (q(device=(13, 3)), 0, ""),
    (q(data=0x10001), 7, "Q: address 0x10001 is not a multiple of the element size 2"),
    (q(offset=2), 7, "Q: address 0x10002 is not a multiple of 16"),
    (q(strides=[65536, 8192, 130, 1]), 6,
     "Q: stride 130 on axis 2 is not a positive multiple of 16 bytes"),
    (q(strides=[65536, 8192, 256, 2]), 6,
     "Q: expects adjacent elements on axis 3, but got stride 2"),
    (q(strides=[65536, 8192, 128, 0]), 6,
     "Q: expects adjacent elements on axis 3, but got stride 0"),
    (o(strides=[65536, 8192, 64, 1]), 6,
     "O: stride 64 on axis 2 makes elements of the output overlap"),
    (o(strides=[0, 0, 128, 1]), 6,
     "O: stride 0 on axis 0 makes elements of the output overlap"),
    (o(data=Q), 10, "output O (262144 bytes at 0x10000) overlaps Q (262144 bytes at 0x10000)"),
    (lse(data=O + 64), 10,
     "output lse (4096 bytes at 0x3000040) overlaps O (262144 bytes at 0x3000000)"),
    (q([2, 8, 0, 128]) | o([2, 8, 0, 128]) | lse([2, 8, 0]), 0, ""),
]


def check(path):
    """In a process of its own, beside the other cudaGetDevice."""
    library = C.CDLL(path)
    library.gqa_causal_workspace.restype = C.c_int64
    for case, (changes, code, message) in enumerate(CASES):
        right = q() | keys(KEYS) | o() | lse()
        given = {name: C.byref(t) if t is not None else None
                 for name, t in (right | changes).items()}
        inputs = [given["Q"], given["K"], given["V"], C.c_float(1), given["O"], given["lse"]]
        for size in (256, 12):
            text = C.create_string_buffer(b"?" * 300)
            got = library.gqa_causal_check(*inputs, text, C.c_size_t(size))
            assert (got, text.value.decode()) == (code, message[:size - 1]), (case, got, text.value)
        for size in (0, 64):
            got = library.gqa_causal_check(*inputs, None, C.c_size_t(size))
            assert got == code, (case, got)
        got = library.gqa_causal_workspace(*inputs)
        assert got == -code, (case, got)
        if code:
            got = library.gqa_causal(*inputs, None, C.c_size_t(0), None)
            assert got == code, (case, got)
    print(len(CASES), "cases")


# Copies from the memory of the host in place of the device's.
CUDA = """#include <string.h>
int copies, refuses, launches, failing_launch = -1, maps, refused_map = -1, has_context = 1, attributes, refused_attribute = -1;
int cudaLaunchKernelExC(const void *config, const void *kernel, void **arguments) {
  return launches++ == failing_launch ? 700 : 0;
}
int cudaPeekAtLastError(void) { return 700; } // an error of another call, which is not this one's
int cudaFuncSetAttribute(const void *kernel, int attribute, int value) { return attributes++ == refused_attribute; }
static int encode(void *map, int type, unsigned rank, void *base, const void *extents, const void *strides,
                  const void *box, const void *steps, int a, int b, int c, int d) {
  if (!has_context || maps == refused_map) return has_context ? 1 : 201;
  ++maps;
  return 0;
}
int cudaFree(void *place) { has_context = 1; return place != 0; }
int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags,
                                     int *result) {
  *found = strcmp(name, "cuTensorMapEncodeTiled") ? 0 : (void *)encode;
  return result ? *result = 0 : 0;
}
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream) { (void)kind, (void)stream; @COPY@ }
int cudaStreamSynchronize(void *stream) { (void)stream; return 0; }
""".replace("@COPY@", shown_cases.COPY)


def build(base):
    """The library of BASE.cu, and what stands for CUDA."""
    with open(base + ".c", "w", encoding="utf-8") as file:
        file.write(CUDA)
    subprocess.run(["cc", "-shared", "-fPIC", base + ".c", "-o", base + "-device.so"], check=True, timeout=60)
    built = subprocess.run(["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "shared", "-Werror", "all-warnings",
                            "-Xcompiler", "-fPIC", "-shared", base + ".cu", "-o", base + ".so"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return built


def run(*words, device):
    return subprocess.run([sys.executable, __file__, *words], env=os.environ | {"LD_PRELOAD": device},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def refuse(path):
    """In a process of its own: what is refused of any launch, before the first one."""
    library = C.CDLL(path)
    stubs = C.CDLL(None)

    def number(name):
        return C.c_int.in_dll(stubs, name)

    B, H, N = 2, 4, 64
    wide = {name: [B, H, N, 128] for name in ("Q", "K", "V", "O", "dO", "dQ", "dK", "dV")}
    arrays = {name: tensor(shape, data=0x1000000 * (1 + k)) for k, (name, shape) in enumerate(wide.items())}
    arrays["lse"] = tensor([B, H, N], 2, 32, data=0x9000000)

    def call(suffix, *last, **changes):
        given = {**arrays, **changes}
        before = [C.byref(given[name]) for name in ("Q", "K", "V", "O", "dO", "lse")]
        after = [C.byref(given[name]) for name in ("dQ", "dK", "dV")]
        number("launches").value = number("maps").value = number("attributes").value = 0
        text = C.create_string_buffer(b"?" * 200)
        last = (text, C.c_size_t(200)) if suffix else (C.c_void_p(0x20000000), C.c_size_t(1 << 30), None)
        code = getattr(library, "backward" + suffix)(*before, C.c_float(1), *after, *last)
        return code, text.value.decode() if suffix else number("launches").value

    assert call("") == (0, 3), call("")
    maps, attributes = number("maps").value, number("attributes").value
    assert maps == 10 and attributes == 2, (maps, attributes)
    for k in range(maps):
        number("refused_map").value = k
        assert call("") == (14, 0), (k, call(""))
        code, message = call("_check")
        assert code == 14 and message.endswith(": no tiles of this array"), (k, code, message)
    number("refused_map").value = -1
    for k in range(attributes):
        number("refused_attribute").value = k
        assert call("") == (14, 0), (k, call(""))
    number("refused_attribute").value = -1
    # The thread has made no call of CUDA yet.
    number("has_context").value = 0
    assert call("") == (0, 3) and number("has_context").value == 1
    # The deltas of the workspace would overwrite dQ.
    assert call("", dQ=tensor(wide["dQ"], data=0x20000100)) == (10, 0)
    # The grid of the last launch alone is too large: 2^16 tiles of keys for 2^15 heads.
    many = {name: tensor([1, 1 << 15, 16, 128], data=(1 << 40) + (k << 30)) for k, name in enumerate(("Q", "O", "dO", "dQ"))}
    many |= {name: tensor([1, 1 << 15, 1 << 23, 128], data=1 << 48 + k) for k, name in enumerate(("K", "V", "dK", "dV"))}
    many["lse"] = tensor([1, 1 << 15, 16], 2, 32, data=1 << 41)
    assert call("", **many) == (12, 0), call("", **many)
    assert call("_check", **many) == (12, "a grid has more than 2^31 - 1 blocks"), call("_check", **many)
    for k in range(3):
        number("failing_launch").value = k
        assert call("") == (14, k + 1), (k, call(""))
    print("refused")


class Host(unittest.TestCase):

    def called(self, directory, spec, how):
        """The output of this file, run with the word `how` and the library of a specification."""
        base = os.path.join(directory, "kernel")
        made = mt.tool("moa-codegen", spec, "--target=cuda", "-o", base + ".cu")
        self.assertEqual(made.returncode, 0, made.stderr)
        built = build(base)
        self.assertEqual(built.returncode, 0, built.stdout)
        done = run(how, base + ".so", device=base + "-device.so")
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_a_check_shows_nothing(self):
        """NAME_check and NAME_workspace of a result whose tolerance no bound shows return 0; NAME returns 15."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            spec = os.path.join(directory, "never.moa")
            with open(spec, "w", encoding="utf-8") as file:
                file.write("kernel never[N](is_known : f32[N]) -> y : f32[N] within 1e-3 relative { y = is_known * 2 }\n")
            self.assertEqual(self.called(directory, spec, "--never"), "0 0 15 1\n")

    def test_nothing_is_launched(self):
        """If anything is refused, nothing has been written: all checks come before the first launch."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            self.assertEqual(self.called(directory, mt.example("backward"), "--refuse"), "refused\n")

    def test_shown(self):
        """What stands in the workspace is compared with tolerances."""
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, "shown")
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(shown_cases.SPEC)
            for target in ("cuda", "ptx"):  # the latter for its manifest
                made = mt.tool("moa-codegen", base + ".moa", "--target=" + target, "-o", f"{base}.{target[:2]}")
                self.assertEqual(made.returncode, 0, made.stderr)
            built = build(base)
            self.assertEqual(built.returncode, 0, built.stdout)
            done = run("--shown", base + ".so", base + ".json", device=base + "-device.so")
            self.assertEqual((done.returncode, done.stdout), (0, "checked\n"), done.stdout)

    def test_refusals(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            output = self.called(directory, mt.example("gqa_causal"), "--check")
            self.assertEqual(output, f"{len(CASES)} cases\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    elif sys.argv[1:2] == ["--never"]:
        library = C.CDLL(sys.argv[2])
        library.never_workspace.restype = C.c_int64
        arrays = [C.byref(tensor([3], 2, 32, data=data)) for data in (0x10000, 0x20000)]
        print(library.never_check(*arrays, None, C.c_size_t(0)), library.never_workspace(*arrays),
              library.never(*arrays, None, C.c_size_t(0), None), C.c_int.in_dll(C.CDLL(None), "launches").value)
    elif sys.argv[1:2] == ["--refuse"]:
        refuse(sys.argv[2])
    elif sys.argv[1:2] == ["--shown"]:
        with open(sys.argv[3], encoding="utf-8") as file:
            shown_cases.check(unittest.TestCase(), sys.argv[2], json.load(file)["programs"][0], C.CDLL(None))
        print("checked")
    else:
        unittest.main(verbosity=2)
