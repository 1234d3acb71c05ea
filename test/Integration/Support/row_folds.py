"""Kernels of folds over rows against NumPy, and the passes that they take."""
import json
import os
import re
import tempfile

import numpy as np

import moa_testing as mt

N = 7


def rows(spec, inputs="x : T[N, M]", results="O : T[N]", functions=""):
    return (f"{functions}\nkernel k[N, M; T : float = f32]({inputs}) -> ({results}) {{\n"
            f"  {spec}\n}}\n")


def in_blocks(spec, block, sequential, **settings):
    """The kernel for this CPU with folds in blocks of that length, and parts of so many: what is added up first, and with it
    the rounding, is the same whatever caches the machine has, from which a schedule has these numbers."""
    sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "spec")
        with open(path + ".moa", "w", encoding="utf-8") as file:
            file.write(spec)
        schedule = json.loads(mt.tool("moa-codegen", path + ".moa", *sets, "--schedule=print").stdout)
        for nest in schedule["nests"]:
            nest["folds"][0].update(core=0, cache=block, sequential=max(sequential, 1))
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(schedule, file)
        return mt.Kernel(path + ".moa", [f"--schedule={path}.json"], **settings)


def emit(spec, level, setting):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "spec.moa")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        return mt.tool("moa-codegen", path, f"--emit={level}", "--set", setting).stdout


def weights(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class RowFolds(mt.KernelTest):

    def run_case(self, spec, expected, lengths=(1, 2, 67, 300), kinds=("f32", "f64"), shift=0.0,
                 passes=1, bound=None, block=None):
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            # Where kernels are recorded for a GPU, this CPU computes the same test.
            if block and mt.TARGET in ("cpu", "record"):
                kernel = in_blocks(spec, block, 64, T=kind)
            if mt.TARGET == "cpu":
                self.assert_passes(spec, kind, passes)
            for m in lengths:
                rng = np.random.default_rng(m)
                extents = {"N": N, "M": m}
                inputs = {}
                for p in kernel.parameters:
                    if p.is_output:
                        continue
                    shape = [extents.get(e) or int(e) for e in p.extents]
                    inputs[p.name] = (rng.integers(0, 1 << 20, shape).astype(np.int32)
                                      if p.kind == "i32" else rng.standard_normal(shape) + shift)
                wanted = expected(**kernel.seen_by_kernel(inputs))
                found = kernel.results(inputs, {k: v.shape for k, v in wanted.items()})
                for name, value in wanted.items():
                    if value.dtype.kind == "i":
                        np.testing.assert_array_equal(found.pop(name), value, f"{kind} {m} {name}")
                rest = {k: v for k, v in wanted.items() if v.dtype.kind != "i"}
                self.assert_close(found, rest, (bound or mt.BOUNDS)[kind], f"{kind} M={m}")

    def assert_passes(self, spec, kind, passes):
        """The most folds of one nest, one after the other."""
        text = emit(spec, "onf", f"T={kind}")
        nests = text.split("\n    onf.for ")[1:]
        most = max(len(re.findall(r"(?m)^      %\S+ = onf\.fold ", nest)) for nest in nests)
        self.assertEqual(most, passes, text)

    def check_row(self, body, expected, inputs="x : T[N, M], y : T[N, M]", **options):
        self.run_case(rows(body, inputs), lambda **x: {"O": expected(**x)}, **options)
