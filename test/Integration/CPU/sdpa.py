# RUN: %python %s
"""Scaled dot-product attention against NumPy."""
import forms
import moa_testing as mt
import references


class Sdpa(forms.FormTest):
    spec = "sdpa"
    widths = (64, 128, 40, 1)
    large = mt.LARGE

    def expected(self, values):
        return {"O": references.sdpa(**values)[0]}


if __name__ == "__main__":
    forms.run(Sdpa)
