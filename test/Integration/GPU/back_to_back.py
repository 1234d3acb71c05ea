# REQUIRES: gpu, nvcc
# RUN: env MOA_TEST_TARGET=cuda %python %s
"""Every form many times on one workspace, without a synchronisation in between, gives the bits of a run by itself.

The forms are the examples, the families, the edited schedules and nests of several results. A launch that overlaps with one in front of
it, of the same call or of the call before, must not see what is not there yet, nor overwrite what is still read.

With MOA_TEST_TARGET=record the kernels are only written, into MOA_GPU_KERNELS.
"""
import json
import os
import sys
import zlib

import numpy as np

import gpu
import moa_testing as mt
import ptx_equal
import schedule_edits

sys.path[:0] = [os.path.join(mt.SOURCE_ROOT, "test", "Families", "Support"),
                os.path.join(mt.SOURCE_ROOT, "test", "Integration", "CPU")]
import runner  # noqa: E402
import tile_results  # noqa: E402

ROUNDS = 40
# Rounds of all forms by turns.
MIXED = 5
# Few blocks, which end soon, and several for each multiprocessor.
SMALL = {"B": 2, "H": 4, "G": 2, "N": 77, "M": 130}
LARGE = {"B": 2, "H": 8, "G": 4, "N": 2100, "M": 2100}


class Form:
    """A kernel to be: what it is made of, and sizes, or inputs of its own."""

    def __init__(self, name, spec, settings, flags=(), variant=None, schedule=None, problems=None):
        self.name, self.spec, self.settings, self.flags = name, spec, dict(settings), tuple(flags)
        self.variant, self.schedule = variant, schedule
        self.problems = problems or (lambda kernel: (random_problem(kernel, name, sizes) for sizes in (SMALL, LARGE)))

    def base(self):
        return os.path.join(os.environ["MOA_GPU_KERNELS"],
                            gpu.file_name(self.spec, self.settings, self.variant, self.flags))

    def record(self):
        gpu.emit(self.spec, self.base(), self.settings, self.schedule and self.schedule(), self.flags)

    def kernel(self):
        schedule = None if os.environ.get("MOA_GPU_KERNELS") else self.schedule and self.schedule()
        return gpu.Kernel(self.spec, self.variant, schedule, self.flags, **self.settings)


class Sizes(dict):

    def __missing__(self, name):
        if name.startswith("__"):
            raise KeyError(name)
        return 3


def random_problem(kernel, name, sizes):
    """Inputs of these sizes, and the shapes of outputs."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {sizes}".encode()))
    inputs, shapes = {}, {}
    for parameter in kernel.parameters:
        shape = tuple(int(eval(e.replace("/", "//"), {}, Sizes(sizes))) for e in parameter.extents)
        if parameter.is_output:
            shapes[parameter.name] = shape
        elif parameter.is_scalar:
            inputs[parameter.name] = ptx_equal.scalar(parameter.name, parameter.kind)
        else:
            inputs[parameter.name] = ptx_equal.random_values(shape, parameter.kind, rng, special=False)
    return inputs, shapes


def family_problem(family):
    """The problem of a family with most elements."""
    sizes = max(family.sizes, key=lambda s: np.prod(list(s.values())))
    z = family.namespace(sizes)

    def problems(kernel):
        inputs = family.inputs(np.random.default_rng(zlib.crc32(family.name.encode())), z)
        expected = family.expected(kernel.seen_by_kernel(inputs), z)
        yield inputs, {name: np.shape(value) for name, value in expected.items()}
    return problems


def result_problem(name, width):
    def problems(kernel):
        for n, m in ((70, 130), (1031, 1100)):
            inputs = tile_results.inputs_of(name, kernel, n, m, width)
            yield inputs, {p.name: (tile_results.BATCH, tile_results.HEADS, m if p.extents[2] == "M" else n, width)
                           for p in kernel.parameters if p.is_output}
    return problems


def schedule_of(example, settings, edit):
    return lambda: json.dumps(schedule_edits.edited(schedule_edits.printed(example, settings), edit))


def forms():
    for name, spec, settings in ptx_equal.cases():
        if not spec.endswith(".mlir") and name not in ptx_equal.SCHEDULES:
            yield Form(name, spec, settings, ptx_equal.OPTIONS.get(name, ()))
    for (example, settings), edits in schedule_edits.CASES.items():
        for variant, edit in edits.items():
            yield Form(f"{example}-{variant}", mt.example(example), settings, variant=variant,
                       schedule=schedule_of(example, settings, edit))
    for family in runner.FAMILIES.values():
        if not family.fails:
            yield Form(family.name, family.spec, {"T": "bf16", **family.settings}, problems=family_problem(family))
    for name, width in tile_results.cases():
        yield Form(f"{name}-{width}", tile_results.SPECS[name], {"D": width}, problems=result_problem(name, width))


class Problem:
    """Inputs of a kernel on the device, and what a run by itself gives."""

    def __init__(self, kernel, inputs, shapes):
        self.kernel, self.shapes, self.inputs = kernel, shapes, {}
        for parameter in kernel.parameters:
            if parameter.is_scalar:
                self.inputs[parameter.name] = inputs[parameter.name]
            elif not parameter.is_output:
                array = gpu.DeviceArray(mt.encode(inputs[parameter.name], parameter.kind))
                self.inputs[parameter.name] = array.describe(parameter.kind)
        values, outputs = self.arguments()
        self.bytes = max(kernel.workspace_bytes(values), 0)
        self.launch(values, gpu.DeviceArray(np.full(self.bytes, 0xA5, np.uint8)))
        gpu.cuda("cudaDeviceSynchronize")
        self.alone = fetch(outputs)

    def arguments(self):
        """Values of all parameters, with outputs of their own, full of a pattern."""
        values, outputs = dict(self.inputs), {}
        for parameter in self.kernel.parameters:
            if parameter.is_output:
                array = np.empty(self.shapes[parameter.name], mt.STORAGE[parameter.kind][0])
                array.reshape(-1).view(np.uint8)[...] = 0xA5
                outputs[parameter.name] = gpu.DeviceArray(array)
                values[parameter.name] = outputs[parameter.name].describe(parameter.kind)
        return values, outputs

    def launch(self, values, workspace):
        code = self.kernel.launch(values, workspace, workspace.size)
        if code:
            raise RuntimeError(f"{self.kernel.name} returned {code}: {self.kernel.check(values)}")


def fetch(outputs):
    for device in outputs.values():
        device.fetch()
    return {name: device.array for name, device in outputs.items()}


class BackToBack(mt.KernelTest):

    def check(self, launches, workspace):
        """Launches of (name, problem) without a synchronisation; the bits are those of each alone."""
        made = [(name, problem, *problem.arguments()) for name, problem in launches]
        for _, problem, values, _ in made:
            problem.launch(values, workspace)
        gpu.cuda("cudaDeviceSynchronize")
        for number, (name, problem, _, outputs) in enumerate(made):
            self.assert_same_bits(problem.alone, fetch(outputs), f"{name}, launch {number} of {len(made)}")

    def test_rounds(self):
        problems = []
        for form in forms():
            with self.subTest(form=form.name):
                kernel = form.kernel()
                for number, (inputs, shapes) in enumerate(form.problems(kernel)):
                    problem = Problem(kernel, inputs, shapes)
                    workspace = gpu.DeviceArray(np.full(problem.bytes, 0xA5, np.uint8))
                    self.check([(form.name, problem)] * ROUNDS, workspace)
                    if number == 0:
                        problems.append((form.name, problem))
        self.assertGreater(len(problems), 200)
        print(f"{len(problems)} forms, {ROUNDS} rounds each, {MIXED} rounds by turns")
        workspace = gpu.DeviceArray(np.full(max(problem.bytes for _, problem in problems), 0xA5, np.uint8))
        self.check(problems * MIXED, workspace)


if __name__ == "__main__":
    if os.environ.get("MOA_TEST_TARGET") == "record":
        for form in forms():
            form.record()
    else:
        mt.main()
