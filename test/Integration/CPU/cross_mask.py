# RUN: %python %s
"""Cross attention with a boolean mask array, some rows wholly masked."""
import forms
import references


class CrossMask(forms.FormTest):
    spec = "cross_mask"
    widths = (64, 128)

    def inputs(self, rng, shape):
        values = super().inputs(rng, shape)
        batch, heads, _, n, m, _ = shape
        mask = rng.random((batch, n, m)) < 0.3
        mask[:, ::7] = False
        values["keep"] = mask
        return values

    def expected(self, values):
        mask = values.pop("keep")[:, None]
        return {"O": references.masked(**values, mask=mask)[0]}


if __name__ == "__main__":
    forms.run(CrossMask)
