# RUN: %python %s
"""Ranges in parts over cores (rule R4), against NumPy.

Lengths that no part divides and that end at, before and behind one; parts that a mask
leaves empty, rows that see nothing; states of every kind: repaired, started again,
carried, compensated, of user's monoids. Neither threads nor other rows change a bit.
"""
import hashlib
import os
import subprocess
import sys
import unittest

import numpy as np

import moa_testing as mt
from row_folds import in_blocks

N = 7
BLOCK = 32
PART = 6 * BLOCK

ATTENTION = """
kernel k[N, M; T : float = f32](Q : T[N, 16], K : T[M, 16], V : T[M, 8], len : i32[N])
    -> (O : T[N, 8], lse : T[N]) {
  S = mask([i, j] j < len[i], (Q +.* transpose(K)) * 2)
  O = softmax(S) +.* V
  lse = logsumexp(S)
}
"""


def softmax(s):
    with np.errstate(invalid="ignore", divide="ignore"):
        top = s.max(-1, keepdims=True, initial=-np.inf)
        e = np.exp(s - np.where(np.isfinite(top), top, 0))
        total = e.sum(-1, keepdims=True)
        return np.where(total > 0, e / total, 0), (np.log(total) + top)[:, 0]


def attention(Q, K, V, len):
    s = np.where(np.arange(K.shape[0]) < len[:, None], 2 * Q @ K.T, -np.inf)
    y, lse = softmax(s)
    return {"O": y @ V, "lse": lse}


def in_parts(spec, part=PART, **settings):
    """The kernel with parts of a few blocks, so that short ranges have many."""
    return in_blocks(spec, BLOCK, part // BLOCK, **settings)


def rows(body, results="O : T[N]", inputs="x : T[N, M]", functions=""):
    return (f"{functions}\nkernel k[N, M; T : float = f32]({inputs}) -> ({results}) {{\n"
            f"  {body}\n}}\n")


class SplitRanges(mt.KernelTest):

    def check(self, spec, expected, lengths=(1, PART - 1, PART, PART + 1, 5 * PART, 1234),
              kinds=("f32", "f64"), extra=lambda m: {}, bound=None, n=N):
        for kind in kinds:
            kernel = in_parts(spec, T=kind)
            for m in lengths:
                rng = np.random.default_rng(m)
                inputs = {**{p.name: rng.standard_normal([{"N": n, "M": m}.get(e) or int(e)
                                                          for e in p.extents])
                             for p in kernel.parameters if not p.is_output}, **extra(m)}
                wanted = expected(**kernel.seen_by_kernel(inputs))
                found = kernel.results(inputs, {k: v.shape for k, v in wanted.items()})
                for name, value in wanted.items():
                    if value.dtype.kind == "i" or not np.isfinite(value).all():
                        np.testing.assert_allclose(found.pop(name), value, 1e-5, 0,
                                                   err_msg=f"{kind} {m} {name}")
                rest = {k: v for k, v in wanted.items() if k in found}
                self.assert_close(found, rest, (bound or mt.BOUNDS)[kind], f"{kind} M={m}")

    def test_attention(self):
        self.check(ATTENTION, attention, extra=lambda m: {"len": np.full(N, m)},
                   kinds=("f32", "f64", "bf16"))

    def test_parts_and_rows_without_keys(self):
        """Rows of no key, of one, of less than one part, of all but one."""
        self.check(ATTENTION, attention, lengths=(3 * PART + 5,), extra=lambda m: {
            "len": np.array([0, 1, PART, PART + 1, m - 1, m, m // 2])})

    def test_first_parts_without_keys(self):
        spec = ATTENTION.replace("j < len[i]", "len[i] <= j")

        def expected(Q, K, V, len):
            s = np.where(np.arange(K.shape[0]) >= len[:, None], 2 * Q @ K.T, -np.inf)
            y, lse = softmax(s)
            return {"O": y @ V, "lse": lse}

        self.check(spec, expected, lengths=(4 * PART + 5,), extra=lambda m: {
            "len": np.array([0, 1, PART, 2 * PART + 1, m - 1, m, m // 2])})

    def test_many_rows_do_the_parts_one_after_the_other(self):
        self.check(ATTENTION, attention, lengths=(1234,), kinds=("f32",), n=600,
                   extra=lambda m: {"len": np.arange(600) * 2})

    def test_present_infinities(self):
        """Parts of nothing but −∞ have no state; a row of them gives NaN."""
        spec = rows("O = +/ exp(x -@(1,0) (max/ x))")
        values = np.random.default_rng(3).standard_normal((N, 3 * PART))
        values[0, :PART] = values[1, PART:] = values[2] = -np.inf

        def expected(x):
            with np.errstate(invalid="ignore"):
                return {"O": np.exp(x - x.max(-1, keepdims=True)).sum(-1)}

        self.check(spec, expected, lengths=(3 * PART,), extra=lambda m: {"x": values})

    def test_position_of_the_largest(self):
        """The first of equal ones, in whatever part."""
        spec = rows("v = floor(x)\n  m = max/ v\n"
                    "  at = min/ mask([i, j] v[i, j] == m[i], [i < N, j < M] j)",
                    "m : T[N], at : i32[N]")
        self.check(spec, lambda x: {"m": np.floor(x).max(-1),
                                    "at": np.floor(x).argmax(-1).astype(np.int64)})

    def test_weights_of_the_largest(self):
        spec = rows("v = floor(2 * x)\n  e = select(v >= [i, _] (max/ v)[i], 1.0, 0.0)\n"
                    "  O = (e /@(1,0) (+/ e)) +.* w", "O : T[N, 8]", "x : T[N, M], w : T[M, 8]")

        def expected(x, w):
            v = np.floor(2 * x)
            e = (v == v.max(-1, keepdims=True)).astype(np.float64)
            return {"O": e / e.sum(-1, keepdims=True) @ w}

        self.check(spec, expected)

    def test_moments(self):
        spec = rows("d = x -@(1,0) mean(x)\n  O = mean(d * d)\n  s = mean(d * d * d)",
                    "O : T[N], s : T[N]")

        def expected(x):
            d = x - x.mean(-1, keepdims=True)
            return {"O": (d ** 2).mean(-1), "s": (d ** 3).mean(-1)}

        self.check(spec, expected, lengths=(PART - 1, 5 * PART, 1234),
                   bound={"f32": 2e-5, "f64": 1e-12})

    def test_norms(self):
        """The reference is 0 in a part of zeros."""
        spec = rows("m = max/ abs(x)\n  O = m * sqrt(+/ ((x /@(1,0) m) * (x /@(1,0) m)))")

        def zeros(m):
            values = np.random.default_rng(m).standard_normal((N, m))
            values[0, :PART] = values[1, PART:] = 0
            return {"x": values}

        self.check(spec, lambda x: {"O": np.sqrt((x * x).sum(-1))},
                   lengths=(2 * PART, 1234), extra=zeros)

    def test_other_monoids(self):
        spec = rows("p = reduce(*, 1 + x / 1000, 1)\n  m = min/ x\n  b = reduce(logadd, x, 1)",
                    "p : T[N], m : T[N], b : T[N]", functions="""
monoid logadd(x, y) identity -inf {
  m = max(x, y)
  return select(m == -inf, m, m + log(exp(x - m) + exp(y - m)))
}
""")
        self.check(spec, lambda x: {"p": (1 + x / 1000).prod(-1), "m": x.min(-1),
                                    "b": np.log(np.exp(x).sum(-1))},
                   bound={"f32": 6e-6, "f64": 1e-13})

    def test_long_sums_are_compensated(self):
        spec = rows("O = +/ x")
        self.check(spec, lambda x: {"O": x.sum(-1)}, lengths=(200000,), kinds=("f32",), n=2,
                   extra=lambda m: {"x": 1 + np.random.default_rng(1).random((2, m))},
                   bound={"f32": 2e-7})

    def test_what_reads_the_states_later(self):
        """Folds behind the one in parts, and a second pass."""
        spec = rows("Y = softmax(Q +.* transpose(K))\n  O = Y +.* V\n"
                    "  c = +/ (Y * ((O - 1) +.* transpose(V)))\n  a = +/ abs(x -@(1,0) mean(x))",
                    "O : T[N, 8], c : T[N], a : T[N]",
                    "Q : T[N, 16], K : T[M, 16], V : T[M, 8], x : T[N, M]")

        def expected(Q, K, V, x):
            o = softmax(Q @ K.T)[0] @ V
            return {"O": o, "c": ((o - 1) * o).sum(-1),
                    "a": abs(x - x.mean(-1, keepdims=True)).sum(-1)}

        self.check(spec, expected, lengths=(PART + 1, 1234), bound={"f32": 1e-5, "f64": 1e-12})

    def test_bits_do_not_depend_on_other_rows(self):
        """One query is its own tile and one of 600 is not."""
        rng = np.random.default_rng(2)
        kernel = in_parts(ATTENTION)
        inputs = {"Q": rng.standard_normal((600, 16)), "K": rng.standard_normal((1234, 16)),
                  "V": rng.standard_normal((1234, 8)), "len": np.full(600, 1200)}
        shapes = {"O": (600, 8), "lse": (600,)}
        all_rows = kernel.run(inputs, shapes)
        for i in (0, 17, 599):
            alone = kernel.run({**inputs, "Q": inputs["Q"][i:i + 1], "len": inputs["len"][:1]},
                               {"O": (1, 8), "lse": (1,)})
            self.assert_same_bits(alone, {k: v[i:i + 1] for k, v in all_rows.items()}, f"row {i}")

    def test_bits_do_not_depend_on_threads(self):
        digests = set()
        for threads in ("1", "2", "5"):
            done = subprocess.run([sys.executable, __file__, "digest"], check=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": threads},
                                  stdout=subprocess.PIPE)
            digests.add(done.stdout.strip())
        self.assertEqual(len(digests), 1, digests)

    def test_workspace(self):
        """Parts need it where rows are one tile, a multiple of rows × parts; else not."""
        kernel = in_parts(ATTENTION)

        def needed(n, m):
            zeros = {"Q": np.zeros((n, 16)), "K": np.zeros((m, 16)), "V": np.zeros((m, 8)),
                     "len": np.zeros(n)}
            values = {name: mt.describe(mt.encode(value, kernel.by_name[name].kind),
                                        kernel.by_name[name].kind)
                      for name, value in zeros.items()}
            values["O"] = mt.describe(np.zeros((n, 8), np.float32), "f32")
            values["lse"] = mt.describe(np.zeros(n, np.float32), "f32")
            return kernel.workspace_bytes(values) - 64  # for an address that is no multiple of 64

        # One part, so one task and one thread: its scratch alone.
        one = needed(N, PART)
        per_part = (needed(N, 80 * PART) - needed(N, 40 * PART)) // 40
        self.assertGreater(per_part, 0)
        self.assertEqual(needed(1, 80 * PART) - needed(1, 40 * PART), 40 * per_part)
        self.assertEqual(needed(40000, 80 * PART), needed(40000, 40 * PART))
        self.assertEqual(needed(N, 40 * PART) - 40 * per_part,
                         one * round((needed(N, 40 * PART) - 40 * per_part) / one))


def print_digest():
    rng = np.random.default_rng(2)
    kernel = in_parts(ATTENTION)
    digest = hashlib.sha256()
    for n in (1, 600):
        outputs = kernel.run(
            {"Q": rng.standard_normal((n, 16)), "K": rng.standard_normal((2345, 16)),
             "V": rng.standard_normal((2345, 8)), "len": np.full(n, 2300)},
            {"O": (n, 8), "lse": (n,)})
        for name in sorted(outputs):
            digest.update(outputs[name].tobytes())
    print(digest.hexdigest())


if __name__ == "__main__":
    if sys.argv[1:] == ["digest"]:
        print_digest()
    else:
        unittest.main(verbosity=2)
