"""Emits kernels for both targets of the device level, and compares their bits.

    ptx_equal.py emit DIRECTORY    moa-codegen writes X.cu, X.ptx, X.c, X.json
    ptx_equal.py test DIRECTORY    X.cu.so, X.ptx.so and the run-time library run on the same inputs

The manifest says what the entry points take and how large everything is.
"""
import glob
import json
import os
import sys
import zlib

import numpy as np

import moa_testing as mt
import runtime_library as rt

EXAMPLES = ["alibi", "backward", "causal", "cross_mask", "gqa_causal", "layernorm_product", "paper",
            "scaled_norm", "sdpa", "sigmoid_attention", "sliding_window", "softcap"]
PROGRAMS = os.path.join(mt.SOURCE_ROOT, "test", "Interpreter", "Device", "Inputs")
UNARY = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "erf",
         "abs", "floor", "ceil", "round", "trunc", "sign", "log1p", "expm1", "asin",
         "acos", "atan", "sinh", "cosh"]
BINARY = ["pow", "min", "max", "fmod", "atan2", "floor_divide"]

# The arithmetic of integers, casts and comparisons, and a scalar of every kind.
SCALARS = """kernel scalars[N; T : float = f32](
    x : T[N], a : i32[N], b : i32[N], keep : bool[N], s : f32, h : bf16, k : i32, flag : bool)
    -> (q : i32[N], r : i32[N], f : T[N], z : T[N], p : bool[N], m : T[N], d : bool[N])
{
  q = [i < N] a[i] / b[i] + k
  r = [i < N] a[i] % b[i]
  f = [i < N] select(keep[i] and flag, x[i] * s + h, x[i] / s)
  z = [i < N] x[i] * x[i] + s * h - x[i] / 3.0
  p = [i < N] keep[i] and a[i] <= b[i] or x[i] > s
  m = [i < N] x[i] % s + x[i] % b[i]
  d = [i < N] keep[i] & (a[i] <= b[i]) ^ ~(x[i] > s) | flag
}
"""

# Values of the symbols, by name; every other symbol is 3.
SIZES = [
    {"B": 1, "H": 2, "G": 1, "N": 1, "M": 1},
    {"B": 2, "H": 4, "G": 2, "N": 77, "M": 130},
    {"B": 1, "H": 2, "G": 1, "N": 256, "M": 256},
    {"B": 2, "H": 2, "G": 2, "N": 333, "M": 1000},
    {"B": 1, "H": 3, "G": 3, "N": 0, "M": 40},
    {"B": 1, "H": 2, "G": 2, "N": 129, "M": 0},
]


def functions(kind):
    """A specification with every elementary function."""
    lines = [f"  o_{f} = [i < N] {f}(x[i])" for f in UNARY]
    lines += [f"  o_{f} = [i < N] {f}(x[i], y[i])" for f in BINARY]
    outputs = ", ".join(f"o_{f} : T[N]" for f in UNARY + BINARY)
    body = "\n".join(lines)
    return f"kernel functions[N; T : float = {kind}](x : T[N], y : T[N]) -> ({outputs})\n{{\n{body}\n}}\n"


# Attention that takes 8 bits at the heads where a sample allows them.
SPENT = """kernel spent[B, H, N, M; D = 128](
    Q : bf16[B, H, N, D], K : bf16[B, H, M, D], V : bf16[B, H, M, D], scale : f32)
    -> O : bf16[B, H, N, D] within 6e-2 relative sampled
{
  O = softmax((Q +.* transpose(K)) * scale) +.* V
}
"""
# What is shown of it behind its kernels, of heads whose scores are small enough for it and of others.
SHOWN = """kernel shown[B, H, N, M; D = 128](
    Q : bf16[B, H, N, D], K : bf16[B, H, M, D], V : bf16[B, H, M, D], scale : f32)
    -> (O : f32[B, H, N, D] within %s, sums : f32[B] within 1e-5, all : f32 within 1e-5)
{
  O    = softmax((Q +.* transpose(K)) * scale) +.* V
  sums = [b] +/ ([h < H] +/ ([n < N] +/ (Q[b, h, n] * Q[b, h, n])))
  all  = +/ ([b < B] +/ ([h < H] +/ ([n < N] +/ (Q[b, h, n] * Q[b, h, n]))))
}
"""
# More words of the command line, by the name of the files.
OPTIONS = {"spent-128": ["--spend=256"], "spent-64": ["--spend=256"],
           "spent-128-pilot": ["--spend=256", "--pilot"], "spent-128-pilot-none": ["--spend=256", "--pilot"]}
# Sizes of those that look at few rows and keys first, which takes many; small ones as well.
LONG = [{"B": 1, "H": 3, "N": 300, "M": 2100}, {"B": 2, "H": 4, "N": 77, "M": 130}, {"B": 1, "H": 2, "N": 4100, "M": 4096}]
# Edits of the schedule, by the name of the files: blocks of a last round in two parts.
SCHEDULES = {"sdpa-bf16-64-shares": {"shared": 32, "shares": 5}}


def cases():
    """(name of the files, path or text of the specification, settings)"""
    yield "sdpa-bf16-64-shares", mt.example("sdpa"), {"T": "bf16", "D": 64}
    for name in EXAMPLES:
        for kind in ("bf16", "f16", "f32", "f64"):
            yield f"{name}-{kind}", mt.example(name), {"T": kind}
    for name in ("sdpa", "gqa_causal", "causal", "sliding_window", "softcap"):
        for width in (64, 96, 256):
            yield f"{name}-bf16-{width}", mt.example(name), {"T": "bf16", "D": width}
    for kind in ("f32", "f64"):
        yield f"functions-{kind}", functions(kind), {"T": kind}
        yield f"scalars-{kind}", SCALARS, {"T": kind}
    for width in (64, 128):
        yield f"spent-{width}", SPENT, {"D": width}
    # All heads of normal numbers are tried, and none.
    yield "spent-128-pilot", SPENT, {}
    yield "spent-128-pilot-none", SPENT.replace("6e-2", "6e-3"), {}
    for within in ("1e-1", "5e-2", "1e-2"):
        yield f"shown-{within}", SHOWN % within, {}
    # Programs of the device level: products of fragments, reads of tiles, layouts.
    for path in sorted(glob.glob(os.path.join(PROGRAMS, "*.mlir"))):
        yield os.path.splitext(os.path.basename(path))[0], path, {}


def emit(directory):
    failed = count = 0
    for name, spec, settings in cases():
        base = os.path.join(directory, name)
        if "\n" in spec:
            with open(base + ".moa", "w", encoding="utf-8") as file:
                file.write(spec)
            spec = base + ".moa"
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        sets += OPTIONS.get(name, [])
        if name in SCHEDULES:
            import schedule_edits
            with open(base + ".schedule", "w", encoding="utf-8") as file:
                json.dump(schedule_edits.edited(schedule_edits.printed("sdpa", tuple(settings.items())),
                                                SCHEDULES[name]), file)
            sets.append(f"--schedule={base}.schedule")
        for words in (["--target=cuda", "-o", base + ".cu"], ["--target=ptx", "-o", base + ".ptx"]):
            made = mt.tool("moa-codegen", spec, *sets, *words)
            if made.returncode:
                print(f"moa-codegen {name} {words[0]}: {made.stderr.strip()}")
                failed += 1
        count += 1
    print(f"{count} kernels in {directory}")
    return failed


class Kernel(mt.Kernel):
    """The entry points of one library, as the manifest describes them."""

    def __init__(self, library, program):
        import ctypes
        self.loaded = ctypes.CDLL(library)
        self.name = program["name"]
        self.parameters = [
            mt.Parameter("out" if a["role"] == "output" else "in", a["name"], a["type"],
                         ", ".join(a["shape"])) for a in program["arguments"]]
        self.has_shown = lambda: "shown" in program

    def launch(self, values, workspace=None, size=None):
        import gpu
        return gpu.Kernel.launch(self, values, workspace, size)

    def all_shown(self, values):
        """What NAME_shown says, with room for it all, for a part, and for none."""
        said = [self.shown(values, room=room) for room in (1024, 40, 0)]
        refused = self.shown(values, size=8)[0]
        if len({code for code, _ in said}) > 1 or said[1][1] != said[0][1][:39] or refused != mt.WORKSPACE:
            raise RuntimeError(f"NAME_shown says {said}, and {refused} of too small a workspace")
        return said[0]


class RuntimeKernel(rt.Function):
    """The same kernel through the run-time library."""

    all_shown = Kernel.all_shown

    def __init__(self, base):
        function = rt.functions(base)[0]
        super().__init__(function.program, function.facts)

    def launch(self, values, workspace=None, size=None):
        import gpu
        workspace = gpu.DeviceArray(np.full(max(self.workspace_bytes(values), 0), 0xA5, np.uint8))
        self.given = workspace, workspace.pointer, workspace.size
        return self.call(values, workspace.pointer, workspace.size)[0]


def value_of(text, symbols):
    return int(eval(text.replace("/", "//"), {}, dict(symbols)))


def symbols_of(program, sizes):
    """Values of all symbols, or nothing if a constraint does not hold."""
    symbols = {name: sizes.get(name, 3) for name in program["symbols"]}
    for constraint in program["constraints"]:
        try:
            if not eval(constraint["text"].replace("/", "//"), {}, dict(symbols)):
                return None
        except ZeroDivisionError:
            return None
    return symbols


def random_values(shape, kind, generator, special):
    if kind == "bool":
        return generator.random(shape) < 0.7
    if kind.startswith("i"):
        return generator.integers(-40, 41, shape)
    values = generator.standard_normal(shape)
    if special and values.size:
        # All magnitudes, then the values that functions treat apart.
        values = values * np.exp(generator.uniform(-30, 30, shape))
        flat = values.reshape(-1)
        odd = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 88.8,
               -104.0, 709.9, -745.2, 1e300, 3.1415926535, 1e5, 1e22]
        flat[:len(odd)] = odd[:flat.size]
    return values


def scalar(name, kind):
    if kind == "bool":
        return True
    return 37 if kind.startswith("i") else {"scale": 0.125}.get(name, 0.75)


def run(kernel, inputs, symbols):
    """The bytes of every output, which start as a pattern, and what NAME_shown says."""
    import gpu
    values, outputs = {}, {}
    for parameter in kernel.parameters:
        name, kind = parameter.name, parameter.kind
        if parameter.is_scalar:
            values[name] = inputs[name]
            continue
        if parameter.is_output:
            shape = tuple(value_of(e, symbols) for e in parameter.extents)
            array = np.empty(shape, mt.STORAGE[kind][0])
            array.reshape(-1).view(np.uint8)[...] = 0xA5
        else:
            array = mt.encode(inputs[name], kind)
        device = gpu.DeviceArray(array)
        if parameter.is_output:
            outputs[name] = device
        values[name] = device.describe(kind)
    code = kernel.launch(values)
    if code:
        raise RuntimeError(f"code {code} {kernel.check(values)}")
    gpu.cuda("cudaDeviceSynchronize")
    for device in outputs.values():
        device.fetch()
    return {name: device.array for name, device in outputs.items()}, kernel.all_shown(values) if kernel.has_shown() else None


def compare(base, program, sizes):
    """(elements compared, those that differ, a remark) of one run, or nothing."""
    symbols = symbols_of(program, sizes)
    if symbols is None:
        return None
    name = os.path.basename(base)
    generator = np.random.default_rng(zlib.crc32(f"{name}{symbols}".encode()))
    special = program["name"] == "functions"
    if special:
        symbols["N"] *= 1000
    cuda = Kernel(base + ".cu.so", program)
    ptx = Kernel(base + ".ptx.so", program)
    inputs = {}
    for parameter in cuda.parameters:
        if parameter.is_scalar:
            inputs[parameter.name] = scalar(parameter.name, parameter.kind)
        elif not parameter.is_output:
            shape = tuple(value_of(e, symbols) for e in parameter.extents)
            inputs[parameter.name] = random_values(shape, parameter.kind, generator, special)
    first, said = run(cuda, inputs, symbols)
    elements, differing, remark = 0, 0, ""
    for way, kernel in (("PTX", ptx), ("the run-time library", RuntimeKernel(base))):
        second, other = run(kernel, inputs, symbols)
        if said != other:
            differing += 1
            remark = remark or f"{said} by CUDA C++, {other} by {way}"
        for output, expected in first.items():
            found = second[output]
            words = f"u{expected.itemsize}"
            a, b = expected.reshape(-1).view(words), found.reshape(-1).view(words)
            wrong = np.flatnonzero(a != b)
            elements += a.size
            differing += wrong.size
            if a.size and (a == int.from_bytes(b"\xa5" * expected.itemsize, "little")).all():
                raise RuntimeError(f"{output} was not written")
            if wrong.size and not remark:
                at = wrong[0]
                remark = f"{output}[{at}]: {a[at]:#x} by CUDA C++, {b[at]:#x} by {way}"
    if said and not remark:
        print(f"{name} NAME_shown: {said[0]} {said[1]}")
    return elements, differing, remark


def test(directory):
    failed = 0
    row = "{:28} {:>26} {:>10} {:>10}  {}"
    print(row.format("kernel", "sizes", "elements", "differ", "result"))
    bases = sorted(path[:-3] for path in glob.glob(os.path.join(directory, "*.cu")))
    for base, sizes in ((base, sizes) for base in bases for sizes in (LONG if "-pilot" in base else SIZES)):
        try:
            with open(base + ".json", encoding="utf-8") as file:
                program = json.load(file)["programs"][0]
            outcome = compare(base, program, sizes)
            if outcome is None:
                continue
            elements, differing, remark = outcome
            result = "equal" if not differing else f"DIFFERS {remark}"
            failed += bool(differing)
        except (OSError, RuntimeError) as error:
            elements, differing, result = 0, 0, f"FAILED {error}"
            failed += 1
        text = " ".join(f"{k}={v}" for k, v in sizes.items() if k in program["symbols"])
        print(row.format(os.path.basename(base), text, elements, differing, result), flush=True)
    if not bases:
        print("no kernels")
    print(f"{failed} runs differ or failed" if failed else "all equal")
    return failed or not bases


if __name__ == "__main__":
    sys.exit(1 if {"emit": emit, "test": test}[sys.argv[1]](sys.argv[2]) else 0)
