# RUN: %python %s
"""Causal sliding window whose width is a run-time scalar."""
import forms
import references


class SlidingWindow(forms.FormTest):
    spec = "sliding_window"
    widths = (64, 128)
    window = 37

    def inputs(self, rng, shape):
        return {**super().inputs(rng, shape), "window": self.window}

    def expected(self, values):
        return {"O": references.sliding_window(**values)[0]}

    def test_every_width_of_window(self):
        for window in (0, 1, 63, 64, 1000, -1):
            with self.subTest(window=window):
                self.window = window
                self.compare("f32", 64, 113, 203)


if __name__ == "__main__":
    forms.run(SlidingWindow)
