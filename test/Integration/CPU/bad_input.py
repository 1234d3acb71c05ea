# RUN: %python %s
"""Bad input: one clear error, a non-zero exit code, no file left behind."""
import os
import struct
import tempfile
import unittest

import numpy as np

import moa_testing as mt

SPEC = mt.example("sdpa")
N, M, D = 5, 7, 64


class BadInput(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        rng = np.random.default_rng(0)
        self.save("q", rng.standard_normal((1, 2, N, D)).astype(np.float32))
        self.save("k", rng.standard_normal((1, 2, M, D)).astype(np.float32))
        self.save("v", rng.standard_normal((1, 2, M, D)).astype(np.float32))

    def path(self, name):
        return os.path.join(self.directory, name)

    def save(self, name, array):
        np.save(self.path(name + ".npy"), array)

    def write(self, name, data):
        mode = "wb" if isinstance(data, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(data)
        return self.path(name)

    def run_with(self, spec=SPEC, output="o.npy", extra=(), kind="f32", **inputs):
        words = {"Q": self.path("q.npy"), "K": self.path("k.npy"),
                 "V": self.path("v.npy"), "scale": "0.125", **inputs}
        return mt.tool("moa-run", spec, "--set", f"T={kind}", "--set", f"D={D}",
                       *(f"{k}={v}" for k, v in words.items() if v is not None),
                       "-o", f"O={self.path(output)}", *extra, timeout=120)

    def assert_refused(self, done, *words, output="o.npy"):
        """One error with these words, no signal, no output file."""
        self.assertGreater(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)
        self.assertLess(len(done.stderr), 4000)
        for word in words:
            self.assertIn(word, done.stderr)
        left = [f for f in os.listdir(self.directory) if f.startswith(output)]
        self.assertEqual(left, [])

    def test_good_input_is_accepted(self):
        done = self.run_with()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(np.load(self.path("o.npy")).shape, (1, 2, N, D))

    # Arrays.

    def test_missing_file(self):
        self.assert_refused(self.run_with(K=self.path("none.npy")), "none.npy")

    def test_directory_instead_of_a_file(self):
        self.assert_refused(self.run_with(K=self.directory))

    def test_truncated_file(self):
        with open(self.path("k.npy"), "rb") as file:
            whole = file.read()
        for size in (0, 3, 9, 40, len(whole) - 1):
            with self.subTest(size=size):
                cut = self.write("cut.npy", whole[:size])
                self.assert_refused(self.run_with(K=cut), "cut.npy")

    def test_headers_that_lie(self):
        def npy(header, data=b""):
            text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data
        headers = {
            "huge": "{'descr': '<f4', 'fortran_order': False, 'shape': "
                    "(1, 2, 9223372036854775807, 64), }",
            "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': "
                        "(1, 2, -7, 64), }",
            "object": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "broken": "{'descr': '<f4', 'fortran_order': Fal",
            "empty": "{}",
            "bigendian": "{'descr': '>f4', 'fortran_order': False, 'shape': "
                         "(1, 2, 7, 64), }"}
        for name, header in headers.items():
            with self.subTest(header=name):
                path = self.write(name + ".npy", npy(header, b"\0" * 4096))
                self.assert_refused(self.run_with(K=path), name + ".npy")
        with self.subTest(header="long"):
            path = self.write("long.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{")
            self.assert_refused(self.run_with(K=path), "long.npy")

    def test_wrong_shape(self):
        self.save("short", np.zeros((1, 2, M - 1, D), np.float32))
        self.assert_refused(self.run_with(V=self.path("short.npy")), "V")
        self.save("narrow", np.zeros((1, 2, M, D - 1), np.float32))
        self.assert_refused(self.run_with(K=self.path("narrow.npy")), "K")
        self.save("flat", np.zeros((M, D), np.float32))
        self.assert_refused(self.run_with(K=self.path("flat.npy")), "K")

    def test_fortran_order(self):
        self.save("columns", np.zeros((1, 2, M, D), np.float32, order="F"))
        self.assert_refused(self.run_with(K=self.path("columns.npy")), "Fortran")

    def test_wrong_dtype(self):
        self.save("ints", np.zeros((1, 2, M, D), np.int32))
        self.assert_refused(self.run_with(K=self.path("ints.npy")), "K")
        self.save("complex", np.zeros((1, 2, M, D), np.complex64))
        self.assert_refused(self.run_with(K=self.path("complex.npy")))

    def test_output_that_cannot_be_written(self):
        done = self.run_with(output="nowhere/o.npy")
        self.assert_refused(done, "nowhere")

    # Names.

    def test_names(self):
        self.assert_refused(self.run_with(X=self.path("q.npy")), "X")
        self.assert_refused(self.run_with(K=None), "K")
        self.assert_refused(self.run_with(scale="fast"), "scale")
        self.assert_refused(self.run_with(extra=("--set", "Z=3")), "Z")
        self.assert_refused(self.run_with(kind="f12"), "f12")
        self.assert_refused(self.run_with(extra=("-o", f"P={self.path('p')}")), "P")

    # Specifications.

    def refuse_spec(self, data, *words):
        path = self.write("spec.moa", data)
        self.assert_refused(self.run_with(spec=path), *words)
        done = mt.tool("moa-codegen", path, "--target=cpu", "-o", self.path("o.o"),
                       "--header", self.path("o.h"), timeout=120)
        self.assert_refused(done, *words, output="o.")

    def kernel(self, body):
        return ("kernel k[B, H, N, M; T : float = f32, D = 64](Q : T[B, H, N, D], "
                "K : T[B, H, M, D], V : T[B, H, M, D], scale : f32) -> "
                "(O : T[B, H, N, D])\n{\n  " + body + "\n}\n")

    def test_missing_specification(self):
        self.assert_refused(self.run_with(spec=self.path("none.moa")), "none.moa")

    def test_empty_specification(self):
        self.refuse_spec("")

    def test_unknown_name_has_a_caret(self):
        self.refuse_spec(self.kernel("O = softmax(Q +.* transpose(Zz)) +.* V"),
                         "spec.moa:3:", "Zz", "^")

    def test_shapes_that_disagree(self):
        self.refuse_spec(self.kernel("O = (Q +.* K) * scale"), "spec.moa:3:", "^")

    def test_unclosed_brackets(self):
        self.refuse_spec(self.kernel("O = (Q")[:-3], "spec.moa:")

    def test_not_utf8(self):
        self.refuse_spec(b"kernel k\xff\xfe[N](x : f32[N]) -> (y : f32[N]) { y = x }",
                         "spec.moa")
        self.refuse_spec(self.kernel("// \u00e9").encode("latin-1"), "spec.moa")

    def test_zero_bytes(self):
        self.refuse_spec(b"kernel \0 k", "spec.moa")

    def test_deep_nesting(self):
        for opening, closing in (("(", ")"), ("[", "]"), ("exp(", ")"), ("-", ""),
                                 ("max/ ", "")):
            with self.subTest(opening=opening):
                depth = 200000
                self.refuse_spec(self.kernel(
                    "O = " + opening * depth + "Q" + closing * depth), "spec.moa:3:")

    def test_recursion(self):
        self.refuse_spec("def f(x : [n]) { return g(x) }\n"
                         "def g(x : [n]) { return f(x) }\n"
                         + self.kernel("O = f(Q)"), "spec.moa:")

    def test_output_directory_of_codegen(self):
        done = mt.tool("moa-codegen", SPEC, "--target=cpu", "-o",
                       self.path("nowhere/k.o"))
        self.assert_refused(done, "nowhere")

    def test_unknown_options(self):
        for name in ("moa-codegen", "moa-run", "moa-opt"):
            done = mt.tool(name, SPEC, "--no-such-option")
            self.assertGreater(done.returncode, 0)
            self.assertIn("no-such-option", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
