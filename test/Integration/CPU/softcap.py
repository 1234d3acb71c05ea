# RUN: %python %s
"""Scores capped by c·tanh(s/c), the cap being a run-time scalar."""
import forms
import references


class Softcap(forms.FormTest):
    spec = "softcap"
    widths = (64, 128)

    def inputs(self, rng, shape):
        return {**super().inputs(rng, shape), "cap": 1.5}

    def expected(self, values):
        return {"O": references.softcap(**values)[0]}


if __name__ == "__main__":
    forms.run(Softcap)
