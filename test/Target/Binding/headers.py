# REQUIRES: tvm-ffi
# RUN: %venv_python %s
"""The declarations of emitted text are those of tvm-ffi's headers.

The text compiles by itself and after these headers, as C and as C++, with every warning an error.
"""
import os
import re
import subprocess
import tempfile
import unittest

import tvm_ffi.libinfo

import moa_testing as mt

CALLS = os.path.join(mt.SOURCE_ROOT, "lib/Target/BindingCalls.c")
CODES = "enum { MOA_OK, MOA_DTYPE = 3, MOA_DEVICE = 8, MOA_OVERLAP = 10, MOA_WORKSPACE, MOA_OVERFLOW, MOA_NOT_SHOWN = 15 };\n"
ORIGINAL = "#include <tvm/ffi/c_api.h>\n#include <tvm/ffi/extra/c_env_api.h>\n"
LAYOUT = """
static_assert(offsetof(TVMFFIAny, type_index) == 0 && offsetof(TVMFFIAny, zero_padding) == 4, "");
static_assert(offsetof(TVMFFIAny, v_int64) == 8 && offsetof(TVMFFIAny, v_float64) == 8, "");
static_assert(offsetof(TVMFFIAny, v_ptr) == 8 && offsetof(TVMFFIObject, type_index) == 8, "");
static_assert(offsetof(TVMFFIByteArray, data) == 0 && offsetof(TVMFFIByteArray, size) == 8, "");
"""


class Headers(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(CALLS, encoding="utf-8") as file:
            self.calls = file.read()

    def compile(self, text):
        for compiler, suffix, standard in ((os.environ["CC"], ".c", "c11"), (os.environ["CXX"], ".cpp", "c++17")):
            path = os.path.join(self.directory, "text" + suffix)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([compiler, "-std=" + standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                   *("-isystem" + folder for folder in tvm_ffi.libinfo.include_paths()), path],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_alone(self):
        self.compile("#include <dlpack/dlpack.h>\n" + CODES + self.calls + LAYOUT)

    def test_after_the_headers(self):
        numbers = re.findall(r"^  (kTVMFFI\w+) = (\d+),?$", self.calls, re.M)
        self.assertGreater(len(numbers), 10)
        asserts = "".join(f'static_assert({name} == {number}, "");\n' for name, number in numbers)
        self.compile(ORIGINAL + CODES + self.calls + LAYOUT + asserts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
