# RUN: %python %s
"""Sigmoid in the place of softmax: no statistic, no repair."""
import forms
import references


class Sigmoid(forms.FormTest):
    spec = "sigmoid_attention"
    widths = (64, 128)

    def inputs(self, rng, shape):
        return {**super().inputs(rng, shape), "bias": -0.75}

    def expected(self, values):
        return {"O": references.sigmoid_attention(**values)}


if __name__ == "__main__":
    forms.run(Sigmoid)
