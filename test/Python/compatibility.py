# REQUIRES: moa-python
# RUN: %moa_python %s
"""docs/Compatibility.md: its columns for kernels of MoA, and the form of the page."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import EXAMPLES, Case, np  # noqa: E402

import edge_cases  # noqa: E402
import moa  # noqa: E402
from edge_cases import Result  # noqa: E402


class Specification(edge_cases.Implementation):
    """A specification as docs/Compatibility.md shows it; `form` names how a boolean mask is written."""
    is_written = True

    def __init__(self, form="mask(p, S)", element="f32"):
        self.form, self.element = form, element
        self.bound = 1e-3 if element == "f32" else 3e-2

    def half(self):
        if moa_bfloat16 is None:
            raise unittest.SkipTest("ml_dtypes is missing")
        return Specification(self.form, "bf16")

    def text(self, q, k, v, mask, causal, lse):
        lines, parameters = ["S = (Q +.* transpose(Kh)) * scale"], []
        if mask is not None:
            axes = ["B", "H", "N", "M"][4 - mask.ndim:]
            shape = ", ".join("1" if n == 1 else axis for n, axis in zip(mask.shape, axes))
            used = ", ".join("0" if n == 1 else axis for n, axis in zip(mask.shape, "bhij"[4 - mask.ndim:]))
            parameters = [f"W : {'bool' if mask.dtype == bool else 'f32'}[{shape}]"]
            lines.append(f"A = [b < B, h < H, i < N, j < M] W[{used}]")
            if mask.dtype != bool:
                lines.append("S = addmask(S, A)")
            else:
                lines.append("S = select(A, S, -inf)" if self.form == "select(p, S, -inf)" else "S = mask(A, S)")
        if causal:
            lines.append("S = mask([_, _, i, j] j <= i" + (" + (M - N)" if causal == "bottom-right" else "") + ", S)")
        lines += ["O = softmax(S) +.* Vh"] + (["lse = logsumexp(S)"] if lse else [])
        heads = "Kh = [b < B, h < H] K[b, h / (H/G)]\n  Vh = [b < B, h < H] V[b, h / (H/G)]\n  "
        return (f"kernel edge[B, H, G, N, M; T : float, D = {q.shape[3]}, E = {v.shape[3]}](\n    "
                + ", ".join(["Q : T[B, H, N, D]", "K : T[B, G, M, D]", "V : T[B, G, M, E]", *parameters, "scale : f32"])
                + ")\n    -> (O : T[B, H, N, E]" + (", lse : f32[B, H, N]" if lse else "") + ")\n"
                "  require H % G == 0\n{\n  " + heads + "\n  ".join(lines) + "\n}\n")

    def call(self, q, k, v, mask, causal, scale, gqa, lse):
        if self.form == "addmask(S, a)" and mask is not None and mask.dtype == bool:
            mask = np.where(mask, 0, -np.inf).astype(np.float32)
        kernel = moa.compile(self.text(q, k, v, mask, causal, lse), T=self.element,
                             options=moa.Options(optimization=0))
        q, k, v = (x.astype(np.float32 if self.element == "f32" else moa_bfloat16) for x in (q, k, v))
        scale = float(1 / np.sqrt(q.shape[3]) if scale is None else scale)
        found = kernel(q, k, v, *([] if mask is None else [mask]), scale)
        return Result(found[0].astype(np.float32), found[1]) if lse else Result(found.astype(np.float32))


try:
    from ml_dtypes import bfloat16 as moa_bfloat16
except ImportError:
    moa_bfloat16 = None


class Page(unittest.TestCase):

    def test_form(self):
        self.assertEqual([], edge_cases.check_page())

    def test_unknown_cells_are_faults(self):
        text = "| case | math | other |\n|---|---|---|\n| a row of False | `0` | 0 |\n| a row of True | nought | 0 |\n"
        faults = "\n".join(edge_cases.check_page(text))
        for name in ("row 'a row of True'", "column 'other'", "word 'nought'"):
            self.assertIn(f"there is no probe for the {name}", faults)

    def test_cells(self):
        columns = {name: Specification(name) for name in ("mask(p, S)", "addmask(S, a)", "select(p, S, -inf)")}
        columns["MoA kernel"] = Specification()
        count, wrong = edge_cases.compare(columns, sys.argv[1:])
        self.assertEqual([], wrong, "\n" + "\n".join(wrong))
        self.assertGreater(count, len(edge_cases.ROWS))


class Kernels(Case):
    """Sentences of the page on the examples."""

    def test_corner_of_the_examples(self):
        for n, m in ((48, 80), (80, 48), (1, 80)):
            q, k, v = edge_cases.inputs(n=n, m=m)
            expected = edge_cases.reference(q, k, v, causal="bottom-right")
            found = moa.compile(EXAMPLES / "causal.moa", D=64, T="f32")(q, k, v, 0.125)
            self.assertClose(found, expected[0])
            found, lse = moa.compile(EXAMPLES / "gqa_causal.moa", D=64, T="f32")(q, k, v, 0.125)
            self.assertClose(found, expected[0])
            rows = np.isfinite(expected[1])
            self.assertEqual(rows.sum(), 8 * min(n, m))
            self.assertClose(lse[rows], expected[1][rows])
            self.assertTrue((lse[~rows] == -np.inf).all() and (found[~rows] == 0).all())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
