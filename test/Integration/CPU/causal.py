# RUN: %python %s
"""Causal attention, aligned at the bottom right, against NumPy."""
import forms
import references


class Causal(forms.FormTest):
    spec = "causal"
    widths = (64, 128)

    def expected(self, values):
        return {"O": references.causal(**values)[0]}


if __name__ == "__main__":
    forms.run(Causal)
