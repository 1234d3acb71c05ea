# RUN: %python %s
"""Grouped queries, causal at the bottom right, with log-sum-exp, against NumPy."""
import forms
import moa_testing as mt
import references


class GqaCausal(forms.FormTest):
    spec = "gqa_causal"
    widths = (128, 64, 24)
    heads, groups = 6, 2
    large = mt.LARGE[:1]

    def expected(self, values):
        output, lse = references.causal(**values)
        return {"O": output, "lse": lse}


if __name__ == "__main__":
    forms.run(GqaCausal)
