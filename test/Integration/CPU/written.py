# RUN: %python %s
# RUN: env MOA_TEST_TARGET=device %python %s
"""What kernels lose as they are written, of results with sampled tolerances: NAME_shown measures it on some rows. Against NumPy in
float64."""
import ctypes
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import plans
import promise

D = 64
SCALE = np.float32(D ** -0.5)
PLAIN = """
kernel k[H, N, M; T : float = bf16, R : float = f32, D = 64](Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32)
    -> O : R[H, N, D] within %s relative sampled
{ O = softmax((Q +.* transpose(K)) * scale) +.* V }
"""
CAUSAL = PLAIN.replace("(Q +.* transpose(K)) * scale", "mask([_, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)")
# Keys that heads share, a second result, and weights that are no exponentials.
GROUPED = """
kernel k[H, G, N, M; T : float = bf16, D = 64](Q : T[H, N, D], K : T[G, M, D], V : T[G, M, D], scale : f32)
    -> (O : f32[H, N, D] within %s relative sampled, lse : f32[H, N] within 1e-2 relative sampled)
  require H %% G == 0
{
  Kh  = [h < H] K[h / (H/G)]
  Vh  = [h < H] V[h / (H/G)]
  S   = (Q +.* transpose(Kh)) * scale
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""
LINEAR = PLAIN.replace("{ O = softmax((Q +.* transpose(K)) * scale)", """{
  S = (Q +.* transpose(K)) * scale
  P = (S + 1.0) / 64.0
  O = P""")
NARROW = PLAIN.replace("f32, D", "bf16, D")


def cast(x, kind):
    return mt.decode(mt.encode(x, kind), kind)


def pairs(kind, apart, n=512, m=512, seed=0):
    """Heads whose keys stand in pairs so far apart, with opposite values: weights are off by what is not alike, and nearly all of
    the rest cancels. None: any keys and values."""
    rng = np.random.default_rng(seed)
    arrays = []
    for distance in apart:
        q, k, v = (rng.standard_normal((s, D)) for s in (n, m, m))
        if distance is not None:
            k, v = cast(k, kind), cast(v, kind)
            k[1::2] = k[::2] + distance * rng.standard_normal(k[::2].shape)
            v[1::2] = -v[::2]
        arrays.append((q, k, v))
    return tuple(cast(np.stack(x), kind) for x in zip(*arrays))


def attention(q, k, v, causal=False, weights=None):
    s = np.einsum("hnd,hmd->hnm", q, np.repeat(k, len(q) // len(k), 0)) * SCALE
    if causal:
        n, m = s.shape[1:]
        s = np.where(np.arange(m) <= np.arange(n)[:, None] + m - n, s, -np.inf)
    p = weights(s) if weights else np.exp(s - s.max(-1, keepdims=True))
    total = 1 if weights else p.sum(-1, keepdims=True)
    return (p / total) @ np.repeat(v, len(q) // len(v), 0)


def errors(found, exact):
    return np.sqrt(((found - exact) ** 2).sum((1, 2)) / (exact ** 2).sum((1, 2)))


class Written(plans.PlansTest):

    def run_kernel(self, text, epsilon, arrays, flags=(), shapes=None, **settings):
        kernel = self.make_kernel(text % epsilon, *flags, **settings)
        kernel.accepted = (mt.OK, mt.NOT_SHOWN)
        inputs = dict(zip("QKV", arrays), scale=SCALE)
        run = kernel.run(inputs, shapes or {"O": arrays[0].shape})
        return kernel, mt.decode(run["O"], kernel.by_name["O"].kind)

    def check(self, text, arrays, exact, epsilon, flags=(), shapes=None, most=1.65, **settings):
        """Heads are told of where the error is above the tolerance, of which no head is near. Returns the kernel and how
        many times the error of the first such head is estimated: of one head no more than that is promised (promise.py)."""
        kernel, found = self.run_kernel(text, epsilon, arrays, flags, shapes, **settings)
        off = errors(found, exact)
        beyond = np.flatnonzero(off > float(epsilon))
        self.assertTrue((np.abs(np.log(off / float(epsilon))) > np.log(most)).all(), off)  # none is near it
        self.assertEqual(kernel.code, mt.NOT_SHOWN if beyond.size else mt.OK, off)
        times = None
        if beyond.size:
            said = re.search(r"O is not shown to be within \S+ relative sampled: the estimate of its errors is (\S+) at \[(\d+)\], and too "
                             r"large at (\d+) of (\d+) indices of \[H\]", kernel.told)
            self.assertEqual([int(said[k]) for k in (2, 3, 4)], [beyond[0], beyond.size, len(off)])
            times = float(said[1]) / off[beyond[0]]
            print(f"{epsilon} {settings}: estimated {times:.2f} times the error")
        return kernel, times

    def test_kinds(self):
        """On both sides of a tolerance, and what is measured itself."""
        for kind, rounded, limits in (("bf16", 1.6e-3, ("3.3e-3", "1.175e-2", "3.8e-2", "5e-1")), ("f16", 2.0e-4, ("1.48e-3", "4.75e-3", "5e-1"))):
            arrays = pairs(kind, (None, 0.3, 0.1, 0.03, 0.01))
            exact = attention(*arrays)
            for epsilon in limits:
                with self.subTest(kind=kind, epsilon=epsilon):
                    self.check(PLAIN, arrays, exact, epsilon, T=kind)
            off = errors(self.run_kernel(PLAIN, "5e-1", arrays, T=kind)[1], exact)
            self.assertLess(abs(off[0] / rounded - 1), 0.15)
            self.assertGreater(off[4], 100 * off[0])

    def test_masks_and_groups(self):
        arrays = pairs("bf16", (None, 0.03), n=512, m=700)
        self.check(CAUSAL, arrays, attention(*arrays, causal=True), "1e-2")
        # Results of rows that see a key without its pair are by far the largest, so that what 64 rows say of all varies more.
        times = []
        for seed in range(40 if mt.TARGET == "cpu" else 20):
            arrays = pairs("bf16", (None, 0.03), n=512, m=700, seed=seed)
            times.append(self.check(CAUSAL, arrays, attention(*arrays, causal=True), "6e-3", most=2.5)[1])
        promise.check(self, 1 / np.array(times), "causal")
        self.assertLess(np.median(times), 1.5, times)

    def test_estimates(self):
        """Of many heads few are above what is estimated, and estimates are not far above errors."""
        times = []
        for seed in range(40 if mt.TARGET == "cpu" else 20):
            arrays = pairs("bf16", (0.03,), seed=seed)
            times.append(self.check(PLAIN, arrays, attention(*arrays), "1e-2", most=1.3)[1])
        promise.check(self, 1 / np.array(times), "pairs of keys")
        self.assertLess(np.median(times), 1.5, times)

    def test_groups(self):
        q, k, v = pairs("bf16", (None, 0.03, None, None))
        self.check(GROUPED, (q, k[:2], v[:2]), attention(q, k[:2], v[:2]), "1e-2", shapes={"O": q.shape, "lse": q.shape[:2]})

    def test_other_weights(self):
        arrays = pairs("bf16", (None, 0.01))
        exact = attention(*arrays, weights=lambda s: (1 + s) / 64)
        self.check(LINEAR, arrays, exact, "2e-2", ("--disable-rule=R7",))

    def test_unmeasured(self):
        """Nothing measures sums of keys and values that are rounded, nor rows in front of heads, and each call says so."""
        arrays = pairs("bf16", (None, 0.01))
        exact = attention(*arrays, weights=lambda s: (1 + s) / 64)
        rounded = pairs("bf16", (None, None))
        rows = PLAIN.replace("H, N", "N, H").replace("H, M", "M, H").replace("{ O =", """{
  Qh = transpose(Q, [1, 0, 2])
  Kh = transpose(K, [1, 0, 2])
  Vh = transpose(V, [1, 0, 2])
  O = transpose(""").replace("(Q +.* transpose(K))", "(Qh +.* transpose(Kh))").replace("+.* V }", "+.* Vh, [1, 0, 2])\n}")
        for text, given, expected in ((LINEAR, arrays, exact),
                                      (rows.replace("[N, H, M, H, M;", "[H, N, M;"), [x.transpose(1, 0, 2) for x in rounded],
                                       attention(*rounded).transpose(1, 0, 2))):
            with self.subTest(text=text):
                kernel, found = self.run_kernel(text, "2e-2", given)
                self.assertEqual(kernel.code, mt.NOT_SHOWN)
                self.assertLess(errors(found, expected).max(), 2e-2)  # everything was computed all the same

    def test_unmeasured_before(self):
        """What a nest loses that another one reads, and f16 beside bf16, of which the types say too little."""
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((2, 256, D)) for _ in range(3))
        k[:, 1::2] = k[:, ::2] + 0.003 * rng.standard_normal((2, 128, D))
        v[:, 1::2] = -v[:, ::2]
        w = rng.standard_normal((2, D, D))
        q, k, v, w = (cast(x, "bf16") for x in (q, k, v, w))
        header = PLAIN.replace("V : T[H, M, D]", "V : T[H, M, D], W : T[H, D, D]").split("{ O")[0]
        kernel = self.make_kernel(header % "2e-2" + """{
  A = softmax((Q +.* transpose(K)) * scale) +.* V
  O = (A / (1.0 + exp(-A))) +.* W
}""")
        kernel.accepted = (mt.NOT_SHOWN,)
        kernel.run({"Q": q, "K": k, "V": v, "W": w, "scale": SCALE}, {"O": (2, 256, D)})
        mixed = PLAIN.replace("V : T[H, M, D]", "V : f16[H, M, D], W : bf16[H, M, D]").replace("relative ", "").split("{ O")[0]
        kernel = self.make_kernel(mixed % "2e-2" + """{
  P = softmax(mask([_, i, j] j <= i, (Q +.* transpose(K)) * scale))
  O = (P +.* V) + (P +.* W)
}""", T="f16")
        kernel.accepted = (mt.NOT_SHOWN,)
        kernel.run({"Q": q, "K": cast(k, "f16"), "V": cast(v, "f16"), "W": v, "scale": SCALE}, {"O": (2, 256, D)})

    def test_narrow_results(self):
        arrays = pairs("bf16", (None, 0.03))
        self.check(NARROW, arrays, attention(*arrays), "1e-2")

    def test_sizes(self):
        """The estimate does not depend on the scale of values; of results that are 0 there is no error."""
        q, k, v = pairs("bf16", (None, 0.03))
        exact = attention(q, k, v)
        for size in (2.0 ** 40, 2.0 ** -40):
            self.check(PLAIN, (q, k, v * size), exact * size, "1e-2")
        kernel, found = self.run_kernel(PLAIN, "1e-2", (q, k, 0 * v))
        self.assertEqual((kernel.code, np.abs(found).max()), (mt.OK, 0))

    def test_beside_others(self):
        """Results with tolerances for every input, with none, and of which nothing is ever shown, in the same nest."""
        arrays = pairs("bf16", (None, 0.03))
        exact, x = attention(*arrays), np.full(arrays[0].shape[:2], 30.0)
        said = r"O is not shown to be within 1e-2 relative sampled: the estimate of its errors is (\S+) at \[1\], and too large at 1 of 2 indices"
        for within, also in ((" within 1e-6", "L is not shown to be within 1e-6: the bound on its errors is"), ("", None),
                             (" within 1e-7 sampled", "L is not shown to be within 1e-7 sampled: as it is written it may be off by up to")):
            text = PLAIN.replace("scale : f32)\n    -> O", "scale : f32, X : f32[H, N])\n    -> (O").replace(
                "relative sampled\n{ O", f"relative sampled, L : f32[H, N]{within})\n{{ L = [h < H, n < N] exp(X[h, n])\n  O") % "1e-2"
            kernel = self.make_kernel(text)
            kernel.accepted = (mt.NOT_SHOWN,)
            run = kernel.run(dict(zip("QKV", arrays), scale=SCALE, X=x), {"O": arrays[0].shape, "L": x.shape})
            self.assertRegex(kernel.told, said)
            found = float(re.search(said, kernel.told)[1])
            self.assertLess(abs(np.log(found / errors(mt.decode(run["O"], "f32"), exact)[1])), np.log(1.5))
            self.assertEqual(kernel.told.count(" is not shown to be "), 1 if also is None else 2)
            self.assertIn(also or "", kernel.told)

        # What is rounded for one result does not count for others.
        q, k, v = pairs("bf16", (None, None, None, None))
        text = GROUPED.replace("lse : f32[H, N] within 1e-2 relative sampled", "lse : f32[H, N] within 1e-3 sampled")
        kernel, found = self.run_kernel(text, "1e-2", (q, k[:2], v[:2]), shapes={"O": q.shape, "lse": q.shape[:2]})
        self.assertEqual(kernel.code, mt.OK)
        self.assertLess(errors(found, attention(q, k[:2], v[:2])).max(), 3e-3)

    @unittest.skipUnless(mt.TARGET == "cpu", "of entry points of a CPU")
    def test_entry_points(self):
        """What NAME_shown finds is no part of a call; it may come first, without a message, and with more threads than the call had."""
        arrays = pairs("bf16", (None, 0.03))
        kernel = self.make_kernel(PLAIN % "1e-2")
        values, _ = kernel.bind(dict(zip("QKV", arrays), scale=SCALE), {"O": arrays[0].shape})
        omp = ctypes.CDLL(mt.LIBOMP)
        before = omp.omp_get_max_threads()
        omp.omp_set_num_threads(1)
        workspace = mt.aligned(kernel.workspace_bytes(values))
        workspace[:] = 0x5A
        self.assertEqual(kernel.launch(values, workspace), mt.OK)
        self.assertTrue((workspace[:1024] == 0x5A).all())  # temporaries, all of which only tell
        first = kernel.shown(values)
        self.assertEqual(first[0], mt.NOT_SHOWN)
        self.assertFalse((workspace[:1024] == 0x5A).all())
        omp.omp_set_num_threads(8)
        self.assertGreater(kernel.workspace_bytes(values), workspace.size)
        self.assertEqual(kernel.shown(values), first)
        self.assertEqual(kernel.shown(values, size=64)[0], mt.WORKSPACE)
        omp.omp_set_num_threads(before)
        for n in (0, 100):
            code = kernel.entry("_shown", ctypes.c_int32)(*kernel.arguments(values), ctypes.c_void_p(workspace.ctypes.data),
                                                          ctypes.c_size_t(workspace.size), None, None, ctypes.c_size_t(n))
            self.assertEqual(code, mt.NOT_SHOWN)
        workspace[:] = 0x5A
        kernel.given = workspace, ctypes.c_void_p(workspace.ctypes.data), workspace.size
        self.assertEqual(kernel.shown(values), first)

    @unittest.skipUnless(mt.TARGET == "cpu", "of code for a CPU")
    def test_moa_run(self):
        """It fails behind its outputs and figures."""
        arrays = pairs("f16", (None, 0.01))
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "k.moa")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PLAIN % "5e-3")
            words = [f"scale={SCALE}", "--set", "T=f16", "-o", f"O={directory}/O.npy"]
            for name, array in zip("QKV", arrays):
                np.save(f"{directory}/{name}.npy", array.astype(np.float16))
                words.append(f"{name}={directory}/{name}.npy")
            for more, code in (((), 1), (("-O0", "--repeat=2"), 1), (("--no-tolerance-check",), 0), (("--within", "O=1e-1,relative,sampled"), 0)):
                ran = mt.tool("moa-run", path, *words, *more)
                self.assertEqual(ran.returncode, code, ran.stderr)
                self.assertIn("run ", ran.stdout)
                self.assertLess(errors(np.load(f"{directory}/O.npy"), attention(*arrays))[1], 4e-2)
                if code:
                    self.assertRegex(ran.stderr, r"moa-run: error: O is not shown to be within 5e-3 relative sampled: the estimate of its errors is "
                                                 r"\S+e-02 at \[1\], and too large at 1 of 2 indices of \[H\]\. It was computed all the same")

    def test_components(self):
        """Of errors of elements what f16 loses of small weights is measured, beside a key of more weight whose value is 0; the rest, and
        all of bf16, is what the types say."""
        text = PLAIN.replace("relative ", "")
        ratios = []
        for seed in range(10 if mt.TARGET == "cpu" else 1):
            heads = []
            for gap in (None, 2.0 ** 12, 2.0 ** 30):  # of the largest weight and the next ones
                q, k, v = pairs("f16", (None,), seed=seed)
                if gap:
                    q[..., 0], k[..., 0], k[:, 0] = 4, 0, 0
                    k[:, 0, 0], v[:, 0] = np.log(gap) / (4 * SCALE), 0
                heads.append((q, k, v))
            arrays = tuple(cast(np.concatenate(x), "f16") for x in zip(*heads))
            exact, size = attention(*arrays), attention(arrays[0], arrays[1], np.abs(arrays[2]))
            for epsilon, beyond in (("2e-3", 2), ("3", None)):
                kernel, found = self.run_kernel(text, epsilon, arrays, T="f16")
                off = (np.abs(found - exact) / size).max((1, 2))
                self.assertLess(off[:2].max(), 1e-3)
                self.assertGreater(off[2], 0.2)
                self.assertEqual(kernel.code, mt.NOT_SHOWN if beyond else mt.OK)
                if beyond:
                    said = re.search(r"O is not shown to be within 2e-3 sampled: the estimate of its errors is (\S+) at \[2\], and too large at 1 of 3 "
                                     r"indices of \[H\]", kernel.told)
                    ratios.append((off[2] - 1e-3) / float(said[1]))
        self.assertGreater(np.median(ratios), 0.25, ratios)
        if len(ratios) > 4:
            promise.check(self, ratios, "weights that f16 does not hold")
        kernel, _ = self.run_kernel(text, "4e-3", arrays)
        self.assertEqual((kernel.code, kernel.has_shown() if mt.TARGET == "cpu" else False), (mt.OK, False))

    def test_few(self):
        """Few rows or keys: of 64 rows all are measured, one in decoding, of more some."""
        for n, m in ((1, 512), (7, 40), (63, 254), (64, 512), (65, 512), (127, 512), (130, 254), (255, 512), (512, 254)):
            with self.subTest(rows=n, keys=m):
                arrays = pairs("bf16", (None, 0.01), n, m)
                exact = attention(*arrays)
                _, times = self.check(PLAIN, arrays, exact, "1e-2", most=2)
                # Of 64 rows all are measured: roundings are the same, or, where another maximum is known at the time, others of
                # the same size. The norm of n·64 independent errors has a relative deviation of 1/√(2·64·n), and rounding some
                # hundred weights anew adds half of that: 0.10/√n. Of the quotient of two it is 0.14/√n, and 4.9 deviations,
                # which a correct program exceeds once in a million runs, are 0.7/√n. On a GPU the maximum depends on rows beside.
                if n == 64 or (n < 64 and mt.TARGET == "cpu"):
                    print(f"{n} rows: {times:.3f}")
                    self.assertLess(abs(times - 1), 0.7 / n ** 0.5)
        for n, m in ((0, 512), (5, 0)):
            kernel, found = self.run_kernel(PLAIN, "1e-2", pairs("bf16", (0.01,), n, m))
            self.assertEqual((kernel.code, np.abs(found).sum()), (mt.OK, 0))

    def test_beside_plans(self):
        """Where plans are tried too, and are near enough nowhere: 8 bits of any processor are off by 9e-3 and more."""
        arrays = pairs("bf16", (None, 0.03))
        self.check(PLAIN, arrays, attention(*arrays), "4e-3", flags=("--spend=256",))

    def test_not_asked_for(self):
        arrays = pairs("bf16", (0.03,))
        kernel, _ = self.run_kernel(PLAIN, "1e-2", arrays, flags=("--no-tolerance-check",))
        self.assertEqual(kernel.code, mt.OK)
        # No rounding of weights, and errors of elements: nothing is measured.
        for text in (PLAIN.replace("T : float = bf16", "T : float = f32"), PLAIN.replace("relative ", "")):
            kernel, _ = self.run_kernel(text, "1e-2", arrays)
            self.assertEqual(kernel.code, mt.OK)


if __name__ == "__main__":
    mt.compile_soonest()
    mt.main()
