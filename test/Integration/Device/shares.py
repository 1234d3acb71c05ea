# RUN: %python %s
"""Blocks of a last round in two parts, on the interpreter of GPU programs: the bits are those of whole blocks, in
whatever order blocks run, and near NumPy in float64."""
import json
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

INPUTS = "Q : T[H, N, D], K : T[H, M, D], V : T[H, M, D], scale : f32"


def spec(body, results="O : T[H, N, D]", element="bf16"):
    return f"kernel k[H, N, M; D = 64, T : float = {element}]({INPUTS}) -> ({results})\n{{\n{body}\n}}\n"


SCORES = "  S = (Q +.* transpose(K)) * scale\n"
SPECS = {
    "softmax": spec(SCORES + "  O = softmax(S) +.* V"),
    "f16": spec(SCORES + "  O = softmax(S) +.* V", element="f16"),
    "sigmoid": spec(SCORES + "  O = sigmoid(S) +.* V"),
    "logsumexp": spec(SCORES + "  P = softmax(S)\n  O = P +.* V\n  L = logsumexp(S)", "O : T[H, N, D], L : f32[H, N]"),
    "truths": spec(SCORES + "  O = softmax(S) +.* V\n  A = or/ (S > 2.0)", "O : T[H, N, D], A : bool[H, N]"),
}


def reference(q, k, v, scale):
    s = np.float32(scale) * (q @ k.transpose(0, 2, 1))
    p = np.exp(s - s.max(-1, keepdims=True))
    softmax = p @ v / p.sum(-1, keepdims=True)
    return {"softmax": softmax, "f16": softmax, "logsumexp": softmax, "truths": softmax,
            "sigmoid": (1 / (1 + np.exp(-s))) @ v, "L": np.log(p.sum(-1)) + s.max(-1), "A": (s > 2).any(-1)}


class Shares(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="moa-test-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    flags = []

    def schedule(self, shares, keys=16):
        """The printed one with tiles of few keys, for a machine of few multiprocessors."""
        made = mt.tool("moa-codegen", self.path("k.moa"), *self.flags, "--target=cuda", "--schedule=print")
        self.assertEqual(made.returncode, 0, made.stderr)
        schedule = json.loads(made.stdout)
        for nest in schedule["nests"]:
            if "pipeline" not in nest:
                continue
            nest["folds"][-1]["shared"] = keys
            can = len(schedule["nests"]) == 1 or "shares" in nest["pipeline"]
            nest["pipeline"].pop("shares", None)
            if shares and can:
                nest["pipeline"]["shares"] = shares
        with open(self.path("k.json"), "w", encoding="utf-8") as file:
            json.dump(schedule, file)

    def run_kernel(self, names, seed=0, inputs="QKV"):
        words = [f"{x}={self.path(x + '.npy')}" for x in inputs] + [f"scale={self.scale}"]
        for name in names:
            words += ["-o", f"{name}={self.path(name + '.out.npy')}"]
        done = mt.tool("moa-run", self.path("k.moa"), *self.flags, "--target=device", f"--schedule={self.path('k.json')}",
                       f"--interleaving={seed}", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        copied = {word.split()[0]: int(word.split()[1]) for line in (done.stdout + done.stderr).splitlines()
                  if line.startswith("tiles") for word in line.split("copied:")[1].split(";")[0].split(",")}
        found = {name: np.load(self.path(name + ".out.npy")) for name in names}
        return {name: x.view(np.uint16) if x.dtype.kind == "V" else x for name, x in found.items()}, copied

    def prepare(self, text, kind, h, n, m):
        with open(self.path("k.moa"), "w", encoding="utf-8") as file:
            file.write(text)
        rng = np.random.default_rng([h, n, m])
        arrays = [rng.standard_normal(shape) for shape in ((h, n, 64), (h, m, 64), (h, m, 64))]
        # Scores that grow along the keys, so that references move behind a cut.
        arrays[1] *= np.linspace(0.5, 2.5, m)[:, None]
        stored = [mt.encode(x, kind) for x in arrays]
        for name, x in zip("QKV", stored):
            np.save(self.path(name + ".npy"), x)
        self.scale = 0.125
        return reference(*(mt.decode(x, kind).astype(np.float64) for x in stored), self.scale)

    def compare(self, name, h, n, m, shares, orders=2):
        kind = "f16" if name == "f16" else "bf16"
        exact = self.prepare(SPECS[name], kind, h, n, m)
        names = ["O"] + [x for x in "LA" if f" {x} : " in SPECS[name]]
        self.schedule(0)
        whole, tiles = self.run_kernel(names)
        found = mt.decode(whole["O"], kind).astype(np.float64)
        self.assertLess(np.linalg.norm(found - exact[name]), 4e-3 * np.linalg.norm(exact[name]))
        if "L" in names:
            np.testing.assert_allclose(whole["L"], exact["L"], rtol=1e-4, atol=1e-4)
        if "A" in names:
            self.assertGreater((whole["A"].astype(bool) == exact["A"]).mean(), 0.99)
        self.schedule(shares)
        again = []
        for seed in range(orders):
            parts, counts = self.run_kernel(names, seed)
            again.append(counts)
            for x in names:
                self.assertTrue(np.array_equal(whole[x], parts[x]), (name, x, n, m, shares, seed))
        return tiles, again

    def test_bits(self):
        for name in SPECS:
            with self.subTest(name=name):
                # 8 blocks of 192 rows on 5 multiprocessors: 3 of them in two parts.
                tiles, again = self.compare(name, 2, 700, 300, 5, orders=4)
                rows = again[0]["Q"] - tiles["Q"]
                self.assertEqual(rows, 3)
                # In order the latter parts go on where the former have left off; out of order some do it all.
                self.assertEqual(again[0]["K"], tiles["K"])
                self.assertGreater(max(counts["K"] for counts in again), tiles["K"])

    def test_sizes(self):
        """No whole round, no rest, few keys, and a rest of which little would be saved: no parts."""
        for h, n, m, shares, parts in ((1, 500, 300, 5, 0), (2, 900, 300, 5, 0), (2, 700, 255, 5, 0), (2, 700, 256, 5, 3),
                                       (1, 1000, 300, 4, 2), (3, 1300, 300, 2, 1), (1, 2300, 300, 13, 0), (7, 400, 257, 8, 5),
                                       (99, 1, 256, 50, 49), (101, 1, 256, 51, 0), (99, 1, 256, 2, 1), (101, 1, 256, 2, 0)):
            with self.subTest(h=h, n=n, m=m, shares=shares):
                tiles, again = self.compare("softmax", h, n, m, shares)
                self.assertEqual(again[0]["Q"] - tiles["Q"], parts)

    def test_eight_bits(self):
        """Of a plan, of which heads are chosen, taking turns; one head has no scale that its elements fit, and is as
        written. The last blocks, which have parts, are of the second head."""
        text = SPECS["softmax"].replace("D = 64", "D = 128").replace("D])\n", "D] within 6e-2 relative sampled)\n", 1)
        self.flags = ["--spend=256"]
        rng = np.random.default_rng(3)
        with open(self.path("k.moa"), "w", encoding="utf-8") as file:
            file.write(text)
        arrays = [rng.standard_normal((2, n, 128)) for n in (400, 2100, 2100)]
        self.scale = 128 ** -0.5
        # 6 blocks of 192 rows on 4 multiprocessors, and 8 of 128 rows on 5.
        for written, shares, name, parts in ((0, 4, "Q_i8", 2), (1, 5, "Q", 3)):
            for array, x in zip("QKV", arrays):
                stored = x.copy()
                if array == "Q":
                    stored[written, 5, 3] = 1e30
                np.save(self.path(array + ".npy"), mt.to_bf16(stored))
            self.schedule(0, 128)
            whole, tiles = self.run_kernel("O")
            self.schedule(shares, 128)
            for seed in range(2):
                found, counts = self.run_kernel("O", seed)
                self.assertTrue(np.array_equal(whole["O"], found["O"]), (written, shares, seed))
                self.assertEqual(counts[name] - tiles[name], parts)

    def test_empty(self):
        """A range that is empty by a negative extent has no parts, as a host says of the grid and kernels of themselves."""
        text = ("kernel k[H, N, M, A; D = 64](Q : bf16[H, N, D], K : bf16[H, M, D], V : bf16[H, M, D], x : f32[A], scale : f32)"
                " -> (O : bf16[H, N, D])\n{\n"
                "  Kp = [h < H, j < M - A, d < D] K[h, j, d]\n  Vp = [h < H, j < M - A, d < D] V[h, j, d]\n"
                "  O = softmax((Q +.* transpose(Kp)) * (scale + 0.0 * (+/ x))) +.* Vp\n}\n")
        for n, m, a, shares, keys in ((700, 10, 300, 5, 16), (700, 300, 310, 5, 16), (700, 400, 100, 5, 16)):
            with self.subTest(m=m, a=a):
                self.prepare(text, "bf16", 2, n, m)
                np.save(self.path("x.npy"), np.ones(a, np.float32))
                self.schedule(0, keys)
                whole, _ = self.run_kernel("O", inputs="QKVx")
                self.schedule(shares, keys)
                found, _ = self.run_kernel("O", inputs="QKVx")
                self.assertTrue(np.array_equal(whole["O"], found["O"]))

    def test_refusal(self):
        """Blocks that visit different keys have no parts."""
        self.prepare(SPECS["softmax"].replace("softmax(S)", "softmax(mask([_, i, j] j <= i, S))"), "bf16", 1, 8, 8)
        self.schedule(5)
        done = mt.tool("moa-codegen", self.path("k.moa"), "--target=cuda", f"--schedule={self.path('k.json')}", "-o",
                       self.path("k.cu"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("asks for shares, but its blocks visit different indices", done.stderr)
        self.assertFalse(os.path.exists(self.path("k.cu")))


if __name__ == "__main__":
    unittest.main()
