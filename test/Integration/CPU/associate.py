# RUN: %python %s
"""Products of matrices that associate, and sums that rows share, against NumPy.

Full and causal, with and without weights that are divided by their sum, of every type, over sizes around
the parts and blocks that are stored, with keys that nobody sees.
"""
import unittest

import numpy as np

import moa_testing as mt

HEAD = "(Q : T[B, N, D], K : T[B, M, D], V : T[B, M, E], g : f32[B, M]) -> O : T[B, N, E]"
MASKS = {
    "full": (None, lambda i, j, n, m: j >= 0),
    "causal": ("j <= i", lambda i, j, n, m: j <= i),
    "bottom right": ("j <= i + (M - N)", lambda i, j, n, m: j <= i + m - n),
    "strict": ("i > j", lambda i, j, n, m: j < i),
}
# Queries and keys: beside parts of 256, blocks of 64 keys, and of 64 rows.
SIZES = [(1, 1), (3, 255), (65, 256), (64, 257), (130, 1023), (70, 1025), (2100, 2050), (1030, 70), (5, 0), (0, 5)]
FEW = [(66, 257), (200, 70), (3, 0)]
SMALL = [(1, 1), (66, 257), (129, 129), (200, 70), (70, 1030), (3, 0)]


def specification(body, constants="D = 16, E = 24"):
    return f"kernel k[B, N, M; T : float = bf16, {constants}]{HEAD}\n{{\n  {body}\n}}\n"


def weights(mask, scores):
    return f"S = {scores}" if mask is None else f"S = mask([_, i, j] {mask}, {scores})"


class Associate(mt.KernelTest):

    def check(self, spec, meaning, kinds=("f32", "bf16", "f64"), sizes=SIZES, constants=(16, 24), positive=False, small=SMALL):
        if mt.TARGET == "device":
            sizes, kinds = small, ("bf16", "f32")
        d, e = constants
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            for n, m in sizes:
                random = np.random.default_rng(n + m)
                inputs = {"Q": random.standard_normal((2, n, d)), "K": random.standard_normal((2, m, d)),
                          "V": random.standard_normal((2, m, e)), "g": random.uniform(0.5, 1.5, (2, m))}
                if positive:
                    inputs.update({name: np.abs(inputs[name]) + 0.1 for name in "QK"})
                wanted = {"O": meaning(**kernel.seen_by_kernel(inputs))}
                found = kernel.results(inputs, {"O": (2, n, e)})
                bound = {"f64": 1e-13, "f32": 4e-6, "bf16": 6e-3, "f16": 2e-3}[kind]
                self.assert_close(found, wanted, bound, f"{kind} {n} {m}")

    def check_masks(self, body, meaning, **options):
        for name, (mask, seen) in MASKS.items():
            def of(Q, K, V, g, seen=seen):
                n, m = Q.shape[1], K.shape[1]
                i, j = np.arange(n)[:, None], np.arange(m)[None]
                return meaning(Q, K, V, g, np.where(seen(i, j, n, m), 1.0, 0.0))
            with self.subTest(name):
                self.check(specification(body(mask)), of, **options)

    def test_linear(self):
        self.check_masks(lambda mask: weights(mask, "Q +.* transpose(K)") + "\n  O = S +.* V",
                         lambda Q, K, V, g, seen: (seen * (Q @ K.swapaxes(1, 2))) @ V)

    def test_weights_of_keys(self):
        self.check_masks(
            lambda mask: weights(mask, "(Q +.* transpose(K)) * [b, _, j] g[b, j]") + "\n  O = S +.* V",
            lambda Q, K, V, g, seen: (seen * (Q @ K.swapaxes(1, 2)) * g[:, None]) @ V,
            sizes=[(70, 1025), (65, 256)], kinds=("f32",))

    def test_ranges(self):
        """Ranges that other conditions bound too, and what is not later than a row."""
        ranges = {"j >= i": lambda i, j, n, m: j >= i,
                  "j > i + (M - N) and j < M - 70 * b": lambda i, j, n, m: (j > i + m - n) & (j < m - 70 * np.arange(2)[:, None, None]),
                  "j <= 2 * i + 3 and i < N - 5": lambda i, j, n, m: (j <= 2 * i + 3) & (i < n - 5),
                  "j / 16 <= i / 16 and j <= i + 5": lambda i, j, n, m: (j // 16 <= i // 16) & (j <= i + 5),
                  "j / 100 > i / 100": lambda i, j, n, m: j // 100 > i // 100,
                  "j <= max(i, 70)": lambda i, j, n, m: j <= np.maximum(i, 70),
                  "not (j > i)": lambda i, j, n, m: j <= i,
                  "j <= i and j < 300 + 100 * b": lambda i, j, n, m: (j <= i) & (j < 300 + 100 * np.arange(2)[:, None, None]),
                  "j < i and j >= 70 * b and j < M - 5": lambda i, j, n, m: (j < i) & (j >= 70 * np.arange(2)[:, None, None]) & (j < m - 5),
                  "i >= j and g[b, j] > 1": None}
        for name, seen in ranges.items():
            def meaning(Q, K, V, g, seen=seen):
                i, j = np.arange(Q.shape[1])[:, None], np.arange(K.shape[1])[None]
                where = (j <= i) & (g[:, None] > 1) if seen is None else seen(i, j, Q.shape[1], K.shape[1])
                return (where * (Q @ K.swapaxes(1, 2))) @ V
            with self.subTest(name):
                body = f"S = mask([b, i, j] {name}, Q +.* transpose(K))\n  O = S +.* V"
                self.check(specification(body), meaning, kinds=("f32", "bf16"), sizes=SMALL + [(600, 1030)], small=FEW)

    def test_decay_and_lengths(self):
        """Weights of the distance under further bounds, and conditions that read an array of rows."""
        spec = ("kernel k[B, N, M; D = 8](Q : f32[B, N, D], K : f32[B, M, D], V : f32[B, M, D], len : i32[B], keep : i32[B, N]) -> O : f32[B, N, D] {\n"
                "  S = (Q +.* transpose(K)) * [b, i, j] pow(0.99, i - j)\n"
                "  O = mask([b, i, j] j <= i and j < len[b] and keep[b, i] > 0, S) +.* V\n}\n")
        kernel = mt.make_kernel(spec)
        random = np.random.default_rng(4)
        for n, m in ((70, 300), (600, 600)):
            q, k, v = random.standard_normal((3, n, 8)), random.standard_normal((3, m, 8)), random.standard_normal((3, m, 8))
            inputs = {"Q": q, "K": k, "V": v, "len": np.array([0, m // 2, m], np.int32), "keep": random.integers(0, 2, (3, n)).astype(np.int32)}
            seen = kernel.seen_by_kernel({name: inputs[name] for name in "QKV"})
            i, j = np.arange(n)[:, None], np.arange(m)[None]
            where = (j <= i) & (j < inputs["len"][:, None, None]) & (inputs["keep"] > 0)[:, :, None]
            weight = np.where(where, 0.99 ** np.maximum(i - j, 0.0), 0)
            wanted = {"O": (seen["Q"] @ seen["K"].swapaxes(1, 2) * weight) @ seen["V"]}
            self.assert_close(kernel.results(inputs, {"O": (3, n, 8)}), wanted, 4e-6, f"{n} {m}")

    def test_lengths(self):
        """Parts of a range that end in the middle, whose elements behind the end are not numbers."""
        ranges = {"j <= i + 300 and j < len[b]": lambda i, j, n: (j <= i + 300) & (j < n),
                  "j >= i and j < len[b]": lambda i, j, n: (j >= i) & (j < n),
                  "j <= i + 300 and j >= 40 and j < len[b]": lambda i, j, n: (j <= i + 300) & (j >= 40) & (j < n)}
        for name, seen_by in ranges.items():
            spec = ("kernel k[B, N, M; D = 64](Q : bf16[B, N, D], K : bf16[B, M, D], V : bf16[B, M, D], len : i32[B]) -> O : f32[B, N, D] {\n"
                    f"  O = mask([b, i, j] {name}, Q +.* transpose(K)) +.* V\n}}\n")
            kernel = mt.make_kernel(spec)
            random = np.random.default_rng(5)
            n, m = (66, 600) if mt.TARGET == "device" else (700, 1100)
            lengths = np.array([m // 2 + 5, 0, m, -7], np.int32)
            inputs = {"Q": random.standard_normal((4, n, 64)), "K": random.standard_normal((4, m, 64)),
                      "V": random.standard_normal((4, m, 64)), "len": lengths}
            seen = kernel.seen_by_kernel({name: inputs[name] for name in "QKV"})
            i, j = np.arange(n)[:, None], np.arange(m)[None]
            where = seen_by(i, j, lengths[:, None, None])
            wanted = {"O": (where * (seen["Q"] @ seen["K"].swapaxes(1, 2))) @ seen["V"]}
            for b in range(4):
                for array in "KV":
                    inputs[array][b, max(lengths[b], 0):] = np.nan
            with self.subTest(name):
                self.assert_close(kernel.results(inputs, {"O": (4, n, 64)}), wanted, 6e-3, name)

    def test_no_keys_before(self):
        """Over a range without an element a sum is 0, whatever rows have."""
        spec = ("kernel k[B, N, M; D = 8](Q : f32[B, N, D], K : f32[B, M, D], V : f32[B, M, D], len : i32[B]) -> O : f32[B, N, D] {\n"
                "  O = mask([b, i, j] j <= i and j < len[b], Q +.* transpose(K) + 1) +.* V\n}\n")
        kernel = mt.make_kernel(spec)
        random = np.random.default_rng(3)
        q, k, v = (random.standard_normal((3, 700, 8)) for _ in "QKV")
        q[:, 650] = np.inf
        lengths = np.array([0, -3, 700], np.int32)
        found = kernel.results({"Q": q, "K": k, "V": v, "len": lengths}, {"O": (3, 700, 8)})["O"]
        self.assertTrue((found[:2] == 0).all())
        self.assertTrue(np.isfinite(np.delete(found[2], 650, axis=0)).all())
        self.assertFalse(np.isfinite(found[2, 650]).any())

    def test_sums_of_scores(self):
        """Scores and what is added to them come apart, with factors of rows and of keys."""
        scores = lambda Q, K: Q @ K.swapaxes(1, 2)
        cases = {
            "S * 0.5 + 1": lambda Q, K, g: scores(Q, K) * 0.5 + 1,
            "S + [b, _, j] g[b, j]": lambda Q, K, g: scores(Q, K) + g[:, None],
            "2 * (1 - S / 4) * [b, _, j] g[b, j]": lambda Q, K, g: 2 * (1 - scores(Q, K) / 4) * g[:, None],
            "S - 0.5 * (abs(Q) +.* transpose(K))": lambda Q, K, g: scores(Q, K) - 0.5 * scores(np.abs(Q), K),
            "(S + 0.5) * [b, i, j] pow(g[b, 0] / 2, i - j)": None,
            "([b, i, _] Q[b, i, 0]) * S - ([b, i, _] Q[b, i, 1]) * [b, _, j] g[b, j]":
                lambda Q, K, g: Q[:, :, :1] * scores(Q, K) - Q[:, :, 1:2] * g[:, None],
        }
        for text, of in cases.items():
            masks = {k: MASKS[k] for k in (("full", "causal") if of else ("strict",))}
            for name, (mask, seen) in masks.items():
                def meaning(Q, K, V, g, seen=seen, of=of):
                    n, m = Q.shape[1], K.shape[1]
                    i, j = np.arange(n)[:, None], np.arange(m)[None]
                    where = seen(i, j, n, m)
                    if of is None:
                        base = g[:, :1, None] / 2 if m else np.ones((2, 1, 1))
                        weight = np.where(where, base ** np.maximum(i - j, 0), 0)
                        return ((scores(Q, K) + 0.5) * weight) @ V
                    return (where * of(Q, K, g)) @ V
                # An error is of Σ_j (|S| + |…|)·|V|, which for a single row and key may be much more than the result.
                body = f"S = Q +.* transpose(K)\n  " + (f"P = {text}" if mask is None else f"P = mask([_, i, j] {mask}, {text})") + "\n  O = P +.* V"
                with self.subTest(f"{text} {name}"):
                    self.check(specification(body), meaning, kinds=("f32", "bf16"), sizes=[(70, 300), (600, 1030), (3, 0)], small=FEW)

    def test_running_sums(self):
        """What rows know nothing of but where it ends."""
        cases = {
            "O = mask([_, i, j] j <= i, [b < B, i < N, j < M] g[b, j]) +.* V": lambda V, g, seen: (seen * g[:, None]) @ V,
            "O = [b < B, i < N, e < E] +/ mask([j] j < i, [j < M] V[b, j, e])": lambda V, g, seen: (np.tril(seen, -1) + 0 * g[:, None]) @ V,
            "r = [b < B, i < N] +/ mask([j] j <= i, g[b])\n  O = [b < B, i < N, e < E] r[b, i] * Q[b, i, 0]":
                lambda V, g, seen: (seen * g[:, None]).sum(axis=-1, keepdims=True),
        }
        for body, of in cases.items():
            def meaning(Q, K, V, g, of=of):
                n, m = Q.shape[1], K.shape[1]
                seen = np.where(np.arange(m)[None] <= np.arange(n)[:, None], 1.0, 0.0)
                result = of(V, g, seen)
                return result if result.shape[-1] == 24 else np.repeat(result * Q[:, :, :1], 24, axis=-1)
            with self.subTest(body):
                self.check(specification(body), meaning, kinds=("f32",), sizes=SMALL + [(600, 1030), (0, 3)])

    def test_divided_by_their_sum(self):
        def meaning(Q, K, V, g, seen):
            s = seen * (Q @ K.swapaxes(1, 2))
            total = s.sum(axis=-1, keepdims=True)
            return np.divide(s, total, out=np.zeros_like(s), where=total != 0) @ V
        self.check_masks(lambda mask: weights(mask, "Q +.* transpose(K)") + "\n  O = (S /@(1,0) (+/ S)) +.* V",
                         meaning, positive=True)

    def test_features(self):
        def meaning(Q, K, V, g):
            q, k = np.exp(Q), np.exp(K)
            s = q @ k.swapaxes(1, 2)
            with np.errstate(invalid="ignore"):  # over no keys 0 / 0
                return (s @ V) / s.sum(axis=-1, keepdims=True)
        self.check(specification("S = exp(Q) +.* transpose(exp(K))\n  O = (S +.* V) /@(1,0) (+/ S)"), meaning,
                   sizes=[(70, 300), (5, 257)])

    def test_range_of_f16(self):
        """Sums over keys leave the range of f16 where scores and results do not."""
        def meaning(Q, K, V, g):
            return (Q @ K.swapaxes(1, 2)) @ V / 2**20
        spec = specification("O = ((Q +.* transpose(K)) * 9.5367431640625e-07) +.* (V + 0.0)")
        kernel = mt.make_kernel(spec, T="f16")
        random = np.random.default_rng(1)
        inputs = {"Q": random.uniform(1, 2, (2, 5, 16)), "K": random.uniform(30, 40, (2, 600, 16)),
                  "V": random.uniform(30, 40, (2, 600, 24)), "g": np.ones((2, 600))}
        found = kernel.results(inputs, {"O": (2, 5, 24)})
        self.assert_close(found, {"O": meaning(**kernel.seen_by_kernel(inputs))}, 2e-3, "f16")

    def test_keys_that_nobody_sees(self):
        """NaN in keys behind the last row does not reach a result."""
        for scores in ("Q +.* transpose(K)", "exp(Q) +.* transpose(K)"):
            spec = specification(weights("j <= i", scores) + "\n  O = S +.* V")
            kernel = mt.make_kernel(spec, T="bf16")
            random = np.random.default_rng(2)
            q, k, v = (random.standard_normal((2, 1100, width)) for width in (16, 16, 24))
            left = np.exp(q[:, :40]) if scores.startswith("exp") else q[:, :40]
            k[:, 40:], v[:, 40:] = np.nan, np.nan
            found = kernel.results({"Q": q[:, :40], "K": k, "V": v, "g": np.ones((2, 1100))}, {"O": (2, 40, 24)})
            self.assertTrue(np.isfinite(found["O"]).all(), scores)

    def test_norms_of_keys(self):
        def meaning(Q, K, V, g):
            s = Q @ K.swapaxes(1, 2) / np.sqrt((K * K).sum(axis=-1))[:, None]
            e = np.exp(s - s.max(axis=-1, keepdims=True, initial=-1e30))
            return (e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)) @ V
        spec = specification("n = sqrt(+/ (K * K))\n  S = (Q +.* transpose(K)) / [b, _, j] n[b, j]\n"
                             "  O = softmax(S) +.* V")
        self.check(spec, meaning, sizes=[(70, 300), (5, 1)], kinds=("f32", "bf16"))

    def test_norms_of_results(self):
        """What reads the columns of a product again has the other side of the law too."""
        def product(Q, K, V, seen):
            return (seen * (Q @ K.swapaxes(1, 2))) @ V / 64
        def rms(x):
            return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1)
        def normalised(x):
            y = x - x.mean(axis=-1, keepdims=True)
            return y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + 1)
        def softmax(x):
            e = np.exp(x - x.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)
        cases = {
            "O = x /@(1,0) sqrt((+/ (x * x)) / f32(E) + 1)": rms,
            "c = x -@(1,0) (+/ x) / f32(E)\n  O = c /@(1,0) sqrt((+/ (c * c)) / f32(E) + 1)": normalised,
            "O = softmax(x)": softmax,
            "O = [b < B, i < N, e < E] +/ (x[b, i] * x[b, i])": lambda x: (x * x).sum(axis=-1, keepdims=True) + 0 * x,
        }
        for body, function in cases.items():
            self.check_masks(lambda mask: weights(mask, "Q +.* transpose(K)") + "\n  x = (S +.* V) / 64\n  " + body,
                             lambda Q, K, V, g, seen: function(product(Q, K, V, seen)), kinds=("f32",),
                             sizes=[(70, 300 if mt.TARGET == "device" else 1025), (65, 256), (3, 0)])


class Chained(mt.KernelTest):
    """Products of products: what one gives is what the next one sums up."""

    def test_chains(self):
        def attention(S, V):
            e = np.exp(S - S.max(axis=-1, keepdims=True))
            return (e / e.sum(axis=-1, keepdims=True)) @ V
        tril = lambda S: np.tril(S) / 16
        cases = {
            "x = S +.* V\n  O = S +.* x": lambda S, V: S @ (S @ V),
            "C = mask([_, i, j] j <= i, S)\n  x = C +.* V\n  O = C +.* x": lambda S, V: tril(16 * S) @ (tril(16 * S) @ V),
            "x = softmax(S) +.* V\n  O = S +.* x": lambda S, V: S @ attention(S, V),
            "x = V + S +.* V\n  O = x + mask([_, i, j] j <= i, S) +.* x": lambda S, V: (np.eye(len(S[0])) + tril(16 * S)) @ (V + S @ V),
            "y = S +.* V\n  x = y /@(1,0) sqrt((+/ (y * y)) / f32(E) + 1)\n  O = softmax(S) +.* x":
                lambda S, V: attention(S, (lambda y: y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + 1))(S @ V)),
        }
        for body, of in cases.items():
            spec = ("kernel k[H, N; T : float = f32, D = 16, E = 24](Q : T[H, N, D], K : T[H, N, D], V : T[H, N, E]) -> O : T[H, N, E]"
                    f" {{\n  S = (Q +.* transpose(K)) / 16\n  {body}\n}}\n")
            kernel = mt.make_kernel(spec)
            for n in (1, 70) if mt.TARGET == "device" else (1, 70, 300, 1100):
                random = np.random.default_rng(n)
                inputs = {name: random.standard_normal((2, n, width)) for name, width in (("Q", 16), ("K", 16), ("V", 24))}
                seen = kernel.seen_by_kernel(inputs)
                wanted = {"O": of(seen["Q"] @ seen["K"].swapaxes(1, 2) / 16, seen["V"])}
                self.assert_close(kernel.results(inputs, {"O": (2, n, 24)}), wanted, 4e-6, f"{n} {body}")


class Projected(mt.KernelTest):
    """Sums of products over heads, columns and both, with what one matrix more makes of them."""

    def check(self, body, meaning, kinds=("f32", "bf16"), sizes=((70, 300), (5, 257), (3, 1))):
        spec = ("kernel k[H, N, M; T : float = bf16, D = 16, E = 24, C = 40](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, E], W : T[H, E, C])"
                f" -> O : T[N, C] {{\n  {body}\n}}\n")
        for kind in kinds:
            kernel = mt.make_kernel(spec, T=kind)
            for n, m in sizes:
                random = np.random.default_rng(n + m)
                inputs = {name: random.standard_normal(shape) for name, shape in
                          (("Q", (3, n, 16)), ("K", (3, m, 16)), ("V", (3, m, 24)), ("W", (3, 24, 40)))}
                wanted = {"O": meaning(**kernel.seen_by_kernel(inputs))}
                found = kernel.results(inputs, {"O": (n, 40)})
                self.assert_close(found, wanted, {"f32": 4e-6, "bf16": 8e-3}[kind], f"{kind} {n} {m} {body}")

    def test_heads(self):
        def attention(Q, K, V, seen):
            s = np.where(seen, Q @ K.swapaxes(1, 2), -np.inf)
            e = np.exp(s - s.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True) @ V
        def causal(n, m):
            return np.arange(m) <= np.arange(n)[:, None] + max(m - n, 0)
        over = "\n  O = [i < N, c < C] +/ [h < H] (+/ [e < E] (x[h, i, e] * W[h, e, c]))"
        project = lambda x, W: np.einsum("hie,hec->ic", x, W)
        S = "Q +.* transpose(K)"
        self.check(f"x = softmax({S}) +.* V{over}", lambda Q, K, V, W: project(attention(Q, K, V, True), W))
        self.check(f"x = softmax(mask([_, i, j] j <= i + max(M - N, 0), {S})) +.* V{over}",
                   lambda Q, K, V, W: project(attention(Q, K, V, causal(Q.shape[1], K.shape[1])), W))
        self.check(f"x = ({S}) +.* V{over}", lambda Q, K, V, W: project((Q @ K.swapaxes(1, 2)) @ V, W), kinds=("f32",))
        norm = lambda x: x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-3)
        self.check(f"y = softmax({S}) +.* V\n  x = y /@(1,0) sqrt((+/ (y * y)) / f32(E) + 1e-3){over}",
                   lambda Q, K, V, W: project(norm(attention(Q, K, V, True)), W))

    def test_one_at_a_time(self):
        """A row's own columns are carried where no result has them."""
        spec = """kernel k[H, N, M; D = 16, E = 24](Q : f32[H, N, D], K : f32[H, M, D], V : f32[H, M, E]) -> (s : f32[H, N], t : f32[H, N]) {
          S = Q +.* transpose(K)
          x = softmax(S) +.* V
          s = +/ (x * x)
          t = max/ x
        }
        """
        kernel = mt.make_kernel(spec)
        for n, m in ((70, 300), (5, 1)):
            random = np.random.default_rng(n)
            inputs = {name: random.standard_normal(shape) for name, shape in (("Q", (2, n, 16)), ("K", (2, m, 16)), ("V", (2, m, 24)))}
            def meaning(Q, K, V):
                e = np.exp(Q @ K.swapaxes(1, 2))
                x = e / e.sum(axis=-1, keepdims=True) @ V
                return {"s": (x * x).sum(axis=-1), "t": x.max(axis=-1)}
            self.assert_close(kernel.results(inputs, {"s": (2, n), "t": (2, n)}), meaning(**kernel.seen_by_kernel(inputs)), 4e-6, f"{n} {m}")


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main()
