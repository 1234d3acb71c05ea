# RUN: %python %s
"""A C program and a C++ program that use an emitted object by its header alone."""
import os
import subprocess
import tempfile
import unittest

import moa_testing as mt

PROGRAM = r"""
#include "norm.h"
#include "norm.h" /* twice on purpose */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  float x[2][3] = {{3, 4, 0}, {-6, 0, 8}}, result[2] = {0, 0};
  int64_t inputShape[2] = {2, 3}, outputShape[1] = {2};
  DLTensor in = {0}, out = {0};
  in.data = x;
  in.device.device_type = 1;
  in.ndim = 2;
  in.dtype.code = 2, in.dtype.bits = 32, in.dtype.lanes = 1;
  in.shape = inputShape;
  out = in;
  out.data = result;
  out.ndim = 1;
  out.shape = outputShape;

  char message[200];
  int64_t bytes = scaled_norm_workspace(&in, &out);
  if (bytes < 0 || scaled_norm_prepare(0) != MOA_OK ||
      scaled_norm_check(&in, &out, message, sizeof message) != MOA_OK)
    return 1;
  void *workspace = bytes ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;
  if (scaled_norm(&in, &out, workspace, (size_t)bytes, NULL) != MOA_OK)
    return 2;
  if (fabsf(result[0] - 5) > 1e-5f || fabsf(result[1] - 10) > 1e-5f)
    return 3;
  out.ndim = 2;
  if (scaled_norm_check(&in, &out, message, sizeof message) != MOA_RANK)
    return 4;
  puts(message);
  free(workspace);
  return 0;
}
"""


class CProgram(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        made = mt.tool("moa-codegen", mt.example("scaled_norm"), "--set", "T=f32", "-o",
                       cls.path("norm.o"), "--header", cls.path("norm.h"))
        if made.returncode:
            raise RuntimeError(made.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory.name, name)

    def build_and_run(self, compiler, standard, name):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        program = self.path(name + ".exe")
        subprocess.run([compiler, standard, "-Wall", "-Wextra", "-Werror", "-pedantic",
                        "-Wno-missing-field-initializers", self.path(name),
                        self.path("norm.o"), mt.LIBOMP, "-lm", "-o", program,
                        f"-Wl,-rpath,{os.path.dirname(mt.LIBOMP)}"], check=True)
        done = subprocess.run([program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("norm", done.stdout)

    def test_c(self):
        self.build_and_run(os.environ.get("CC", "cc"), "-std=c11", "main.c")

    def test_cxx(self):
        self.build_and_run(os.environ.get("CXX", "c++"), "-std=c++17", "main.cpp")

    def test_nothing_else_is_visible(self):
        """The object defines its four entry points and no other symbol."""
        listed = subprocess.run(["nm", "-g", "--defined-only", self.path("norm.o")],
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        names = {line.split()[-1] for line in listed.splitlines()}
        self.assertEqual(names, {"scaled_norm", "scaled_norm_workspace",
                                 "scaled_norm_check", "scaled_norm_prepare"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
