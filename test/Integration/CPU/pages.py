# RUN: %python %s
"""Keys in pages, against NumPy: pages of 8 to 128 keys, a table in any order, lengths that end inside a page.

Entries share pages, and pages that no table names hold NaN. Grouped heads have the version for few rows too.
"""
import unittest

import numpy as np

import moa_testing as mt

SPEC = """kernel k[B, H, G, N, C, L; T : float = bf16, D = 64, P = 16](
    Q : T[B, H, N, D], K : T[C, P, G, D], V : T[C, P, G, D],
    page : i32[B, L] in 0..C, len : i32[B], scale : f32)
    -> O : T[B, H, N, D]
  require H % G == 0
{
  Kp = [b, h < H, j < P*L] K[page[b, j / P], j % P, h / (H/G)]
  Vp = [b, h < H, j < P*L] V[page[b, j / P], j % P, h / (H/G)]
  S  = mask([b, _, i, j] j <= i + len[b] - N, (Q +.* transpose(Kp)) * scale)
  O  = softmax(S) +.* Vp
}
"""


class Pages(mt.KernelTest):

    def check(self, kernel, size, n, count, lengths):
        random = np.random.default_rng(size + n)
        b, heads, groups = len(lengths), 4, 2
        table = random.permutation(2 * b * count)[:b * count].reshape(b, count)
        table[1:, 0] = table[0, 0]
        pages = {}
        for x in "KV":
            pages[x] = np.full((2 * b * count, size, groups, 64), np.nan)
            for entry in range(b):
                for place in table[entry, :-(-lengths[entry] // size)]:
                    pages[x][place] = random.standard_normal((size, groups, 64))
        inputs = {"Q": random.standard_normal((b, heads, n, 64)), **pages, "page": table, "len": np.array(lengths),
                  "scale": 0.3}
        found = kernel.results(inputs, {"O": (b, heads, n, 64)})
        exact = kernel.seen_by_kernel(inputs)
        wanted = np.zeros((b, heads, n, 64))
        for entry, length in enumerate(lengths):
            k, v = (np.repeat(exact[x][table[entry]].reshape(count * size, groups, 64)[:length], 2, axis=1)
                    .swapaxes(0, 1) for x in "KV")
            s = exact["Q"][entry] @ k.swapaxes(1, 2) * 0.3
            i, j = np.arange(n)[:, None], np.arange(length)
            s = np.where(j <= i + length - n, s, -np.inf)
            e = np.exp(s - s.max(axis=-1, keepdims=True, initial=-1e30))
            total = e.sum(axis=-1, keepdims=True)
            wanted[entry] = np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v
        self.assert_close(found, {"O": wanted}, 6e-3, f"{size} {n} {count} {lengths}")

    def test_pages(self):
        for size in (8, 16, 48, 64, 128):
            kernel = mt.make_kernel(SPEC, P=size)
            for n in (1, 2, 3, 70):
                count = 300 // size + 1
                self.check(kernel, size, n, count, (count * size, 1, 0, size + 5, 255))


if __name__ == "__main__":
    unittest.main()
