"""The loop that every attention form goes through: sizes, element types, bounds."""
import numpy as np

import moa_testing as mt


class FormTest(mt.KernelTest):
    """One example against its reference.

    A subclass names the example, and gives `inputs` (values by parameter name)
    and `expected` (reference by output name, from the values the kernel sees).
    """
    spec = None
    kinds = ("f64", "f32", "bf16")
    widths = (64,)          # values of D
    batch, heads, groups = 2, 2, 2
    grid = mt.GRID
    large = ()              # taken in f32 only, with one batch entry
    settings = {}
    if mt.TARGET == "device":
        # Threads that run apart take long; other tests run them in f64.
        kinds = ("f32", "bf16")
    # Outputs that no computed operand of a contraction goes into: nothing on
    # the way is rounded to T.
    unrounded = ("lse",)

    kernels = {}

    @classmethod
    def kernel(cls, kind, width):
        key = (cls.__name__, kind, width)
        if key not in cls.kernels:
            cls.kernels[key] = mt.make_kernel(mt.example(cls.spec), T=kind, D=width,
                                              **cls.settings)
        return cls.kernels[key]

    def inputs(self, rng, shape):
        """Q, K, V and scale; subclasses add what their form takes."""
        batch, heads, groups, n, m, d = shape
        return {"Q": rng.standard_normal((batch, heads, n, d)),
                "K": rng.standard_normal((batch, groups, m, d)),
                "V": rng.standard_normal((batch, groups, m, d)),
                "scale": d ** -0.5}

    def expected(self, values):
        raise NotImplementedError

    def compare(self, kind, width, n, m, batch=None):
        kernel = self.kernel(kind, width)
        shape = (self.batch if batch is None else batch, self.heads, self.groups,
                 n, m, width)
        inputs = self.inputs(np.random.default_rng([n, m, width]), shape)
        expected = self.expected(kernel.seen_by_kernel(inputs))
        results = kernel.results(inputs, {k: v.shape for k, v in expected.items()})
        what = f"{self.spec} {kind} (B, H, G, N, M, D) = {shape}"
        for name, value in expected.items():
            # An output that is declared narrower than T cannot be better than it is.
            bound = mt.BOUNDS[kernel.by_name[name].kind]
            if name not in self.unrounded:
                bound = max(bound, mt.BOUNDS[kind])
            self.assert_close(results, {name: value}, bound, what)

    @classmethod
    def sizes(cls, kind, sizes):
        """Those that are taken in this element type."""
        if mt.TARGET == "device" and kind != "bf16":
            return [(n, m) for n, m in sizes if n * m <= 150]
        return sizes

    def test_sizes(self):
        for kind in self.kinds:
            for n, m in self.sizes(kind, self.grid):
                with self.subTest(kind=kind, n=n, m=m):
                    self.compare(kind, self.widths[0], n, m)

    def test_widths(self):
        for kind in self.kinds:
            for width in self.widths[1:]:
                for n, m in self.sizes(kind, ((113, 203), (1, 65))):
                    with self.subTest(kind=kind, width=width, n=n, m=m):
                        self.compare(kind, width, n, m)

    def test_large(self):
        for n, m in self.large:
            with self.subTest(n=n, m=m):
                self.compare("f32", self.widths[0], n, m, batch=1)

    def test_empty_batch(self):
        self.compare("f32", self.widths[0], 5, 7, batch=0)


def run(case):
    """Runs one test class as a program."""
    import unittest
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    outcome = unittest.TextTestRunner(verbosity=2).run(suite)
    raise SystemExit(not outcome.wasSuccessful())
