# REQUIRES: nvcc
# RUN: %python %s
"""Whatever the user calls arrays, sizes and kernels, the text compiles.

The names are those that the emitted file, CUDA's headers or the entry points use
themselves, beside words that are short and common.
"""
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt

# `@` stands for the name.
FORMS = {
    "array": "kernel KERNEL[I](@ : f32[I]) -> out : f32[I] { out = exp(@) / 2.0 }",
    "output": "kernel KERNEL[I](arg : f32[I]) -> @ : f32[I] { @ = exp(arg) }",
    "scalar": "kernel KERNEL[I](arg : f32[I], @ : f32) -> out : f32[I] { out = exp(arg) * @ }",
    "symbol": "kernel KERNEL[@, J](arg : f32[@, J]) -> out : f32[@] { out = max/ arg }",
    "tile": "kernel KERNEL[I, J; D = 64](Q : bf16[I, D], K : bf16[J, D], V : bf16[J, D], @ : f32)"
            " -> out : bf16[I, D] { out = softmax((Q +.* transpose(K)) * @) +.* V }",
}
ENTRY = ["c", "m", "n", "code", "call", "message", "stream", "bytes", "workspace",
         "arrays", "blocks", "lhs", "rhs", "device", "list"]
TEXT = ["t", "b", "x", "threadIdx", "blockIdx", "warp", "lane", "shared", "warpgroup",
        "row_base", "expf", "fmaf", "max_nan", "floor_div", "wait", "copy"]
MACROS = ["NULL", "NAN", "INFINITY", "INT64_MIN", "MOA_OK", "EOF"]
# What only some files declare: helpers by need, and macros.
HELPERS = ["reduce_own", "reduce_rows", "copy_tile_4d", "store_tile_4d", "start_products",
           "add_products_by_columns", "opaque", "__fadd_rn", "linux", "unix", "ULLONG_MAX",
           "__CUDA_ARCH__", "CUDA_VERSION"]
TYPES = ["int64_t", "Array", "Message", "Checked", "DLTensor", "half", "float4"]


class Names(unittest.TestCase):

    def compiles(self, text):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, "names")
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(text)
            made = mt.tool("moa-codegen", base + ".moa", "--target=cuda", "-o", base + ".cu")
            self.assertEqual(made.returncode, 0, made.stderr)
            done = subprocess.run(
                ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-Werror",
                 "all-warnings", "-c", base + ".cu", "-o", base + ".o"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_names_of_values(self):
        for form, pattern in FORMS.items():
            names = (ENTRY[:4] + TEXT[:8] + HELPERS if form == "tile" else
                     ENTRY + TEXT + MACROS + TYPES + HELPERS)
            with self.subTest(form=form):
                self.compiles("".join(
                    pattern.replace("KERNEL", f"k{k}").replace("@", name) + "\n"
                    for k, name in enumerate(names)))

    def test_numbers(self):
        """States called after monoids, and names that end in an underscore, get numbers without
        two underscores in a row, which C++ keeps."""
        texts = [mt.tool("moa-codegen", mt.example(name), "--set", "T=bf16", "--target=cuda", "-o", "-").stdout
                 for name in ("cross_mask", "causal")]
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            path = os.path.join(directory, "names.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write("kernel k[N](new : f32[N], x : f32[N]) -> (new_ : f32[N], y : f32[N]) "
                           "{ new_ = new + x\n y = new - x }\n")
            texts.append(mt.tool("moa-codegen", path, "--target=cuda", "-o", "-").stdout)
        for text in texts:
            code = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
            self.assertEqual(re.findall(r"\b[A-Za-z]\w*__\w*", code), [])
        self.assertRegex(texts[2], r"\bnew_2\b")

    def test_names_of_kernels(self):
        """Names of the file's own are refused, with the remedy."""
        for name in ("Array", "Message", "Checked", "open_array", "floor_div", "wait", "double", "main",
                     "cuInit", "linux", "WGMMA_64_BF16", "half", "half2", "nv_bfloat16", "dim3", "float4", "ulonglong2"):
            with self.subTest(kernel=name), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "name.moa")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(FORMS["array"].replace("@", "arg").replace("KERNEL", name))
                made = mt.tool("moa-codegen", path, "--target=cuda", "-o", path + ".cu")
                self.assertNotEqual(made.returncode, 0)
                self.assertIn(f"a kernel cannot be called '{name}'", made.stderr)
                self.assertIn("rename it", made.stderr)
                self.assertFalse(os.path.exists(path + ".cu"))

    def test_comments(self):
        self.compiles("// A line that ends with a backslash \\\n"
                      "// and */ /* one with a trigraph ?" "?/\n" +
                      FORMS["array"].replace("@", "arg").replace("KERNEL", "f") + "\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
