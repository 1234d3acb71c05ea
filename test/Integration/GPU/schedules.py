# REQUIRES: gpu, nvcc
# RUN: env MOA_TEST_TARGET=cuda %python %s
"""Editing a schedule does not change the result: every schedule within the bound of
its type, and to the bit where only orders, stages or registers differ.

With MOA_TEST_TARGET=record the kernels are only written, into MOA_GPU_KERNELS.
"""
import functools
import json
import os

import numpy as np

import gpu
import moa_testing as mt
import references
import schedule_edits as schedules

# Rows and keys: less than a tile, no multiple of one, several blocks.
SIZES = [(1, 1), (5, 300), (113, 203), (256, 256), (700, 1031)]
EXPECTED = {"sdpa": references.sdpa, "causal": references.causal}


def variants():
    for (example, settings), edits in schedules.CASES.items():
        for name, edit in {"default": {}, **edits}.items():
            yield example, settings, name, edit


def record():
    for example, settings, name, edit in variants():
        values = dict(settings)
        base = os.path.join(os.environ["MOA_GPU_KERNELS"],
                            gpu.file_name(mt.example(example), values, name))
        schedule = schedules.edited(schedules.printed(example, settings), edit)
        gpu.emit(mt.example(example), base, values, json.dumps(schedule))


@functools.lru_cache(maxsize=None)
def kernel(example, settings, name):
    text = None
    if not os.environ.get("MOA_GPU_KERNELS"):
        edit = {"default": {}, **schedules.CASES[example, settings]}[name]
        text = json.dumps(schedules.edited(schedules.printed(example, settings), edit))
    return gpu.Kernel(mt.example(example), variant=name, schedule=text, **dict(settings))


@functools.lru_cache(maxsize=None)
def problem(example, settings, n, m):
    """Inputs, the reference's output, and the stored output of the default."""
    values = dict(settings)
    d = values["D"]
    rng = np.random.default_rng([n, m, d])
    inputs = {"Q": rng.standard_normal((2, 3, n, d)), "K": rng.standard_normal((2, 3, m, d)),
              "V": rng.standard_normal((2, 3, m, d)), "scale": d ** -0.5}
    default = kernel(example, settings, "default")
    expected = {"O": EXPECTED[example](**default.seen_by_kernel(inputs))[0]}
    return inputs, expected, default.run(inputs, {"O": expected["O"].shape})


class Schedules(mt.KernelTest):

    def test_results(self):
        exact = 0
        for example, settings, name, edit in variants():
            for n, m in SIZES:
                with self.subTest(example=example, settings=settings, schedule=name, n=n, m=m):
                    inputs, expected, default = problem(example, settings, n, m)
                    stored = kernel(example, settings, name).run(
                        inputs, {"O": expected["O"].shape})
                    kind = dict(settings)["T"]
                    what = f"{example} {kind} under '{name}', N = {n}, M = {m}"
                    self.assert_close({"O": mt.decode(stored["O"], kind)}, expected,
                                      mt.BOUNDS[kind], what)
                    if schedules.is_exact(edit):
                        exact += 1
                        self.assert_same_bits(stored, default, what)
                    if name in schedules.SAME:
                        same = kernel(example, settings, schedules.SAME[name])
                        self.assert_same_bits(stored, same.run(inputs, {"O": expected["O"].shape}), what)
        self.assertGreater(exact, len(SIZES) * 5)


if __name__ == "__main__":
    if os.environ.get("MOA_TEST_TARGET") == "record":
        record()
    else:
        mt.main()
