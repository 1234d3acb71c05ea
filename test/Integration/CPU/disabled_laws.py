# RUN: %python %s
"""Every law of ψ-reduction, every law of absence, every rule and the analysis
of key intervals is needed.

Each has a witness: a specification that compiles and gives NumPy's values. When
the law is disabled the witness does not compile, or its code takes more passes
or shares less. The list of laws is the compiler's own, so a new one without a
witness fails here.
"""
import os
import re
import tempfile
import unittest

import numpy as np

import moa_testing as mt
import references

N, M = 23, 37
TWO = "x : f32[N, M], y : f32[N, M]"


def kernel(body, inputs="x : f32[N, M]", output="O : f32[N, M]", functions=""):
    return f"{functions}\nkernel k[N, M]({inputs}) -> {output}\n{{\n  {body}\n}}\n"


def triangle():
    i, j = references.positions(N, M)
    return j <= i


def masked_softmax(x):
    e = np.where(triangle(), np.exp(x - np.where(triangle(), x, -np.inf).max(
        axis=1, keepdims=True)), 0)
    return e / e.sum(axis=1, keepdims=True)


MASKED = "mask([i, j] j <= i, x)"
ROW = "O : f32[N]"

# Law: the specification and what it means.
WITNESSES = {
    "psi-constant": (kernel("O = x + 2.5"), lambda x: x + 2.5),
    "psi-extent": (kernel("O = x + N"), lambda x: x + N),
    "psi-iota": (kernel("O = x + [i < N, j < M] i"),
                 lambda x: x + np.arange(N)[:, None]),
    "psi-map": (kernel("O = x * y", TWO), lambda x, y: x * y),
    "psi-cast": (kernel("O = x + y", "x : f32[N, M], y : bf16[N, M]"),
                 lambda x, y: x + y),
    "psi-mask": (kernel("O = max/ " + MASKED, output=ROW),
                 lambda x: np.where(triangle(), x, -np.inf).max(axis=1)),
    "psi-reduce": (kernel("O = max/ x", output=ROW), lambda x: x.max(axis=1)),
    "psi-inner": (kernel("O = x +.* transpose(y)", TWO, "O : f32[N, N]"),
                  lambda x, y: x @ y.T),
    "psi-psi": (kernel("O = [i < N, j < M] x[i, M - 1 - j]"), lambda x: x[:, ::-1]),
    "psi-transpose": (kernel("O = transpose(x)", output="O : f32[M, N]"),
                      lambda x: x.T),
    "psi-reshape": (kernel("O = reshape(x, [M, N])", output="O : f32[M, N]"),
                    lambda x: x.reshape(M, N)),
    "psi-slice": (kernel("O = drop(take(x, 7), 2)", output="O : f32[5, M]"),
                  lambda x: x[2:7]),
    "psi-cat": (kernel("O = cat(x, y)", TWO, "O : f32[2*N, M]"),
                lambda x, y: np.concatenate([x, y])),
    "psi-reverse": (kernel("O = reverse(x)"), lambda x: x[::-1]),
    "psi-rotate": (kernel("O = rotate(x, 5)"), lambda x: np.roll(x, -5, axis=0)),
    "psi-share": (kernel("O = f(x)", functions="def f(v : [n]) { e = exp(v)  "
                         "return e / (+/ e) }"),
                  lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)),
    "absent-pointwise": (kernel(f"O = +/ exp({MASKED})", output=ROW),
                         lambda x: np.where(triangle(), np.exp(x), 0).sum(axis=1)),
    "absent-where": (kernel(f"O = +/ mask([i, j] 0 < j, {MASKED})", output=ROW),
                     lambda x: np.where(triangle(), x, 0)[:, 1:].sum(axis=1)),
    "absent-reduce": (kernel(f"O = +/ {MASKED}", output=ROW),
                      lambda x: np.where(triangle(), x, 0).sum(axis=1)),
    "absent-output": (kernel("O = " + MASKED), lambda x: np.where(triangle(), x, 0)),
    "absent-join": (kernel(f"O = +/ cat({MASKED}, y, 1)", TWO, ROW),
                    lambda x, y: np.where(triangle(), x, 0).sum(axis=1) + y.sum(axis=1)),
    "absent-otherwise": (kernel(f"O = otherwise({MASKED}, y)", TWO),
                         lambda x, y: np.where(triangle(), x, y)),
    "absent-let": (kernel(f"O = softmax({MASKED})"), masked_softmax),
}

ATTENTION = ("Q : f32[N, 8], K : f32[M, 8], V : f32[M, 8]", "O : f32[N, 8]")
SOFTMAX = kernel("O = softmax(Q +.* transpose(K)) +.* V", *ATTENTION)
DIFFERENCE = kernel("S = Q +.* transpose(K)\n  O = (softmax(S) - 0.5 * softmax(S * 2)) "
                    "+.* V", *ATTENTION)


def softmax(s):
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# The slope of |O - 1|²/2 along the scores, where attention gives O.
DESCENT = kernel("Y = softmax(Q +.* transpose(K))\n  P = Y +.* V\n  "
                 "g = (P - 1) +.* transpose(V)\n"
                 "  O = P +@(1,0) (+/ (Y * g))", *ATTENTION)


def descent(Q, K, V):
    y = softmax(Q @ K.T)
    p = y @ V
    return p + (y * ((p - 1) @ V.T)).sum(axis=1, keepdims=True)


VARIANCE = kernel("O = f(x)", output=ROW, functions="def f(v : [n]) { d = v - mean(v)  "
                  "return mean(d * d) }")

# Rule: the specification and what it means; without the rule it takes more folds.
RULES = {
    "R0": (DIFFERENCE, lambda Q, K, V: (softmax(Q @ K.T) -
                                        0.5 * softmax(2 * Q @ K.T)) @ V),
    "R1": (SOFTMAX, lambda Q, K, V: softmax(Q @ K.T) @ V),
    "R2": (SOFTMAX, lambda Q, K, V: softmax(Q @ K.T) @ V),
    "R3": (SOFTMAX, lambda Q, K, V: softmax(Q @ K.T) @ V),
    "R5": (DESCENT, descent),
    "R6": (VARIANCE, lambda x: x.var(axis=1)),
}

# Products that associate, and what rows share: without the rule nothing is stored between nests.
LINEAR = kernel("O = (Q +.* transpose(K)) +.* V", *ATTENTION)
NORMS = kernel("O = (Q +.* transpose(K) - [i, j] sqrt(+/ (Kw[j] * Kw[j]))) +.* V\n  Kw = cat(K, K, 1)", *ATTENTION)


def norms(Q, K, V):
    return (Q @ K.T - np.sqrt(2 * (K * K).sum(axis=1))) @ V


# The split of ranges: without it a range is one part.
ROWS = kernel("O = softmax(x) +.* w", "x : f32[N, M], w : f32[M, 8]", "O : f32[N, 8]")

# The analysis of masks: without it every row visits every key.
CAUSAL = kernel("O = softmax(mask([i, j] j <= i, Q +.* transpose(K))) +.* V",
                *ATTENTION)


def causal(Q, K, V):
    return masked_softmax(Q @ K.T) @ V


# Laws that spend accuracy, of accuracy_laws.py.
ACCURACY = ("B1", "B2", "B3", "B4", "B5", "B6", "B7", "F2", "F9")


def emit(spec, level, *extra):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "spec.moa")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        return mt.tool("moa-codegen", path, f"--emit={level}", *extra)


class DisabledLaws(mt.KernelTest):

    def check_values(self, spec, meaning, *flags):
        compiled = mt.Kernel(spec, flags)
        rng = np.random.default_rng(5)
        extents = {"N": N, "M": M}
        inputs = {p.name: rng.standard_normal([extents.get(e) or int(e)
                                               for e in p.extents])
                  for p in compiled.parameters if not p.is_output}
        seen = compiled.seen_by_kernel(inputs)
        expected = {"O": meaning(**seen)}
        results = compiled.results(inputs, {"O": expected["O"].shape})
        self.assert_close(results, expected, mt.BOUNDS["f32"], self.id())

    def check_law(self, law):
        spec, meaning = WITNESSES[law]
        self.check_values(spec, meaning)
        within = emit(spec, "dnf")
        without = emit(spec, "dnf", f"--disable-rule={law}")
        if law == "psi-share":
            count = [done.stdout.count("dnf.let") for done in (within, without)]
            self.assertGreater(count[0], count[1])
        else:
            self.assertEqual(without.returncode, 1)
            self.assertIn(f"'{law}'", without.stderr)

    def check_rule(self, rule):
        spec, meaning = RULES[rule]
        self.check_values(spec, meaning)
        count = [len(re.findall(r"= onf\.fold ", done.stdout))
                 for done in (emit(spec, "onf"),
                              emit(spec, "onf", f"--disable-rule={rule}"))]
        self.assertGreater(count[0], 0)
        self.assertGreater(count[1], count[0])

    def test_every_law_has_a_witness(self):
        refused = emit(SOFTMAX, "dnf", "--disable-rule=no-such-law").stderr
        listed = set(re.findall(r"[\w-]+", refused.split("there are", 1)[1]))
        self.assertEqual(listed, {*WITNESSES, *RULES, "R4", "R7", "intervals", "precision", "low-rank", *ACCURACY})

    def test_R4(self):
        def meaning(x, w):
            return softmax(x) @ w

        self.check_values(ROWS, meaning)
        self.check_values(ROWS, meaning, "--disable-rule=R4")
        self.assertRegex(emit(ROWS, "lifted").stdout, r'onf.fold "m" in "M" lift <core: 0, seq')
        self.assertRegex(emit(ROWS, "lifted", "--disable-rule=R4").stdout,
                         r'onf.fold "m" in "M" lift <sequential: 0, ')
        # Parts are merged by a nest of their own.
        self.assertIn("@k_nest1", emit(ROWS, "vector").stdout)
        self.assertNotIn("@k_nest1", emit(ROWS, "vector", "--disable-rule=R4").stdout)

    def test_R7(self):
        """Sums that rows share are stored once; without the rule the order is the one that is written."""
        for spec, meaning in ((LINEAR, lambda Q, K, V: (Q @ K.T) @ V), (NORMS, norms)):
            self.check_values(spec, meaning)
            self.check_values(spec, meaning, "--disable-rule=R7")
            self.assertIn("temporary_names", emit(spec, "onf").stdout)
            self.assertNotIn("temporary_names", emit(spec, "onf", "--disable-rule=R7").stdout)

    def test_intervals(self):
        self.check_values(CAUSAL, causal)
        self.check_values(CAUSAL, causal, "--disable-rule=intervals")
        within = emit(CAUSAL, "lifted").stdout
        without = emit(CAUSAL, "lifted", "--disable-rule=intervals").stdout
        self.assertEqual(within.count("#onf.piece<"), 1)
        self.assertIn("onf.guard", without)
        self.assertNotIn("piece", without)


for _law in WITNESSES:
    setattr(DisabledLaws, "test_" + _law.replace("-", "_"),
            lambda self, law=_law: self.check_law(law))
for _rule in RULES:
    setattr(DisabledLaws, "test_" + _rule,
            lambda self, rule=_rule: self.check_rule(rule))


if __name__ == "__main__":
    mt.compile_soonest()
    unittest.main(verbosity=2)
