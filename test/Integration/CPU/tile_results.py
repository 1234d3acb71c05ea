# RUN: %python %s
"""Two and more results of one nest, each staged in shared memory on a GPU, against NumPy in float64.

On a GPU (MOA_TEST_TARGET=cuda, ptx) the sizes have many blocks for each multiprocessor, and each result is computed
several times: a result that is overwritten while it leaves is wrong in some run, or differs from run to run. There, families
with several such results are run as well. With MOA_TEST_TARGET=record the kernels are only written, into MOA_GPU_KERNELS."""
import glob
import json
import os
import re
import sys

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "test", "Families", "Support"))

ON_GPU = mt.TARGET in ("cuda", "ptx")
# Examples with several results in tiles that another test runs on a GPU: backward.py.
TESTED_ELSEWHERE = {"backward.moa"}
# Rows and keys: fewer than a tile, no multiple of one, whole tiles.
SIZES = {"device": [(1, 1), (65, 70), (130, 40)], "cpu": [(1, 1), (70, 130), (300, 257)]}.get(
    mt.TARGET, [(1, 1), (5, 300), (113, 203), (2048, 2048), (1031, 700)])
BATCH, HEADS = (2, 16) if ON_GPU else (1, 2)
ROUNDS = 5 if ON_GPU else 1

ARRAYS = "Q : {q}[B, H, N, D], K : {q}[B, H, M, D], {more}, scale : f32"


def spec(name, body, results, more="V : bf16[B, H, M, D], W : bf16[B, H, M, D]", q="bf16"):
    outputs = ", ".join(f"{result} : {kind}[B, H, {rows}, D]" for result, kind, rows in results)
    return (f"kernel {name}[B, H, N, M; D = 64](\n    {ARRAYS.format(q=q, more=more)})\n"
            f"    -> ({outputs})\n{{\n{body}}}\n")


def of_rows(**kinds):
    return [(result, kind, "N") for result, kind in kinds.items()]


SOFTMAX = "  A = softmax({scores})\n  O = A +.* V\n  P = A +.* W\n"
SCORES = "(Q +.* transpose(K)) * scale"
CAUSAL = f"mask([_, _, i, j] j <= i + (M - N), {SCORES})"
THREE = "V : bf16[B, H, M, D], W : bf16[B, H, M, D], X : bf16[B, H, M, D]"
# What stands between the scores and the gradients: the weights, from the logarithms of their sums.
BACKWARD = """  P     = {weights}
  delta = +/ (dO * O)
  dS    = P * ((dO +.* transpose(V)) -@(1,0) delta)
  dQ    = (dS +.* K) * scale
  dK    = (transpose(dS) +.* Q) * scale
  dV    = transpose(P) +.* dO
"""
FORWARD = "V : bf16[B, H, M, D], O : bf16[B, H, N, D], dO : bf16[B, H, N, D], lse : f32[B, H, N]"
GRADIENTS = [("dQ", "bf16", "N"), ("dK", "bf16", "M"), ("dV", "bf16", "M")]
WEIGHTS = f"exp(({SCORES}) -@(1,0) lse)"
SPECS = {
    "two": spec("two", SOFTMAX.format(scores=SCORES), of_rows(O="bf16", P="bf16")),
    "causal": spec("two_causal", SOFTMAX.format(scores=CAUSAL), of_rows(O="bf16", P="bf16")),
    "half": spec("two_halves", SOFTMAX.format(scores=SCORES), of_rows(O="f16", P="f16")),
    "mixed": spec("two_kinds", SOFTMAX.format(scores=SCORES), of_rows(O="bf16", P="f16")),
    "bytes": spec("two_of_bytes", SOFTMAX.format(scores="f32(Q +.* transpose(K)) * scale"), of_rows(O="bf16", P="bf16"),
                  q="i8"),
    "three": spec("three", SOFTMAX.format(scores=SCORES) + "  R = A +.* X\n", of_rows(O="bf16", P="bf16", R="bf16"),
                  more=THREE),
    "three kinds": spec("three_kinds", SOFTMAX.format(scores=SCORES) + "  R = A +.* X\n",
                        of_rows(O="f16", P="bf16", R="f16"), more=THREE),
    "sigmoid": spec("two_sigmoid", SOFTMAX.format(scores=SCORES).replace("softmax", "sigmoid"),
                    of_rows(O="bf16", P="bf16")),
    "backward": spec("backward", BACKWARD.format(weights=WEIGHTS), GRADIENTS, more=FORWARD),
    "causal backward": spec("causal_backward", BACKWARD.format(
        weights=f"mask([_, _, i, j] j <= i + (M - N), {WEIGHTS})"), GRADIENTS, more=FORWARD),
}
# The widths of rows, where not both are taken: sums of three results take the registers of four.
WIDTHS = {"three": (64,), "three kinds": (64,)}
# What the products round to 16 bits on the way: weights once, gradients of scores from them once more.
BOUND = {"backward": 6e-3, "causal backward": 6e-3}


def present(n, m):
    """The keys that a row of a causal form sees."""
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    return j <= i + (m - n)


def softmax(s):
    top = s.max(-1, keepdims=True, initial=-1e300)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total > 0, total, 1), (top + np.log(np.where(total > 0, total, 1)))[..., 0]


def turned(x):
    return np.swapaxes(x, -1, -2)


def scores_of(name, v):
    s = v["Q"].astype(float) @ turned(v["K"].astype(float)) * v["scale"]
    return np.where(present(*s.shape[-2:]), s, -np.inf) if "causal" in name else s


def forward(name, v):
    s = scores_of(name, v)
    a = 1 / (1 + np.exp(-s)) if name == "sigmoid" else softmax(s)[0]
    return {result: a @ v[values] for result, values in (("O", "V"), ("P", "W"), ("R", "X"))
            if values in v}


def backward(name, v):
    p = np.exp(scores_of(name, v) - v["lse"][..., None])
    delta = (v["dO"] * v["O"]).sum(-1)
    ds = p * (v["dO"] @ turned(v["V"]) - delta[..., None])
    return {"dQ": ds @ v["K"] * v["scale"], "dK": turned(ds) @ v["Q"] * v["scale"], "dV": turned(p) @ v["dO"]}


def inputs_of(name, kernel, n, m, d):
    """Normal numbers; what a backward form reads of its forward form follows from them, as the kernel sees them."""
    rng = np.random.default_rng([n, m, d])
    made = {"scale": d ** -0.5}
    for parameter in kernel.parameters:
        if not parameter.is_output and not parameter.is_scalar:
            rows = m if parameter.extents[2] == "M" else n
            shape = (BATCH, HEADS, rows, d)[:len(parameter.extents)]
            made[parameter.name] = rng.standard_normal(shape)
    if name == "bytes":
        made.update({key: rng.integers(-60, 61, made[key].shape) for key in "QK"}, scale=d ** -0.5 / 900)
    if "lse" in made:
        seen = kernel.seen_by_kernel(made)
        weights, lse = softmax(scores_of(name, seen))
        made.update(lse=lse, O=weights @ seen["V"])
    return made


def cases():
    for name in SPECS:
        for width in WIDTHS.get(name, (64, 128)):
            yield name, width


class TileResults(mt.KernelTest):

    def compare(self, name, width, n, m):
        kernel = self.kernels.setdefault((name, width), None) or mt.make_kernel(SPECS[name], D=width)
        self.kernels[name, width] = kernel
        inputs = inputs_of(name, kernel, n, m, width)
        seen = kernel.seen_by_kernel(inputs)
        expected = (backward if "backward" in name else forward)(name, seen)
        shapes = {result: value.shape for result, value in expected.items()}
        what = f"{name}, D = {width}, N = {n}, M = {m}"
        first = kernel.run(inputs, shapes)
        for _ in range(ROUNDS - 1):
            self.assert_same_bits(first, kernel.run(inputs, shapes), what)
        found = {result: mt.decode(array, kernel.by_name[result].kind) for result, array in first.items()}
        self.assert_close(found, expected, BOUND.get(name, mt.BOUNDS["bf16"]), what)

    kernels = {}

    def test_results(self):
        for name, width in cases():
            # What a CPU does with such results other tests ask; here it is the meaning that is tried.
            if not ON_GPU and (width == 128 and name != "two" or mt.TARGET == "cpu" and name not in ("two", "backward")):
                continue
            for n, m in SIZES:
                # Rows that see no key have no logarithm of a sum.
                if "causal" in name and n > m:
                    continue
                # With one key the weight is 1, so that dQ and dK vanish and have no relative error.
                if "backward" in name and m == 1:
                    continue
                with self.subTest(form=name, D=width, N=n, M=m):
                    self.compare(name, width, n, m)


def count_results(path):
    """The most results that one kernel of a CUDA C++ file stores in tiles."""
    with open(path, encoding="utf-8") as file:
        kernels = file.read().split("__global__")[1:]
    return max((len(re.findall(r"store_tile_(?:async_)?\dd<", kernel)) for kernel in kernels), default=0)


def several_file():
    return os.path.join(os.environ["MOA_GPU_KERNELS"], "several.json")


def record():
    """Writes the kernels of this file and of the families that have several results in tiles, in both texts."""
    import gpu
    import runner
    folder = os.environ["MOA_GPU_KERNELS"]
    os.makedirs(folder, exist_ok=True)
    for name, width in cases():
        base = os.path.join(folder, gpu.file_name(SPECS[name], {"D": width}))
        gpu.emit(SPECS[name], base, {"D": width})
        gpu.emit_ptx(SPECS[name], base, {"D": width})
        if count_results(base + ".cu") < 2:
            print(f"{name}, D = {width}: its results do not leave in tiles together")
    several, tried, trial = [], 0, os.path.join(folder, "trial")
    for family in runner.FAMILIES.values():
        settings, base = {"T": "bf16", **family.settings}, runner.stored(family, "bf16")
        gpu.emit(family.spec, trial, settings)
        tried += 1
        if count_results(trial + ".cu") > 1:
            gpu.emit(family.spec, base, settings)
            gpu.emit_ptx(family.spec, base, settings)
            several.append(family.name)
    with open(several_file(), "w", encoding="utf-8") as file:
        json.dump(several, file)
    for path in sorted(glob.glob(os.path.join(mt.SOURCE_ROOT, "examples", "*.moa"))):
        for width in (64, 128):
            gpu.emit(path, trial, {"T": "bf16", "D": width} if "D = " in open(path, encoding="utf-8").read() else {"T": "bf16"})
            tried += 1
            if count_results(trial + ".cu") > 1 and os.path.basename(path) not in TESTED_ELSEWHERE:
                raise RuntimeError(f"{path} has several results in tiles, and no reference here")
    for path in glob.glob(trial + ".*"):
        os.remove(path)
    print(f"{len(list(cases()))} kernels of several results; of {tried} examples and families {len(several)}: {several}")


class Families(mt.KernelTest):

    def test_families(self):
        if mt.TARGET not in ("cuda", "ptx") or not os.environ.get("MOA_GPU_KERNELS"):
            self.skipTest("other tests run the families here")
        import runner
        with open(several_file(), encoding="utf-8") as file:
            names = json.load(file)
        for name in names:
            for entry in runner.run(runner.FAMILIES[name], "bf16", mt.TARGET):
                with self.subTest(family=name, sizes=entry.sizes):
                    self.assertTrue(entry.holds(), entry.line())


if __name__ == "__main__":
    if mt.TARGET == "record":
        record()
    else:
        mt.main()
