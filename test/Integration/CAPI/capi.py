# RUN: %python %s
"""The C interface of the compiler: programs in C99 against libmoa-c.so of the build, its symbols,
its header alone, and the program of docs/Calling.md."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["MOA_SOURCE_ROOT"])
BINARY = pathlib.Path(os.environ["MOA_BINARY_ROOT"])
INPUTS = pathlib.Path(__file__).parent / "Inputs"
HEADER = (SOURCE / "include" / "moa-c" / "moa.h").read_text(encoding="utf-8")
DECLARATIONS = (SOURCE / "include" / "moa" / "DLPack.h").read_text(encoding="utf-8")
LIBRARY = BINARY / "lib" / "libmoa-c.so"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", SOURCE / "include")
C = (os.environ.get("CC", "cc"), "-std=c99", *WARNINGS)
CXX = (os.environ.get("CXX", "c++"), "-std=c++17", *WARNINGS)


def run(*command):
    """Standard output of a command, which has to succeed."""
    done = subprocess.run([str(word) for word in command], encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def codes(text):
    """The names of codes of calls with their values, as a header declares them."""
    block = re.search(r"#define MOA_CODES\n(.*?)#endif", text, re.S)[1]
    return dict(re.findall(r"(MOA_\w+) = (\d+)", block))


class CInterface(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.work = pathlib.Path(self.directory.name)

    def build(self, compiler, source):
        program = self.work / "program"
        run(*compiler, source, "-o", program, "-L", LIBRARY.parent, "-lmoa-c",
            f"-Wl,-rpath,{LIBRARY.parent}", "-lm")
        return program

    def write(self, name, text):
        (self.work / name).write_text(text, encoding="utf-8")
        return self.work / name

    def test_client(self):
        dumped = self.work / "dumped"
        dumped.mkdir()
        printed = run(self.build(C, INPUTS / "client.c"), SOURCE / "examples" / "sdpa.moa", dumped)
        self.assertEqual(printed, "0 checks failed\n")
        self.assertTrue(list(dumped.iterdir()))

    def test_null(self):
        self.assertEqual(run(self.build(C, INPUTS / "null.c")), "0 checks failed\n")

    def test_memory(self):
        self.assertEqual(run(self.build(CXX, INPUTS / "memory.cpp")), "0 checks failed\n")

    def test_threads(self):
        self.assertEqual(run(self.build((*C, "-pthread"), INPUTS / "threads.c")), "0 checks failed\n")

    def test_checks_can_fail(self):
        failing = self.write("failing.c", '#include "check.h"\n'
                             'int main(void) {\n'
                             '  CHECK(moa_api_version() == MOA_API_VERSION + 1);\n'
                             '  CHECK_TEXT(moa_version_text(), "");\n'
                             '  CHECK_PART(moa_version_text(), "x");\n'
                             '  return failures - 3;\n'
                             '}\n')
        self.assertEqual(run(self.build((*C, "-I", INPUTS, "-Wno-unused-function"), failing)).count(": failed: "), 3)

    def test_page(self):
        """The program of docs/Calling.md."""
        page = (SOURCE / "docs" / "Calling.md").read_text(encoding="utf-8")
        blocks = [block for block in re.findall(r"^```c\n(.*?)^```", page, re.M | re.S) if "moa-c/moa.h" in block]
        self.assertEqual(len(blocks), 1)
        self.assertEqual(run(self.build(C, self.write("page.c", blocks[0]))), "0.0900 0.2447 0.6652\n")

    def test_header_alone(self):
        text = '#include "moa-c/moa.h"\n#include "moa-c/moa.h"\n'
        run(*C, "-fsyntax-only", self.write("alone.c", text + "int unused;\n"))
        run(*CXX, "-fsyntax-only", self.write("alone.cpp", text))

    def test_header_with_an_emitted_one(self):
        emitted = self.work / "sdpa.h"
        run("moa-codegen", SOURCE / "examples" / "sdpa.moa", "-o", self.work / "sdpa.o", "--header", emitted)
        lines = ['#include "moa-c/moa.h"\n', '#include "sdpa.h"\n']
        for name, order in (("first.c", lines), ("last.c", lines[::-1])):
            run(*C, "-I", self.work, "-fsyntax-only", self.write(name, "".join(order) + "int unused;\n"))
        self.assertEqual(codes(DECLARATIONS), codes(emitted.read_text(encoding="utf-8")))
        self.assertEqual(len(codes(DECLARATIONS)), 16)

    def test_symbols(self):
        """The library exports the functions of the header alone."""
        declared = set(re.findall(r"^MOA_API [^;(]*?(\w+)\(", HEADER, re.M))
        self.assertEqual(len(declared), HEADER.count("\nMOA_API "))
        self.assertGreater(len(declared), 60)
        table = run("llvm-nm", "-D", "--defined-only", "-j", LIBRARY)
        self.assertEqual(set(table.split()), declared)

    def test_every_function_is_called(self):
        text = "".join((INPUTS / name).read_text(encoding="utf-8") for name in ("client.c", "null.c"))
        declared = re.findall(r"^MOA_API [^;(]*?(\w+)\(", HEADER, re.M)
        self.assertEqual([name for name in declared if f"{name}(" not in text], [])


if __name__ == "__main__":
    unittest.main()
