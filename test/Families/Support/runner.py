"""Runs families on a target and says what came out."""
import os
import zlib

import numpy as np

import gpu
import moa_testing as mt
from family import FAMILIES

import further_families   # noqa: F401  each adds its families
import mask_families    # noqa: F401
import row_families     # noqa: F401
import score_families   # noqa: F401
import shape_families   # noqa: F401

# An interpreter takes only problems of so many combinations of indices.
DEVICE_LIMIT = 700


def kinds(family, target):
    """The element types that the tests run a family in; table.py takes all of them."""
    return ("bf16",) if target == "device" else family.kinds


def stored(family, kind):
    """Where the kernel for a GPU stands, without what its files end in."""
    return os.path.join(os.environ["MOA_GPU_KERNELS"],
                        gpu.file_name(family.spec, {"T": kind, **family.settings}))


def make(family, kind, target):
    settings = {"T": kind, **family.settings}
    if target in ("cuda", "ptx") and os.path.exists(stored(family, kind) + ".error"):
        with open(stored(family, kind) + ".error", encoding="utf-8") as file:
            raise RuntimeError(file.read())
    if target == "ptx":
        import ptx
        kernel = ptx.Kernel(family.spec, **settings)
    else:
        kernel = mt.make_kernel(family.spec, **settings)
    kernel.fill = 0xFF      # NaN in every float
    return kernel


def sizes_of(family, target):
    if target != "device":
        return family.sizes
    small = [s for s in family.sizes if np.prod(list(s.values())) <= DEVICE_LIMIT]
    # Of the empty ones, that with rows but no keys.
    return family.small or [s for s in small if s.get("B", 1) and s.get("N", 1)]


def scattered(array):
    """The same values with the axes but the last the other way round in memory, and
    a gap behind each row; NaN in the gaps."""
    if array.ndim < 2:
        return array
    order = [*range(array.ndim - 1)][::-1]
    row = array.shape[-1]
    shape = [array.shape[a] for a in order] + [row + 16 + -row % 16]
    room = np.full(shape + [array.itemsize], 0xFF, np.uint8)
    room = room.view(array.dtype)[..., 0]
    view = room[..., :row].transpose([*order, array.ndim - 1])
    view[...] = array
    return view


class Record:
    """What came out of one family, element type and set of sizes."""

    def __init__(self, family, kind, target, sizes):
        self.family, self.kind, self.target = family, kind, target
        self.sizes = " ".join(f"{k}={v}" for k, v in sizes.items()) if sizes else "-"
        self.error = self.bound = 0.0
        self.problems = []

    @property
    def reason(self):
        """A part of the message that says how this fails, or None."""
        return self.family.fails.get((self.target, self.kind)) or self.family.fails.get(self.target)

    def compare(self, name, found, expected, bound):
        error = mt.relative_error(found, expected)
        if not self.bound or error / bound > self.error / self.bound:
            self.error, self.bound = error, bound
        if not error <= bound:
            self.problems.append(f"{name} off by {error:.1e}")
        # A query that sees nothing gives 0, not almost 0.
        if (np.asarray(found)[expected == 0] != 0).any() and error <= bound:
            rows = (expected == 0).all(-1) if expected.ndim else expected == 0
            if (np.asarray(found)[rows] != 0).any():
                self.problems.append(f"{name} is not 0 where nothing is seen")

    def same(self, first, second, what):
        for name in first:
            if first[name].tobytes() != second[name].tobytes():
                self.problems.append(f"{name} changes with {what}")

    def as_expected(self):
        return any(self.reason in problem for problem in self.problems)

    def status(self):
        found = "; ".join(self.problems) or "passes"
        if not self.reason:
            return found
        if self.as_expected():
            return "expected: " + found
        return f"expected to fail with '{self.reason}', but {found}"

    def holds(self):
        return self.as_expected() if self.reason else not self.problems

    def line(self):
        return (f"{self.family.name} {self.kind} {self.target} {self.sizes}: error {self.error:.1e} "
                f"(bound {self.bound:.1e}), {self.status()}")


def first_line(error):
    return str(error).replace(mt.SOURCE_ROOT + os.sep, "").strip().split("\n")[0]


def attempt(record, kernel, sizes, strides):
    family, target = record.family, record.target
    z = family.namespace(sizes)
    seed = zlib.crc32(f"{family.name} {record.sizes}".encode())
    inputs = family.inputs(np.random.default_rng(seed), z)
    seen = kernel.seen_by_kernel(inputs)
    expected = family.expected(seen, z)
    shapes = {name: value.shape for name, value in expected.items()}
    stored = kernel.run(inputs, shapes)
    for name, value in expected.items():
        output = kernel.by_name[name].kind
        record.compare(name, mt.decode(stored[name], output), value, family.bound(record.kind, output, z))

    unseen = {k: rows for k, rows in family.unseen(seen, z).items() if rows.any()}
    if unseen:
        poisoned = dict(inputs)
        for name, rows in unseen.items():
            poisoned[name] = inputs[name].astype(float)
            poisoned[name][rows] = np.nan
        record.same(stored, kernel.run(poisoned, shapes), "what nobody sees")
    if strides and target != "device":
        record.same(stored, kernel.run(inputs, shapes, arrange=scattered), "strides")


def run(family, kind, target):
    """Records of one element type, for every choice of sizes."""
    sizes = sizes_of(family, target)
    try:
        kernel = make(family, kind, target)
    except (RuntimeError, OSError) as error:
        record = Record(family, kind, target, {})
        record.problems.append("cannot be made: " + first_line(error))
        yield record
        return
    # Strides of the problem with most elements.
    largest = max(sizes, key=lambda s: np.prod(list(s.values())))
    for choice in sizes:
        record = Record(family, kind, target, choice)
        try:
            attempt(record, kernel, choice, choice is largest)
        except RuntimeError as error:
            record.problems.append(first_line(error))
        yield record
