"""With MOA_TEST_EMIT tests make every kernel that they ask for, and run none.

A kernel gives zeros, and an assertion holds whatever it is given, so that a test goes on to its end. What a
test asks of the tools is skipped, as it is where the kernels will run.
"""
import contextlib
import unittest

import numpy as np


def run(self, inputs, output_shapes, arrange=np.asarray):
    _, outputs = self.bind(inputs, output_shapes, arrange)
    for array in outputs.values():
        array[...] = 0
    self.code, self.told = self.accepted[0], ""
    return outputs


def nothing(*arguments, **named):
    return None


def raises(self, *arguments, **named):
    return contextlib.suppress(Exception)


def install(kernel):
    """Replaces entry points by functions that do nothing, and assertions by ones that always hold."""
    kernel.fill = 0
    kernel.run = run
    kernel.launch = lambda self, values, workspace=None, size=None: self.accepted[0]
    kernel.workspace_bytes = lambda self, values: 64
    kernel.check = kernel.shown = lambda self, *arguments, **named: (self.accepted[0], "")
    for name in dir(unittest.TestCase):
        if name.startswith("assert"):
            setattr(unittest.TestCase, name, raises if "Raises" in name or "Warns" in name else nothing)
    for name in dir(np.testing):
        if name.startswith("assert_"):
            setattr(np.testing, name, nothing)
