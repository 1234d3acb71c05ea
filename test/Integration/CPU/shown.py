# RUN: %python %s
"""Entry points on a CPU say with a code where nothing shows that a result is within a tolerance for every input: where a
bound on its errors, evaluated here in NumPy from the formula that moa-opt prints, is larger."""
import ctypes
import os
import re
import sys
import unittest

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "test", "Accuracy"))
import rounding_error  # noqa: E402

B, H, N, M, D = 2, 3, 37, 50, 16
SCALE = np.float32(D ** -0.5)
UNDERFLOW = 2.0 ** -80

ATTENTION = """
kernel k[B, H, N, M; T : float = f32, D = 16](Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32)
    -> O : f32[B, H, N, D]%s
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
TWO = """
kernel k[B, H, N, M; D = 16](Q : f32[B, H, N, D], K : f32[B, H, M, D], V : f32[B, H, M, D], scale : f32)
    -> (O : f32[B, H, N, D]%s, squares : f32[B]%s, free : f32[B, H, N]%s)
{
  S       = (Q +.* transpose(K)) * scale
  O       = softmax(S) +.* V
  squares = [b] +/ ([h < H] +/ ([n < N] +/ (Q[b, h, n] * Q[b, h, n])))
  free    = logsumexp(S)
}
"""
PAIR = """
kernel first[N](x : f32[N]) -> s : f32 within %s { s = +/ (x * x) }
kernel second[N](x : f32[N]) -> y : f32[N] within 1e-3 { y = x * 3 }
"""


class Formula(rounding_error.Formula):
    """The formula at an index of the result's axes, by name; of statistics over others the extreme is taken."""

    def __init__(self, report, inputs, symbols, at):
        self.at = at
        super().__init__(report, inputs, symbols)

    def atom(self, atom, report, inputs, symbols):
        if atom["kind"] != "statistic":
            return super().atom(atom, report, inputs, symbols)
        x = np.asarray(inputs[atom["array"]])
        kept = tuple(self.at.get(axis[6:], slice(None)) if axis.startswith("index ") else slice(None)
                     for axis in atom["axes"])
        left = [axis for axis, k in zip(atom["axes"], kept) if isinstance(k, slice)]
        x = x[kept]
        if not np.isfinite(x).all():
            return np.inf
        return rounding_error.statistic({**atom, "axes": left, "array": "x"}, {"x": x})


def bounds(path, inputs, number=0, names=("b", "h")):
    """E of each index: what an element may be off, relative to its magnitude, where that is above underflow."""
    report = rounding_error.run(path, "")
    result = report["results"][number]
    symbols = dict(B=inputs["Q"].shape[0], H=inputs["Q"].shape[1], N=inputs["Q"].shape[2], M=inputs["K"].shape[2], D=D)
    found = np.empty([symbols[name.upper()] for name in names])
    for index in np.ndindex(found.shape):
        formula = Formula(report, inputs, symbols, dict(zip(result["indices"], index)))
        holds = all(formula.sum(fact["value"]) <= fact["limit"] for fact in result["facts"])
        part = formula.sum(result["absolute"]) / UNDERFLOW
        found[index] = formula.sum(result["relative"]) / (1 - part) if holds and part < 1 else np.inf
    return found


class Shown(mt.DirectoryTest):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        q, k, v = (rng.standard_normal((B, H, n, D)).astype(np.float32) for n in (N, M, M))
        q *= np.array([[1, 3, 0.5], [2, 6, 1]], np.float32)[:, :, None, None]
        self.inputs = {"Q": q, "K": k, "V": v, "scale": SCALE}
        self.shapes = {"O": q.shape, "squares": (B,), "free": q.shape[:3]}

    def path(self, name):
        return os.path.join(self.directory, name)

    def formula(self, text, number=0, **options):
        self.write("formula.moa", text)
        return bounds(self.path("formula.moa"), self.inputs, number, **options)

    def run_tool(self, text, *flags, **options):
        self.write("k.moa", text)
        words = [f"scale={float(SCALE)!r}"]
        for name in "QKV":
            np.save(self.path(name + ".npy"), self.inputs[name])
            words.append(f"{name}={self.path(name + '.npy')}")
        return mt.tool("moa-run", self.path("k.moa"), *words, "-o", "O=" + self.path("o.npy"), *flags, **options)

    def code(self, text, inputs=None, flags=(), kernel=None):
        """The code of a call, and the results, which are there whatever it is."""
        kernel = kernel or mt.Kernel(text, flags=flags)
        kernel.accepted = (mt.OK, mt.NOT_SHOWN)
        inputs = inputs or self.inputs
        shapes = {**self.shapes, "O": inputs["Q"].shape}
        found = kernel.run(inputs, shapes)
        return kernel.code, found

    def test_messages_of_entry_points(self):
        """NAME_shown says in words what a call has returned, of every result; a smaller text has its beginning."""
        kernel = mt.Kernel(TWO % (" within 1e-7", " within 1e-1", " within 1"))
        code, _ = self.code("", kernel=kernel)
        self.assertEqual(code, mt.NOT_SHOWN)
        self.assertRegex(kernel.told, r"^O is not shown to be within 1e-7: the bound on its errors is \S+e-0\d at \[0, 0\], and too large "
                                      r"at 6 of 6 indices of \[B, H\]; free is not shown to be within 1: ")
        values, _ = kernel.bind(self.inputs, self.shapes)
        self.assertEqual(kernel.launch(values), mt.NOT_SHOWN)
        self.assertEqual(kernel.shown(values, room=20), (mt.NOT_SHOWN, kernel.told[:19]))
        self.assertEqual(kernel.shown(values, room=0), (mt.NOT_SHOWN, ""))
        code, said = kernel.shown(values, size=64)
        self.assertEqual(code, mt.WORKSPACE)
        self.assertIn("64", said)
        # Bounds stand where they were, however many threads there are by then.
        openmp = ctypes.CDLL(mt.LIBOMP)
        for count in (1, 3, 2):
            openmp.omp_set_num_threads(count)
            self.assertEqual(kernel.launch(values, mt.aligned(4 * kernel.workspace_bytes(values))), mt.NOT_SHOWN)
            for other in (1, 2, 5):
                openmp.omp_set_num_threads(other)
                self.assertEqual(kernel.shown(values), (mt.NOT_SHOWN, kernel.told))
        self.code(ATTENTION % " within 1e-2", kernel=(near := mt.Kernel(ATTENTION % " within 1e-2")))
        self.assertEqual((near.code, near.told), (mt.OK, ""))
        for text in ("", " within 1e-2 relative sampled", " within 1e-2 relative"):
            self.assertFalse(mt.Kernel(ATTENTION % text).has_shown())

    def test_codes_follow_the_bound(self):
        """On both sides of the bound of each head; the kernel's is never below that of the formula, and little above."""
        found = self.formula(ATTENTION % "")
        self.assertTrue(np.isfinite(found).all())
        plain = mt.Kernel(ATTENTION % "").run(self.inputs, self.shapes)
        for limit in sorted(found.reshape(-1)):
            for factor in (0.999, 1.05):
                within = float(np.float32(limit * factor))
                code, run = self.code(ATTENTION % f" within {within!r}")
                beyond = found > within
                with self.subTest(within=within):
                    self.assertEqual(code, mt.NOT_SHOWN if beyond.any() else mt.OK)
                    self.assertEqual(run["O"].tobytes(), plain["O"].tobytes())
                if limit != found.min():
                    continue
                done = self.run_tool(ATTENTION % f" within {within!r}")
                self.assertEqual(done.returncode, 1)
                said = (r"moa-run: error: O is not shown to be within \S+: the bound on its errors is (\S+) at "
                        r"\[(\d), (\d)\], and too large at (\d) of 6 indices of \[B, H\]\. It was computed all the same")
                self.assertRegex(done.stderr, said)
                number, b, h, count = re.search(said, done.stderr).groups()
                self.assertEqual((int(b), int(h)), tuple(np.argwhere(beyond)[0]))
                self.assertEqual(int(count), beyond.sum())
                first = found[int(b), int(h)]
                self.assertTrue(first * 0.996 <= float(number) <= first * 1.05, (number, first))
                self.assertEqual(np.load(self.path("o.npy")).tobytes(), plain["O"].tobytes())

    def test_weights_of_the_distance(self):
        """They come apart at the ends of parts: errors are below the bound in the measure of all magnitudes."""
        text = """
kernel k[B, H, N, M; D = 16](Q : f32[B, H, N, D], K : f32[B, H, M, D], V : f32[B, H, M, D], scale : f32) -> O : f32[B, H, N, D]
{
  S = mask([_, _, i, j] j <= i, (Q +.* transpose(K)) * [_, _, i < N, j < M] WEIGHT)
  O = S +.* V
}
"""
        n, rng = 1100, np.random.default_rng(4)
        q, k, v = (rng.standard_normal((1, 2, n, D)).astype(np.float32) for _ in range(3))
        inputs = {"Q": q, "K": k, "V": v, "scale": np.float32(0.01)}
        distance = np.maximum(np.arange(n)[:, None] - np.arange(n), 0)
        seen = np.tri(n)
        for weight, base in {"exp(-scale * (i - j))": np.e, "exp2((j - i) * scale)": 2.0}.items():
            self.write("formula.moa", text.replace("WEIGHT", weight))
            report = rounding_error.run(self.path("formula.moa"), "")
            formula = Formula(report, inputs, dict(B=1, H=2, N=n, M=n, D=D), {})
            bound = formula.sum(report["results"][0]["deep_relative"])
            self.assertTrue(0 < bound < 1e-4, bound)
            self.assertIn("O_before", mt.tool("moa-codegen", self.path("formula.moa"), "--emit=onf", "-o", "-").stdout)
            run = mt.Kernel(text.replace("WEIGHT", weight)).run(inputs, {"O": q.shape})
            w = seen * base ** (-distance * float(np.float32(0.01)))
            q64, k64, v64 = (x.astype(float) for x in (q, k, v))
            wanted = ((q64 @ k64.swapaxes(2, 3)) * w) @ v64
            size = ((np.abs(q64) @ np.abs(k64).swapaxes(2, 3)) * w) @ np.abs(v64)
            self.assertLess((np.abs(run["O"] - wanted) / size).max(), bound)

    def test_errors_are_below_the_bound(self):
        """What the code says is true: with 0 every element is within the tolerance."""
        within = self.formula(ATTENTION % "").max() * 1.05
        code, run = self.code(ATTENTION % f" within {within!r}")
        self.assertEqual(code, mt.OK)
        q, k, v = (self.inputs[name].astype(np.float64) for name in "QKV")
        s = q @ k.swapaxes(-1, -2) * np.float64(SCALE)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        self.assertTrue((abs(run["O"] - p @ v) <= within * (p @ abs(v))).all())

    def test_differences_that_cancel(self):
        """What is shown of a difference is relative to both of its terms, and --check measures by the same."""
        for name, body in (("two", "x * y - z"), ("factor", "(x - z * 0.3) * (W +.* y)"), ("quotient", "(x * y - z) / (1 + abs(y))")):
            text = f"kernel {name}[N](x : f32[N], y : f32[N], z : f32[N], W : f32[N, N]) -> O : f32[N] within 1e-4 {{ O = {body} }}"
            n, rng = 600, np.random.default_rng(8)
            x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
            z = (x * y if name != "factor" else x / np.float32(0.3)).astype(np.float32)
            z[::2] = 1  # Else nothing of the whole is left.
            self.write("k.moa", text)
            arrays = dict(x=x, y=y, z=z, W=rng.standard_normal((n, n)).astype(np.float32))
            given = []
            for array, value in arrays.items():
                np.save(self.path(array + ".npy"), value)
                given.append(f"{array}={self.path(array + '.npy')}")
            with self.subTest(body):
                done = mt.tool("moa-run", self.path("k.moa"), *given, "--check=all")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("not shown", done.stderr)
                self.assertRegex(done.stdout, r"within +O: error \S+ of 1e-4 allowed")

    def test_part_of_an_axis(self):
        """An array that is read at some indices of the result alone, under a condition, has one magnitude for all."""
        text = """kernel k[N; D = 8](A : f32[4, 3, D], B : f32[5, 3, D], K : f32[9, N, D], V : f32[9, N, D]) -> O : f32[9, 3, D] within 1e-1 {
          Q = [h < 9, i < 3, d < D] select(h < 4, A[h, i, d], B[h - 4, i, d])
          O = softmax(Q +.* transpose(K)) +.* V
        }
        """
        n, rng = 40, np.random.default_rng(9)
        a, b, k, v = (rng.standard_normal((h, rows, 8)).astype(np.float32) for h, rows in ((4, 3), (5, 3), (9, n), (9, n)))
        kernel = mt.Kernel(text)
        kernel.accepted = (mt.OK, mt.NOT_SHOWN)
        run = kernel.run({"A": a, "B": b, "K": k, "V": v}, {"O": (9, 3, 8)})
        self.assertEqual(kernel.code, mt.OK)
        s = np.concatenate([a, b]).astype(float) @ k.astype(float).swapaxes(1, 2)
        e = np.exp(s - s.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        self.assertTrue((abs(run["O"] - p @ v) <= 0.1 * (p @ abs(v))).all())

    def test_several_results(self):
        """One code for all of them, and a message with each that is not shown."""
        whole = self.formula(TWO % ("", "", "")).max() * 1.05
        squares = self.formula(TWO % ("", "", ""), 1, names=("b",)).max() * 1.05
        cases = [(whole, squares, mt.OK, []), (whole / 2, squares, mt.NOT_SHOWN, ["O"]),
                 (whole, squares / 2, mt.NOT_SHOWN, ["squares"]), (whole / 2, squares / 2, mt.NOT_SHOWN, ["O", "squares"])]
        for first, second, code, names in cases:
            text = TWO % (f" within {first!r}", f" within {second!r}", "")
            with self.subTest(names=names):
                self.assertEqual(self.code(text)[0], code)
                done = self.run_tool(text)
                self.assertEqual(done.returncode, 1 if names else 0, done.stderr)
                for name in ("O", "squares"):
                    self.assertEqual(f"{name} is not shown to be within" in done.stderr, name in names)

    def test_not_finite(self):
        kernel = mt.Kernel(ATTENTION % " within 0.5")
        for value in (np.nan, np.inf, -np.inf):
            for name in "QKV":
                x = self.inputs[name].copy()
                x[1, 2, 7, 3] = value
                self.assertEqual(self.code("", {**self.inputs, name: x}, kernel=kernel)[0], mt.NOT_SHOWN)
        self.assertEqual(self.code("", kernel=kernel)[0], mt.OK)

    def test_sizes(self):
        """Nothing is what it should be; without keys too, where results are 0."""
        kernel = mt.Kernel(ATTENTION % " within 6.1e-8")
        for b, h, n in ((0, 2, 5), (2, 0, 5), (2, 2, 0)):
            inputs = {**self.inputs, "Q": np.zeros((b, h, n, D)), "K": np.zeros((b, h, 9, D)), "V": np.zeros((b, h, 9, D))}
            self.assertEqual(self.code("", inputs, kernel=kernel)[0], mt.OK)
        inputs = {**self.inputs, "Q": np.ones((1, 1, 3, D)), "K": np.ones((1, 1, 2, D)), "V": np.ones((1, 1, 2, D))}
        self.assertEqual(self.code("", inputs, kernel=kernel)[0], mt.NOT_SHOWN)
        kernel = mt.Kernel(ATTENTION % " within 1e-3")
        for n, m in ((1, 1), (300, 1), (1, 300), (129, 131), (3, 0)):
            inputs = {**self.inputs, "Q": np.ones((1, 1, n, D)), "K": np.ones((1, 1, m, D)), "V": np.ones((1, 1, m, D))}
            self.assertEqual(self.code("", inputs, kernel=kernel)[0], mt.OK, (n, m))

    def test_layouts(self):
        """Magnitudes are read by strides, and of nothing but the array."""
        def spaced(array):
            wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan, array.dtype)
            wide[..., ::2] = array
            return wide[..., ::2]
        found = self.formula(ATTENTION % "")
        for factor, code in ((1.05, mt.OK), (0.999, mt.NOT_SHOWN)):
            kernel = mt.Kernel(ATTENTION % f" within {found.max() * factor!r}")
            kernel.accepted = (code,)
            kernel.run(self.inputs, self.shapes, arrange=spaced)

    def test_nothing_is_known(self):
        """Then no call shows anything, and a warning says so beforehand."""
        cases = [(ATTENTION % " within 1e-2 relative", (), "no bound is known of errors relative to a result"),
                 (TWO % ("", "", " within 1"), (), "warning: no bound shows that 'free' is within 1, so"),
                 (ATTENTION.replace(": f32[B, H, N, D]%s", ": T[B, H, N, D]%s") % " within 1e-2", ("--set", "T=f64"),
                  "bounds are known of arithmetic in f32, and this kernel has f64: say 'relative sampled', or take f32")]
        for text, flags, said in cases:
            with self.subTest(said=said):
                self.assertEqual(self.code(text, flags=flags)[0], mt.NOT_SHOWN)
                self.assertEqual(self.code(text, flags=(*flags, "--no-tolerance-check"))[0], mt.OK)
                self.write("k.moa", text)
                made = mt.tool("moa-codegen", self.path("k.moa"), *flags, "-o", self.path("k.o"))
                self.assertEqual(made.returncode, 0)
                self.assertIn("warning: no bound shows that '", made.stderr)
                self.assertIn(said, made.stderr)
                made = mt.tool("moa-codegen", self.path("k.moa"), *flags, "-o", self.path("k.o"), "--no-tolerance-check")
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertNotIn("nothing shows", made.stderr)

    def test_nothing_is_known_on_a_gpu(self):
        """There calls launch and say so, and a warning does beforehand; where inputs decide, neither does."""
        f64 = ATTENTION.replace(": f32[B, H, N, D]%s", ": T[B, H, N, D]%s") % " within 1e-2"
        cases = [(ATTENTION % " within 1e-2 relative", (), "'O' is within 1e-2 relative"),
                 (TWO % (" within 1e-2", "", " within 1"), (), "'free' is within 1"),
                 (f64, ("--set", "T=f64"), "'O' is within 1e-2"), (ATTENTION % " within 1e-2", (), None),
                 (ATTENTION % " within 5e-7 relative sampled", (), None),
                 (ATTENTION % " within 1e-2 relative sampled", (), None)]
        for text, flags, never in cases:
            for target, opening in (("cuda", "// Nothing shows that "), ("ptx", "nothing shows that ")):
                with self.subTest(never=never, target=target):
                    self.write("k.moa", text)
                    made = self.path("k.cu" if target == "cuda" else "k.ptx")
                    done = mt.tool("moa-codegen", self.path("k.moa"), *flags, "--target=" + target, "-o", made)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    host = made if target == "cuda" else self.path("k.c")
                    with open(host, encoding="utf-8") as file:
                        written = file.read()
                    self.assertEqual("no bound shows that '" in done.stderr, never is not None)
                    call = re.sub(r"enum \{.*?\};|(?:void|int32_t) \w*(?:check_bounds|not_shown)\(.*?\n\}\n", "", written, flags=re.S)
                    self.assertEqual("MOA_NOT_SHOWN" in re.sub("MOA_OK(,| and| or) MOA_NOT_SHOWN", "", call), never is not None)
                    self.assertEqual(" k_shown(" in written, text in (cases[1][0], cases[3][0]))
                    codes = re.search(r"enum \{ MOA_OK.*?\};|enum \{\s*MOA_OK.*?\};", written, re.S)
                    self.assertIn("MOA_NOT_SHOWN = 15", codes.group())
                    if never:
                        self.assertIn(opening + never, written)

    def test_divisors_behind_sums(self):
        """Elements over their norm are at most 1, but a sum that is divided behind its range may overflow or underflow, squares of
        a norm that is asked for too, and a sum that may cancel is no norm: nothing is shown then."""
        weights = """
kernel k[N, M; D = 4](x : f32[N, D], V : f32[D, M]) -> O : f32[N, M] within 1e-3
{ W = [i, k] abs(x[i, k]) / (+/ abs(x[i]))
  O = W +.* V }
"""
        ratio = """
kernel k[N, M; D = 4](x : f32[N, D], V : f32[N, M]) -> O : f32[N, D] within 1e-4
{ O = [i, k] exp(-abs(x[i, k] / (+/ abs(V[i])))) }
"""
        signed = """
kernel k[N, M; D = 4](x : f32[N, D], V : f32[D, M]) -> O : f32[N, D] within 1e-2
{ O = [i, k] x[i, k] / sqrt(+/ (abs(x[i]) * x[i])) }
"""
        usual = [0.5, -1.25, 2.0, 0.75]
        cases = [(weights, usual, usual, mt.OK), (weights, [-7.04e33, -1.27e34, -6.2e33, 4.1e32], [-1e6] * 4, mt.NOT_SHOWN),
                 (weights, [3.087e-23, 3.87e-23, 3.632e-23, 2.005e-23], [1.857e-21, 1.034e-21, 1.73e-21, 1.176e-21], mt.NOT_SHOWN),
                 (ratio, [1.0] * 4, usual, mt.OK), (ratio, [4.8e22] * 4, [4.8e20, 4.7e20, -4.9e20, 4.6e20], mt.NOT_SHOWN),
                 (signed, [1.29999995, -1.29999983, 1e-4, 1e-4], usual, mt.NOT_SHOWN)]
        for text, x, v, code in cases:
            with self.subTest(text=text, x=x):
                kernel = mt.Kernel(text)
                kernel.accepted = (mt.OK, mt.NOT_SHOWN)
                x, v = np.array([x], np.float32), np.array([v], np.float32)
                v = v if text is ratio else v.T
                kernel.run({"x": x, "V": v}, {"O": (1, 1) if text is weights else (1, 4)})
                self.assertEqual(kernel.code, code)

    def test_moa_run(self):
        text = ATTENTION % " within 2e-5"  # its errors are smaller, the bound is not
        done = self.run_tool(text, "--check=all")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "within   O: error .* of 2e-5 allowed .*\\)\n")
        self.assertIn("--no-tolerance-check takes it as it is", done.stderr)
        done = self.run_tool(text, "--decisions")
        self.assertEqual(done.returncode, 1)
        self.assertIn("plans    O: not shown at 6 of 6 indices of [B, H]", done.stdout)
        done = self.run_tool(text, "--no-tolerance-check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("shown", done.stderr)
        # A program for a GPU says the same, whether it decides or not.
        said = re.search(r"O is not shown to be within 2e-5: the bound on its errors is \S+ at \[0, 0\], and too large at 6 of 6 "
                         r"indices of \[B, H\]\. ", self.run_tool(text).stderr)[0]
        for flags in ("--decisions",), ():
            done = self.run_tool(text, "--target=device", *flags)
            self.assertEqual(done.returncode, 1)
            self.assertEqual("plans    O: not shown at 6 of 6 indices of [B, H]" in done.stdout, bool(flags))
            self.assertIn(said, done.stderr)
            self.assertNotIn("warning", done.stderr)
        done = self.run_tool(text, "--target=device", "--no-tolerance-check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_sampled(self):
        """A sampled tolerance chooses among plans; no call tells of it, however small it is."""
        for within in ("2e-6", "5e-7"):
            with self.subTest(within=within):
                text = ATTENTION % f" within {within} relative sampled"
                found, result = self.code(text)
                self.assertEqual(found, mt.OK)
                self.assertTrue(np.isfinite(result["O"]).all())
                for target in ("cpu", "device"):
                    done = self.run_tool(text, "--target=" + target)
                    self.assertEqual((done.returncode, "warning" in done.stderr), (0, False), done.stderr)
        self.assertEqual(self.code(text, flags=("--spend=256",))[0], mt.OK)

    def test_two_kernels(self):
        """Each has what it tells of, and a result without axes one bound."""
        for within, code in (("1e-3", 0), ("1e-7", 1)):
            self.write("pair.moa", PAIR % within)
            for name, expected in (("first", code), ("second", 0)):
                done = mt.tool("moa-run", self.path("pair.moa"), "--kernel", name, "--random", 1, "N=1000")
                self.assertEqual(done.returncode, expected, done.stderr)
                if expected:
                    self.assertRegex(done.stderr, r"error: s is not shown to be within 1e-7: the bound on its errors is "
                                                  r"\S+e-0\d\. It was")

    def test_threads(self):
        """The code does not depend on them, nor the message."""
        said = set()
        for threads in "1", "2", "5":
            done = self.run_tool(ATTENTION % " within 1e-7", env={**os.environ, "OMP_NUM_THREADS": threads})
            said.add((done.returncode, done.stderr[done.stderr.index("moa-run: error"):]))
        self.assertEqual(len(said), 1)
        self.assertEqual(said.pop()[0], 1)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
