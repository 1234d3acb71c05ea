# RUN: %python %s
"""How many terms the loops of onf evaluate: with all sizes doubled not more than 2^p times as many, where p is the power with
which the work grows if nothing is computed again. A running fold takes one step for each index of its axis."""
import os
import re
import subprocess
import tempfile
import unittest

SCORES = "S = (Q +.* transpose(K)) * 0.25\n"
HEADS = "kernel k[H, N, M; T : float = {T}, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, N, D]) -> "
ROWS = "kernel k[N, M; T : float = {T}](x : T[N, M]) -> "
CHAIN = "\n".join(f"U{k} = U{k - 1} + A{k - 1} +.* U{k - 1}\nA{k} = A{k - 1} +.* A{k - 1}" for k in range(1, 6))
# Each: the specification, and the power p. H stays as it is, and so does D.
PROGRAMS = {
    "sums over the rows of weights": (HEADS + "got : f32[H, M]\n{{ " + SCORES + "got = reduce(+, softmax(S), -2) }}", 2),
    "weights along the other axis": (HEADS + "O : f32[H, M, D]\n{{ " + SCORES + "O = transpose(softmax(S)) +.* V }}", 2),
    "averages over heads": (HEADS + "A : f32[N, M]\n{{ " + SCORES + "A = reduce(+, softmax(S), 0) / f32(H) }}", 2),
    "an extreme of a head": (HEADS + "(row : f32[H, N], top : f32[H])\n{{ " + SCORES + "row = max/ S\ntop = max/ row }}", 2),
    "sums over the rows of heads that share keys": (
        "kernel k[H, G, N, M; T : float = {T}, D = 64](Q : T[H, N, D], K : T[H, M, D]) -> got : f32[G, M]\n"
        "  require H % G == 0\n{{ " + SCORES + "P = softmax(S)\ngot = [g < G, j < M] +/ ([r < H/G] (+/ ([i < N] P[g*(H/G) + r, i, j]))) }}", 2),
    "sums over pairs of heads": (
        HEADS + "got : f32[H/2, M]\n{{ " + SCORES + "P = softmax(S)\n"
        "got = [g < H/2, j < M] +/ ([r < 2] (+/ ([i < N] P[g*2 + r, i, j]))) }}", 2),
    "sums over rows of equal remainder": (
        "kernel k[N, W, M; T : float = {T}, D = 64](Q : T[N, D], K : T[M, D]) -> got : f32[W, M]\n  require W > 0\n"
        "{{ " + SCORES + "P = softmax(S)\ngot = [w < W, j < M] +/ ([t < N/W] P[t*W + w, j]) }}", 2),
    "column sums of weights of normed rows": (
        ROWS + "y : f32[M]\n{{ n = x *@(1,0) rsqrt(mean(x * x) + 1e-6)\ny = reduce(+, softmax(n), 0) }}", 2),
    "normed weights over their column sums": (
        ROWS + "y : f32[N, M]\n{{ n = x *@(1,0) rsqrt(mean(x * x) + 1e-6)\na = softmax(n)\ny = a / ([_, j] reduce(+, a, 0)[j]) }}", 2),
    "a softmax of weights less their column sums": (
        ROWS + "y : f32[N, M]\n{{ a = softmax(x)\nb = a - ([_, j] reduce(+, a, 0)[j] / 3.0)\ny = softmax(b * a + x) }}", 2),
    "a power of a matrix, and its product with a vector": (
        "kernel k[N; T : float = {T}](A : T[N, N], x : T[N]) -> (y : f32[N], Z : f32[N, N])\n{{ A2 = A +.* A\nA4 = A2 +.* A2\n"
        "A8 = A4 +.* A4\ny = A8 +.* x\nZ = A8 }}", 3),
    "what all rows share": ("kernel k[N, M](x : f32[N, M]) -> y : f32[N, M]\n{{ c = max/ transpose(x)\ny = [i, j] x[i, j] - c[j] }}", 2),
    "a chain of products": ("kernel k[N; D = 8](A0 : f32[N, N], U0 : f32[N, D]) -> U5 : f32[N, D]\n{{ " + CHAIN + " }}", 3),
    "a chain of products of scores": (
        "kernel k[N; D = 8](K : f32[N, D], U0 : f32[N, D]) -> U5 : f32[N, D]\n{{ A0 = [i < N, j < N] "
        "select(j < i, -(+/ (K[i] * K[j])), 0.0)\n" + CHAIN + " }}", 3),
    "products of what stands between": (
        "kernel k[H, N; T : float = {T}, D = 64](Q : T[H, N, D], K : T[H, N, D], V : T[H, N, D]) -> O : f32[H, N, D]\n{{ " + SCORES +
        "W = [h < H, i < N, j < N] S[h, i, j] * (*/ [k < N] mask(j < k and k < i, 1.0 - S[h, i, k]))\n"
        "O = mask([_, i, j] j < i, W) +.* V }}", 2),
}


def extents(text, sizes):
    product = 1
    for extent in re.findall(r'"([^"]*)"', text):
        product *= eval(extent.replace("/", "//"), {}, dict(sizes))
    return product


def count(onf, sizes):
    """Terms of all states: what encloses each, multiplied."""
    total, stack, guards = 0, [], {}
    for line in onf.splitlines():
        text = line.strip()
        if text.startswith("}"):
            stack.pop()
        factor = 1
        if found := re.search(r'onf\.for \[.*\] in (\[[^]]*\])', text):
            factor = extents(found[1], sizes)
        elif found := re.search(r'onf\.fold "[^"]*" in ("[^"]*")', text):
            factor = extents(found[1], sizes)
        elif found := re.search(r'onf\.acc .* carries \[[^]]*\] in (\[[^]]*\])', text):
            factor = extents(found[1], sizes)
            enclosing = 1
            for outer in stack:
                enclosing *= outer
            total += enclosing * factor / guards.get(len(stack), 1)
        if text.endswith("{"):
            stack.append(factor)
            guards.pop(len(stack), None)
        if text.startswith("onf.guard") and any("+ 1" in key for key in names_of(onf, line)):
            guards[len(stack)] = stack[-1]
    return total


def names_of(onf, line):
    """The extents of the loop around a guard that is one comparison with an index of that loop."""
    before = onf[:onf.index(line)]
    compare = re.findall(r"(%\w+) = arith\.cmpi (?:sge|sgt|slt), (%\w+), (%\w+) : index", before)
    guard = re.search(r"onf\.guard (%\w+)", line)[1]
    loop = re.findall(r'onf\.for \[[^]]*\] in (\[[^]]*\]) \{\n\s*\^bb0\(([^)]*)\)', before)[-1]
    of = [e for e in re.findall(r'"([^"]*)"', loop[0])]
    indices = re.findall(r"(%\w+): index", loop[1])
    ends = [pair for name, *pair in compare if name == guard]
    return [of[k] for k, index in enumerate(indices) if ends and index in ends[-1]]


class Work(unittest.TestCase):

    def emit(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            run = subprocess.run(["moa-codegen", path, "--emit=onf", "-o", "-"], capture_output=True, text=True, timeout=100)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("times for each element", run.stderr)
        return run.stdout

    def test_growth(self):
        for name, (text, power) in PROGRAMS.items():
            for kind in ("f32", "bf16"):
                with self.subTest(name, kind=kind):
                    onf = self.emit(text.format(T=kind))
                    work = [count(onf, {"H": 3, "G": 1, "W": 4, "N": n, "M": n}) for n in (512, 1024, 2048)]
                    print(name, kind, work)
                    for small, large in zip(work, work[1:]):
                        self.assertLess(large, 1.1 * 2 ** power * small)


if __name__ == "__main__":
    unittest.main()
