# RUN: %python %s
"""ALiBi: a slope per head times the distance, added to the scores."""
import forms
import references


class Alibi(forms.FormTest):
    spec = "alibi"
    widths = (64, 128)
    heads, groups = 3, 3

    def inputs(self, rng, shape):
        values = super().inputs(rng, shape)
        values["slope"] = 2.0 ** -(1.0 + rng.permutation(shape[1]))
        return values

    def expected(self, values):
        return {"O": references.alibi(**values)[0]}


if __name__ == "__main__":
    forms.run(Alibi)
