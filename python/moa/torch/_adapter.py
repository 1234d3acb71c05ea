"""Stands in for moa.compile where only the tools are built: moa-codegen, the C compiler and tvm-ffi."""
import collections
import json
import os
import shutil
import subprocess
import tempfile

import torch

Parameter = collections.namedtuple("Parameter", "name role dtype shape")
TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
         "u16": torch.uint16, "u32": torch.uint32}


class CompileError(ValueError):
    """A specification is wrong."""


class Kernel:
    """A compiled kernel with the interface of moa.Kernel, for tensors of PyTorch."""

    def __init__(self, specification, target, settings, module, program):
        self.specification, self.target, self.settings, self.name = specification, target, settings, program["name"]
        self.symbols = tuple(program["symbols"])
        order = {"input": 0, "scalar": 1, "output": 2}
        self.parameters = tuple(Parameter(a["name"], a["role"], a["type"], tuple(a["shape"]))
                                for a in sorted(program["arguments"], key=lambda a: order[a["role"]]))
        self.function, self.workspace = getattr(module, self.name), getattr(module, self.name + "_workspace")

    def __call__(self, *inputs, out):
        outputs = out if isinstance(out, (tuple, list)) else [out]
        arguments = [a.detach() if isinstance(a, torch.Tensor) else a for a in inputs] + list(outputs)
        size = self.workspace(*arguments)
        if size:
            arguments.append(torch.empty(size, dtype=torch.uint8, device=outputs[0].device))
        code = self.function(*arguments)
        if code:
            raise RuntimeError(f"{self.name} returned the code {code}")
        return out


def tool(name):
    root = os.environ.get("MOA_BINARY_ROOT")
    found = os.path.join(root, "bin", name) if root else shutil.which(name)
    if not found or not os.path.exists(found):
        raise RuntimeError(f"{name} was not found; set MOA_BINARY_ROOT to the build folder")
    return found


def compile(source, target, optimization, settings):
    """Compiles the text of a specification with one kernel."""
    with tempfile.TemporaryDirectory(prefix="moa-") as folder:  # the loaded library needs no file
        return build(os.path.join(folder, "kernel"), source, target, optimization, settings)


def build(base, source, target, optimization, settings):
    import tvm_ffi
    with open(base + ".moa", "w", encoding="utf-8") as file:
        file.write(source)
    flags = [part for name, value in sorted(settings.items()) for part in ("--set", f"{name}={value}")]
    output = base + (".o" if target == "cpu" else ".cu")
    made = subprocess.run([tool("moa-codegen"), base + ".moa", *flags, f"--target={target}", "-O", str(optimization),
                           "--binding=tvm-ffi", "--manifest", base + ".json", "-o", output], capture_output=True, text=True)
    if made.returncode:
        raise CompileError(made.stderr)
    libraries = os.path.dirname(os.environ.get("MOA_LIBOMP", "/usr/lib/llvm-22/lib/libomp.so"))
    link = [os.environ.get("CC", "cc"), "-shared", output, "-L" + libraries, "-Wl,-rpath," + libraries, "-lomp", "-lm"]
    if target == "cuda":
        link = ["nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC", output]
    subprocess.run([*link, "-o", base + ".so"], check=True, capture_output=True)
    with open(base + ".json", encoding="utf-8") as file:
        program, = json.load(file)["programs"]
    return Kernel(source, target, settings, tvm_ffi.load_module(base + ".so"), program)
