"""What NAME_shown says of bounds that stand in the workspace, beside a CUDA that copies from the host's memory.

No kernel runs and no GPU is needed: the workspace has the bounds that a test puts there.
"""
import ctypes

import numpy as np

import moa_testing as mt

# Its argument has the name of a variable of the emitted text.
SPEC = """kernel shown[H, R, N](found : f32[H, R, N])
    -> (sums : f32[H, R] within 1e-4, all : f32 within 2e-3, free : f32[H, R] within 1e-3 relative)
{
  sums = [h, r] +/ (found[h, r] * found[h, r])
  all  = +/ ([h < H] +/ ([r < R] sums[h, r]))
  free = [h < H, r < R] sums[h, r] * 2.0
}
"""
# Beside them a fake of CUDA: copies fail where `refuses` is not 0.
COPY = "++copies; if (refuses) return 1; memcpy(to, (const void *)from, n); return 0;"
NEVER = "free is not shown to be within 1e-3 relative: no bound is known of errors relative to a result, because its norm is not known " \
        "before the kernel runs; leave 'relative' out for a bound on each element, or add 'sampled' to ask for none"
OPEN = "no bound on its errors holds for these inputs: they are too large or too small for the types, not finite, or have sums that may cancel"


class Kernel(mt.Kernel):
    """The entry points of a library, as the manifest describes them."""

    def __init__(self, library, program):
        self.loaded = ctypes.CDLL(library)
        self.name = program["name"]
        self.parameters = [mt.Parameter("out" if a["role"] == "output" else "in", a["name"], a["type"],
                                        ", ".join(a["shape"])) for a in program["arguments"]]


def tensors(heads):
    result = {}
    for k, (name, shape) in enumerate((("found", (heads, 4, 5)), ("sums", (heads, 4)), ("all", ()), ("free", (heads, 4)))):
        tensor = mt.describe(np.zeros(shape, np.float32), "f32")
        tensor.device_type, tensor.data = 2, 0x7000_0000_0000 + (k << 32)
        result[name] = tensor
    return result


def check(test, library, program, fake=None, kernel=None):
    """All cases, as assertions of a test case; `fake` is the library that stands for CUDA, if it is not in this one. `kernel` calls the
    entry points in another way."""
    kernel = kernel or Kernel(library, program)
    refuses, copies, launches = (ctypes.c_int.in_dll(fake or kernel.loaded, name) for name in ("refuses", "copies", "launches"))
    # Bounds are found where they are asked for alone.
    values, telling = tensors(4), [launch for launch in program["launches"] if "for_shown" in launch]
    workspace = mt.aligned(kernel.workspace_bytes(values))
    before = launches.value
    test.assertEqual(kernel.launch(values, workspace), mt.NOT_SHOWN)  # of `free`
    test.assertEqual(launches.value - before, len(program["launches"]) - len(telling))
    before = launches.value
    kernel.shown(values)
    test.assertEqual(launches.value - before, len(telling))
    test.assertTrue(telling and len(telling) < len(program["launches"]))
    entries = {entry["result"]: entry for entry in program["shown"]}
    test.assertEqual(sorted(entries), ["all", "free", "sums"])
    test.assertEqual({name: entry["within"] for name, entry in entries.items()}, {"sums": 1e-4, "all": 2e-3, "free": 1e-3})
    test.assertEqual([name for name in entries if "never" in entries[name]], ["free"])
    test.assertTrue(NEVER.endswith(entries["free"]["never"]))
    test.assertEqual((entries["sums"]["shape"], entries["all"]["shape"]), (["H"], []))

    def shown(values, heads, sums=None, bound=0.0, **more):
        workspace = mt.aligned(max(kernel.workspace_bytes(values), 1 << 16))
        kernel.given = workspace, ctypes.c_void_p(workspace.ctypes.data), workspace.size
        for name, array in (("sums", sums), ("all", [bound])):
            offset = eval(entries[name]["offset"].replace("/", "//"), {"H": heads, "R": 4, "N": 5})
            data = np.asarray(array, np.float32).view(np.uint8)
            workspace[offset:offset + data.size] = data
        return kernel.shown(values, **more)

    for heads in (1, 255, 256, 300, 600):
        values = tensors(heads)
        sums = np.full(heads, 1e-4)
        test.assertEqual(shown(values, heads, sums), (mt.NOT_SHOWN, NEVER))
        sums[-1] = 1.001e-4
        said = f"sums is not shown to be within 1e-4: the bound on its errors is 1.00e-04 at [{heads - 1}], and too large at 1 of {heads} indices of [H]"
        test.assertEqual(shown(values, heads, sums), (mt.NOT_SHOWN, f"{said}; {NEVER}"))
        for room in (0, 1, 20, len(said) + 3):
            test.assertEqual(shown(values, heads, sums, room=room), (mt.NOT_SHOWN, f"{said}; {NEVER}"[:max(room - 1, 0)]))
        sums[:] = np.nan
        said = f"sums is not shown to be within 1e-4: {OPEN} at [0], and too large at {heads} of {heads} indices of [H]"
        test.assertEqual(shown(values, heads, sums, bound=0.5),
                         (mt.NOT_SHOWN, f"{said}; all is not shown to be within 2e-3: the bound on its errors is 5.00e-01; {NEVER}"))
        sums[:] = 0
        test.assertEqual(shown(values, heads, sums, bound=np.inf),
                         (mt.NOT_SHOWN, f"all is not shown to be within 2e-3: {OPEN}; {NEVER}"))
        size = kernel.workspace_bytes(values)
        code, text = shown(values, heads, sums, size=size - 1)
        test.assertEqual((code, text), (mt.WORKSPACE, f"the workspace has {size - 1} bytes, but {size} are needed"))
        refuses.value = 1
        test.assertEqual(shown(values, heads, sums)[0], mt.LAUNCH)
        test.assertEqual(shown(values, heads, sums)[1], "CUDA did not copy the bounds of sums")
        refuses.value = 0
    # Nothing is said of what is empty, and nothing copied.
    before = copies.value
    test.assertEqual(shown(tensors(0), 0, []), (mt.OK, ""))
    test.assertEqual(copies.value, before + 1)  # of `all`
    values = tensors(3)
    values["sums"] = tensors(2)["sums"]
    code, text = shown(values, 3, np.zeros(3))
    test.assertEqual((code, text), (mt.SHAPE, "sums: expects f32[H, R], so H = 3 on axis 0, but got 2"))
