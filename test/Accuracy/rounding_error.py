# RUN: %python %s
"""Bounds on rounding errors hold, and say something.

Kernels are evaluated in NumPy twice: in float64, and in float32 with the operands of their
contractions rounded to formats by hand-written code. The bound is computed from the formula
that `moa-opt --dnf-print-errors` writes as JSON, with statistics found here.
"""
import itertools
import json
import math
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(os.environ.get("MOA_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("MOA_BINARY_ROOT", ROOT / "build"))

# ---------------------------------------------------------------- formats


def bits_kept(x, bits, least, step):
    """To nearest, ties to even, with that many bits of significand; below `least` in steps."""
    x = np.asarray(x, np.float64)
    exponent = np.floor(np.log2(np.where(x == 0, 1, np.abs(x))))
    unit = np.where(np.abs(x) < least, step, 2.0 ** (exponent - bits + 1))
    return np.round(x / unit) * unit


def of_rows(x, axis, largest, inner):
    top = np.max(np.abs(x), axis=axis, keepdims=True)
    scale = np.where(top == 0, 1, top / largest).astype(np.float32).astype(np.float64)
    return inner(np.asarray(x, np.float64) / scale) * scale


ROUND = {
    "f32": lambda x, axis: np.asarray(x, np.float32).astype(np.float64),
    "tf32": lambda x, axis: bits_kept(x, 11, 2.0**-126, 2.0**-136),
    "bf16": lambda x, axis: bits_kept(x, 8, 2.0**-126, 2.0**-133),
    "fp16": lambda x, axis: bits_kept(x, 11, 2.0**-14, 2.0**-24),
    "int8": lambda x, axis: of_rows(x, axis, 127, np.round),
    "e4m3": lambda x, axis: of_rows(x, axis, 448, lambda y: bits_kept(y, 4, 2.0**-6, 2.0**-9)),
}


class Exact:
    real = np.float64

    def dot(self, name, a, b):
        return a @ b


class Rounded:
    real = np.float32

    def __init__(self, formats):
        self.formats = formats

    def dot(self, name, a, b):
        left = ROUND[self.formats.get(name + ".lhs", "f32")](a, -1)
        right = ROUND[self.formats.get(name + ".rhs", "f32")](b, 0)
        return left.astype(np.float32) @ right.astype(np.float32)


# ---------------------------------------------------------------- kernels
# Each: the specification, the definition of one head, which returns result and measure.


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def scores(m, i):
    return m.dot("S", i["Q"], i["K"].T) * m.real(i["scale"])


def attend(m, p, i):
    return m.dot("O", p, i["V"]), np.abs(p) @ np.abs(i["V"])


def sdpa(m, i):
    return attend(m, softmax(scores(m, i)), i)


def causal(m, i):
    s = scores(m, i)
    return attend(m, softmax(np.where(np.tri(*s.shape, dtype=bool), s, m.real(-np.inf))), i)


def sigmoid(m, i):
    s = scores(m, i) + m.real(i["bias"])
    with np.errstate(over="ignore"):
        return attend(m, 1 / (1 + np.exp(-s)), i)


def softcap(m, i):
    cap = m.real(20)
    return attend(m, softmax(cap * np.tanh(scores(m, i) / cap)), i)


def alibi(m, i):
    n = i["Q"].shape[0]
    distance = (np.arange(n)[None, :] - np.arange(n)[:, None]).astype(m.real)
    return attend(m, softmax(scores(m, i) + m.real(i["slope"]) * distance), i)


def linear(m, i):
    return attend(m, scores(m, i), i)


def lse(m, i):
    s = scores(m, i)
    top = s.max(axis=-1, keepdims=True)
    value = top[:, 0] + np.log(np.exp(s - top).sum(axis=-1))
    return value, np.abs(top[:, 0]) + np.abs(value - top[:, 0])


def rms(m, i):
    x = i["Q"]
    p = x * (1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + m.real(1e-5)))
    return m.dot("O", p, i["V"].T), np.abs(p) @ np.abs(i["V"].T)


def normed(x, eps):
    return x * (1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + x.dtype.type(eps)))


def attend_normed(m, i, q, k):
    s = m.dot("S", q, k.T) * m.real(i["scale"])
    return attend(m, softmax(s), i)


def rms_scores(m, i):
    return attend_normed(m, i, normed(i["Q"], 1e-6) * i["V"][0], normed(i["K"], 1e-6))


def cosine(m, i):
    def unit(x):
        with np.errstate(invalid="ignore"):  # rows of zeros, of which nothing is bounded
            return x / np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return attend_normed(m, i, unit(i["Q"]), unit(i["K"]))


def largest(m, i):
    with np.errstate(invalid="ignore"):
        q = i["Q"] / np.abs(i["Q"]).max(axis=-1, keepdims=True)
    return attend_normed(m, i, q, i["K"] / (np.abs(i["K"]).sum(axis=-1, keepdims=True) + m.real(1e-3)))


HEAD = "[N, M; T : float = f32, D = 64](Q : T[N, D], K : T[M, D], V : T[M, D], scale : f32%s) -> O : %s"
S = "S = (Q +.* transpose(K)) * scale\n"
KERNELS = {
    "sdpa": (sdpa, "", "f32[N, D]", S + "O = softmax(S) +.* V"),
    "causal": (causal, "", "f32[N, D]",
               S + "A = mask([i, j] j <= i, S)\nO = softmax(A) +.* V"),
    "sigmoid": (sigmoid, ", bias : f32", "f32[N, D]", S + "O = sigmoid(S + bias) +.* V"),
    "softcap": (softcap, "", "f32[N, D]", S + "O = softmax(softcap(S, 20.0)) +.* V"),
    "alibi": (alibi, ", slope : f32", "f32[N, D]",
              S + "A = S + [i, j] slope * (j - i)\nO = softmax(A) +.* V"),
    "linear": (linear, "", "f32[N, D]", S + "O = S +.* V"),
    "lse": (lse, "", "f32[N]", S + "O = logsumexp(S)"),
    "rms": (rms, "", "f32[N, M]",
            "R = [i, _] Q[i] * rsqrt(mean(Q[i] * Q[i]) + 0.00001)\nO = R +.* transpose(V)"),
    "rms_scores": (rms_scores, "", "f32[N, D]",
                   "R = [i, k] Q[i, k] * rsqrt(mean(Q[i] * Q[i]) + 0.000001) * V[0, k]\n"
                   "P = [j, _] K[j] * rsqrt(mean(K[j] * K[j]) + 0.000001)\n"
                   "S = (R +.* transpose(P)) * scale\nO = softmax(S) +.* V"),
    "cosine": (cosine, "", "f32[N, D]",
               "R = [i, _] Q[i] / sqrt(+/ (Q[i] * Q[i]))\nP = [j, _] K[j] / sqrt(+/ (K[j] * K[j]))\n"
               "S = (R +.* transpose(P)) * scale\nO = softmax(S) +.* V"),
    "largest": (largest, "", "f32[N, D]",
                "R = [i, _] Q[i] / (max/ abs(Q[i]))\nP = [j, _] K[j] / ((+/ abs(K[j])) + 0.001)\n"
                "S = (R +.* transpose(P)) * scale\nO = softmax(S) +.* V"),
}

ATTENTION_FORMATS = [
    {}, {"S.lhs": "bf16", "S.rhs": "bf16"}, {"S.lhs": "fp16", "S.rhs": "fp16"},
    {"S.lhs": "tf32", "S.rhs": "tf32"}, {"S.lhs": "int8", "S.rhs": "int8"},
    {"S.lhs": "e4m3", "S.rhs": "e4m3"}, {"O.lhs": "bf16", "O.rhs": "bf16"},
    {"O.lhs": "fp16", "O.rhs": "fp16"}, {"O.lhs": "e4m3", "O.rhs": "e4m3"},
    {"O.lhs": "int8", "O.rhs": "int8"},
    {"S.lhs": "int8", "S.rhs": "int8", "O.lhs": "e4m3", "O.rhs": "e4m3"},
    {"S.lhs": "bf16", "S.rhs": "bf16", "O.lhs": "bf16", "O.rhs": "bf16"},
]

# ---------------------------------------------------------------- formulas


def statistic(atom, inputs):
    x = np.abs(np.asarray(inputs[atom["array"]], np.float64))
    norm = tuple(k for k, axis in enumerate(atom["axes"]) if axis == "norm")
    kind = atom["statistic"]
    if kind.endswith("L2"):
        x = np.sqrt((x * x).sum(axis=norm))
    elif kind == "maxL1":
        x = x.sum(axis=norm)
    return float(x.min() if kind.startswith("min") else x.max())


class Formula:
    def __init__(self, report, inputs, symbols):
        self.value = {}
        for atom in report["atoms"]:
            self.value[atom["atom"]] = self.atom(atom, report, inputs, symbols)

    def atom(self, atom, report, inputs, symbols):
        kind = atom["kind"]
        args = [self.sum(e) for e in atom.get("operands", [])]
        if kind == "statistic":
            return statistic(atom, inputs)
        if kind == "extent":
            return abs(eval(atom["expression"].replace("/", "//"), {}, symbols))
        if kind == "tiny":
            return report["tiny"]
        if kind in ("unknown", "parameter"):
            return math.inf
        try:
            return {"exp": math.exp, "expm1": math.expm1, "sqrt": math.sqrt, "max": max, "min": min,
                    "recip": lambda x: 1 / x, "group": lambda x: x}[kind](*args)
        except (OverflowError, ZeroDivisionError):
            return math.inf

    def sum(self, e):
        total = 0.0
        for term in e["terms"]:
            product = term["coefficient"]
            for factor in term["factors"]:
                value = self.value[factor["atom"]]
                infinite = math.isinf(value) or (value == 0 and factor["power"] < 0)
                product *= math.inf if infinite else value ** factor["power"]
            total += product
        return math.inf if math.isnan(total) else total * (1 + 1e-9)


def bound(report, result, inputs, symbols):
    """E, absolute, and whether a condition fails."""
    formula = Formula(report, inputs, symbols)
    holds = all(formula.sum(fact["value"]) <= fact["limit"]
                for fact in result["facts"] if "value" in fact)
    return formula.sum(result["relative"]), formula.sum(result["absolute"]), holds


# ---------------------------------------------------------------- inputs


def family(name, rng, n, d):
    q, k, v = (rng.standard_normal((n, d)) for _ in range(3))
    scale = 1 / math.sqrt(d)
    if name == "outliers":
        q[:, :2] *= 12
        k[:, :2] *= 12
    elif name == "huge key":
        k[n // 3] *= 40
    elif name == "scores of 80":
        k = np.sign(k) * np.abs(k)
        scale *= 80 / np.abs(q @ k.T * scale).max()
    elif name == "near ties":
        k = np.repeat(k[:1], n, axis=0) * (1 + 1e-6 * rng.standard_normal((n, 1)))
    elif name == "uniform":
        q, k = q * 0, rng.random((n, d))
        v = rng.random((n, d))
    elif name == "constant V":
        v = np.full((n, d), 0.7)
    arrays = {"Q": q, "K": k, "V": v, "scale": scale, "bias": -math.log(n), "slope": 0.03}
    # Inputs are f32 numbers.
    return {key: np.float32(value).astype(np.float64) for key, value in arrays.items()}


FAMILIES = ["normal", "outliers", "huge key", "scores of 80", "near ties", "uniform", "constant V"]


def run(path, formats):
    done = subprocess.run(
        [BUILD / "bin/moa-opt", path, "--convert-moa-to-dnf",
         "--dnf-print-errors=json=true" + (" formats=" + formats if formats else ""),
         "-o", os.devnull],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contraction_names(path):
    return [operand["name"][:-4] for operand in run(path, "")["operands"]
            if operand["name"].endswith(".lhs")]


def reports(directory):
    for name, (definition, extra, result, body) in KERNELS.items():
        path = pathlib.Path(directory) / (name + ".moa")
        head = "kernel " + name + HEAD % (extra, result)
        path.write_text(head + "\n{ " + body + " }\n")
        scores_name = next((c for c in contraction_names(path) if c != "O"), "O")
        assignments = ATTENTION_FORMATS if name not in ("rms", "lse") else [
            a for a in ATTENTION_FORMATS
            if all(k.startswith("S" if name == "lse" else "O") for k in a)]
        for formats in assignments:
            # A definition that is used once stands in the one that uses it.
            text = ",".join(f"{k.replace('S', scores_name)}:{v}" for k, v in formats.items())
            yield name, definition, formats, run(path, text)


def main():
    rng = np.random.default_rng(1)
    runs, finite = 0, 0
    ratios = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, definition, formats, report in reports(directory):
            result = report["results"][0]
            for kind, (n, d) in itertools.product(FAMILIES, [(8, 64), (48, 64), (256, 64)]):
                if n == 256 and kind not in ("normal", "outliers"):
                    continue
                inputs = family(kind, rng, n, d)
                exact, measure = definition(Exact(), inputs)
                single = {k: v.astype(np.float32) for k, v in inputs.items()}
                rounded, _ = definition(Rounded(formats), single)
                relative, absolute, holds = bound(report, result, inputs, {"N": n, "M": n})
                runs += 1
                if not holds or not math.isfinite(relative + absolute):
                    continue
                finite += 1
                error = np.abs(rounded.astype(np.float64) - exact)
                limit = relative * measure + absolute
                assert (error <= limit).all(), (name, formats, kind, n, relative, absolute,
                                                np.max(error / np.maximum(limit, 1e-300)))
                worst = np.max(error / np.maximum(limit, 1e-300))
                key = (name, kind) if not formats else (name + " formats", kind)
                ratios.setdefault(key, []).append(1 / max(worst, 1e-12))
                if kind == "normal" and n == 256 and name in FACTORS:
                    assert worst * FACTORS[name] >= 1, (name, formats, worst)
    for (name, kind), values in sorted(ratios.items()):
        print(f"{name:18} {kind:14} bound/measured {min(values):8.1f} to {max(values):10.1f}"
              f" ({len(values)} runs)")
    print(f"{finite} of {runs} runs have a finite bound")
    assert finite >= 0.8 * runs and runs > 500, (finite, runs)


# A bound on normal inputs of 256 rows is within this factor of the largest error.
FACTORS = {"sdpa": 3000, "causal": 3000, "sigmoid": 3000, "cosine": 3000}

if __name__ == "__main__":
    main()
