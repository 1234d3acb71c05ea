"""Writes the CUDA C++ of every form the integration tests run, for a machine
that has a GPU but not the compiler:

    python3 test/Integration/Support/emit.py DIRECTORY [FORM ...]

needs MOA_SOURCE_ROOT, MOA_BINARY_ROOT and test/Integration/Support on PYTHONPATH;
test/Integration/GPU/run.sh sets them.
"""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "CPU"), os.path.join(HERE, "..", "Support")]

import forms  # noqa: E402
import gpu  # noqa: E402
import moa_testing as mt  # noqa: E402


def form_classes(names):
    folder = os.path.join(HERE, "..", "CPU")
    for file in sorted(os.listdir(folder)):
        name = os.path.splitext(file)[0]
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            if not file.endswith(".py") or "forms.FormTest" not in text.read():
                continue
        if names and name not in names:
            continue
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and issubclass(value, forms.FormTest) and value.spec:
                yield value


def main(directory, *names):
    os.makedirs(directory, exist_ok=True)
    count = 0
    for form in form_classes(names):
        for kind in form.kinds:
            for width in form.widths:
                settings = dict(T=kind, D=width, **form.settings)
                base = os.path.join(directory, gpu.file_name(form.spec, settings))
                gpu.emit(mt.example(form.spec), base, settings)
                count += 1
    # What unseen_values.py needs beside the forms'.
    import unseen_values
    for kind in ("f32", "bf16", "f64"):
        settings = {"T": kind, "D": 64}
        base = os.path.join(directory, gpu.file_name(unseen_values.TOP_LEFT, settings))
        gpu.emit(unseen_values.TOP_LEFT, base, settings)
        count += 1
    print(f"{count} kernels in {directory}")


if __name__ == "__main__":
    main(*sys.argv[1:])
