"""Kernels at the device level, run on this CPU by moa-run --target=device.

Only values go in and out: what an entry point refuses is tested on the targets that
have entry points.
"""
import atexit
import os
import re
import shutil
import tempfile

import numpy as np

import moa_testing as mt


class Kernel(mt.Kernel):

    def __init__(self, spec, flags=(), **settings):
        self.directory = tempfile.mkdtemp(prefix="moa-test-")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.spec = spec
        if "\n" in spec:
            self.spec = os.path.join(self.directory, "kernel.moa")
            with open(self.spec, "w", encoding="utf-8") as file:
                file.write(spec)
        self.sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        self.sets += flags
        header = os.path.join(self.directory, "kernel.h")
        made = mt.tool("moa-codegen", self.spec, *self.sets, "--header", header)
        if made.returncode:
            raise RuntimeError(f"moa-codegen {spec}: {made.stderr}")
        self.read_header(header)

    def file(self, parameter):
        return os.path.join(self.directory, parameter.name + ".npy")

    def run(self, inputs, output_shapes):
        """Values in, stored outputs out."""
        words, outputs = [], []
        for parameter in self.parameters:
            name, file = parameter.name, self.file(parameter)
            if parameter.is_output:
                outputs += ["-o", f"{name}={file}"]
                # Sizes that only an output shows.
                for extent, size in zip(parameter.extents, output_shapes[name]):
                    if re.fullmatch(r"[A-Za-z]\w*", extent):
                        words.append(f"{extent}={size}")
            elif parameter.is_scalar:
                words.append(f"{name}={inputs[name]!r}")
            else:
                array = mt.encode(inputs[name], parameter.kind)
                np.save(file, array.view("V2") if parameter.kind == "bf16" else array)
                words.append(f"{name}={file}")
        ran = mt.tool("moa-run", self.spec, *self.sets, "--target=device",
                      *dict.fromkeys(words), *outputs)
        is_not_shown = ran.returncode and ran.stderr.rstrip().endswith("--no-tolerance-check takes it as it is")
        self.code = mt.NOT_SHOWN if is_not_shown else mt.OK
        if ran.returncode and (not is_not_shown or mt.NOT_SHOWN not in self.accepted):
            raise RuntimeError(f"{self.name}: {ran.stderr}")
        self.said, self.told = ran.stdout, ran.stderr
        return {p.name: np.load(self.file(p)).view(mt.STORAGE[p.kind][0])
                for p in self.parameters if p.is_output}
