# RUN: %python %s
"""Few rows of many heads (onf-pack-rows), against NumPy.

Grouped heads, heads that share all keys, and heads as the only rows, with as many queries as the version for
few rows takes, with fewer and with more, over lengths and masks that leave parts empty. A row has the same bits
alone and in a batch. On a CPU the form of a GPU is made by hand and run.
"""
import os
import unittest

import numpy as np

import moa_testing as mt

BODY = """    -> (O : T[B, H, N, D], lse : f32[B, H, N])
  REQUIRE
{
  Kh = [b < B, h < H] K[b, GROUP]
  Vh = [b < B, h < H] V[b, GROUP]
  S = mask([b, h, i, j] j <= i + len[b] - N, (Q +.* transpose(Kh)) * scale + [_, h, i, j] slope[h] * (j - i))
  O = softmax(S) +.* Vh
  lse = logsumexp(S)
}
"""
HEAD = """kernel k[B, H, G, N, M; T : float = bf16, D = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, D], scale : f32, len : i32[B], slope : f32[H])
"""
GROUPED = HEAD + BODY.replace("REQUIRE", "require H % G == 0").replace("GROUP", "h / (H/G)")
THREES = HEAD + BODY.replace("REQUIRE", "require H == 3*G").replace("GROUP", "h / 3")
SHARED = (HEAD.replace(" G,", "").replace("G, M", "M") + BODY.replace("  REQUIRE\n", "")).replace(", GROUP", "")
ALONE = """kernel k[B, H, G, M; T : float = bf16, D = 64](
    Q : T[B, H, D], K : T[B, G, M, D], V : T[B, G, M, D], scale : f32, len : i32[B], slope : f32[H])
    -> (O : T[B, H, D], lse : f32[B, H])
  require H % G == 0
{
  Kh = [b < B, h < H] K[b, h / (H/G)]
  Vh = [b < B, h < H] V[b, h / (H/G)]
  S = mask([b, h, j] j < len[b], ([b, h] Kh[b, h] +.* Q[b, h]) * scale + [_, h, j] slope[h] * j)
  O = [b, h] softmax(S[b, h]) +.* Vh[b, h]
  lse = logsumexp(S)
}
"""


class FewRows(mt.DirectoryTest, mt.KernelTest):

    def kernel(self, spec):
        """The kernel as the target makes it or, on a CPU, as a GPU's with short parts."""
        if mt.TARGET != "cpu":
            return mt.make_kernel(spec)
        self.write("k.moa", spec)
        paths = [os.path.join(self.directory, name) for name in ("k.moa", "k.mlir", "packed.mlir")]
        for words in (["moa-codegen", paths[0], "--emit=onf", "-o", paths[1]],
                      ["moa-opt", paths[1], "--onf-pack-rows=unit=16 longest=64 half=64", "--onf-verify", "-o", paths[2]]):
            made = mt.tool(*words)
            self.assertEqual(made.returncode, 0, made.stderr)
        with open(paths[2], encoding="utf-8") as file:
            self.assertIn("_parts", file.read())
        return mt.make_kernel(paths[2])

    @staticmethod
    def inputs(h, g, n, m, lengths, alone=False):
        random = np.random.default_rng(h + n + m)
        b = len(lengths)
        keys = (b, m, 64) if g == 0 else (b, g, m, 64)
        return {"Q": random.standard_normal((b, h, 64) if alone else (b, h, n, 64)), "K": random.standard_normal(keys),
                "V": random.standard_normal(keys), "scale": 0.5, "len": np.array(lengths),
                "slope": random.standard_normal(h) / 64}

    def check(self, kernel, h, g, n, m, lengths, alone=False):
        inputs = self.inputs(h, g, n, m, lengths, alone)
        b = len(lengths)
        rows = (b, h) if alone else (b, h, n)
        found = kernel.results(inputs, {"O": (*rows, 64), "lse": rows})
        exact = kernel.seen_by_kernel(inputs)
        q = exact["Q"].reshape(b, h, n, 64)
        k, v = (np.repeat(exact[x].reshape(b, -1, m, 64), h // max(g, 1), axis=1) for x in "KV")
        i, j, length = np.arange(n)[:, None], np.arange(m), np.array(lengths)[:, None, None, None]
        bias = exact["slope"][:, None, None] * (j if alone else j - i)
        s = np.where(j <= i + length - n, q @ k.swapaxes(2, 3) * 0.5 + bias, -np.inf)
        top = s.max(axis=-1, keepdims=True, initial=-1e30)
        e = np.exp(s - top)
        total = e.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = np.where(total > 0, top + np.log(total), -np.inf)[..., 0]
        wanted = {"O": (np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v).reshape(*rows, 64),
                  "lse": lse.reshape(rows)}
        self.assert_close(found, wanted, 6e-3, f"{h} {g} {n} {m} {lengths}")
        return inputs, found

    def test_groups(self):
        kernel = self.kernel(GROUPED)
        for h, g, n in ((8, 2, 1), (8, 2, 4), (8, 2, 5), (3, 3, 1), (3, 3, 2), (8, 1, 7), (8, 1, 8)):
            for m in (1, 130, 300):
                self.check(kernel, h, g, n, m, (0, 1, m // 2, m))

    def test_groups_of_three(self):
        kernel = self.kernel(THREES)
        for n in (1, 3, 4):
            self.check(kernel, 6, 2, n, 200, (200, 77))

    def test_shared_keys(self):
        kernel = self.kernel(SHARED)
        for n in (1, 5, 6):
            self.check(kernel, 5, 0, n, 200, (200, 1, 0))

    def test_heads_alone(self):
        kernel = self.kernel(ALONE)
        for h, g in ((8, 2), (5, 5), (6, 1)):
            self.check(kernel, h, g, 1, 200, (200, 1, 0), alone=True)

    def test_same_bits_in_a_batch(self):
        kernel = self.kernel(GROUPED)
        inputs, found = self.check(kernel, 8, 2, 2, 300, (300, 150, 0, 299))
        for b in range(4):
            own = {x: value if x in ("scale", "slope") else value[b:b + 1] for x, value in inputs.items()}
            alone = kernel.results(own, {"O": (1, 8, 2, 64), "lse": (1, 8, 2)})
            for x in ("O", "lse"):
                np.testing.assert_array_equal(np.asarray(alone[x])[0], np.asarray(found[x])[b])


if __name__ == "__main__":
    unittest.main()
