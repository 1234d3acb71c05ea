"""moa.compile and the kernels that it returns."""
from __future__ import annotations

import os
from typing import NamedTuple

from moa._options import Options


class Parameter(NamedTuple):
    """One parameter of a kernel.

    `role` is "input", "scalar" or "output". `dtype` is "f64", "f32", "bf16", "f16", "bool", "i8" …
    "i64" or "u8" … "u32". `shape` has one expression over the symbols for each axis.
    """
    name: str
    role: str
    dtype: str
    shape: tuple[str, ...]


class Kernel:
    """A compiled kernel, which is called with arrays.

    name, target: as given. text: the interface as one line of the specification.
    parameters: inputs and scalars in order, then outputs, as Parameter.
    symbols, constraints: tuples of texts. manifest: the manifest as a dict (docs/Calling.md).
    """
    name: str
    target: str
    text: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    constraints: tuple[str, ...]
    manifest: dict

    def __call__(self, *inputs, out=None, stream=None, workspace=None, **named):
        """Computes the results and returns them: one array, or a named tuple of several."""

    def check(self, *inputs, out=None, **named) -> None:
        """Raises the error of a call with these arguments. Computes nothing."""

    def workspace_bytes(self, *inputs, out=None, **named) -> int:
        """Returns the bytes of workspace of a call with these arguments."""

    def shown(self, *inputs, out=None, stream=None, **named) -> str:
        """Computes the results. Returns which of them are not shown to be within their tolerances,
        or an empty text."""

    def result_shapes(self, *inputs, **named) -> tuple[tuple[int, ...], ...]:
        """Returns the shapes of the results for these arrays."""

    def source(self, form: str) -> str:
        """Returns a form of the kernel: "moa", "dnf", "onf", "lifted", "vector", "llvm", "device",
        "cuda", "ptx", "launcher", "manifest" or "header"."""

    def math(self) -> str:
        """Returns the normal forms as readable mathematics."""

    def explain(self) -> str:
        """Returns how the kernel was derived."""

    def report(self, format: str = "text", **sizes: int) -> str:
        """Returns the report of data movement, workspace and schedule, for values of all symbols if given."""

    @property
    def schedule(self) -> str:
        """The schedule, which can be edited and given back as Options(schedule=…)."""


def compile(source: str | os.PathLike, target: str = "cpu", *, kernel: str | None = None,
            options: Options | None = None, **settings) -> Kernel:
    """Compiles a specification and returns a kernel."""
    raise NotImplementedError
