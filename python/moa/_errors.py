"""The exceptions and warnings of the package."""
from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One message of the compiler.

    `severity` is "error", "warning", "remark" or "note". `line` and `column` count from 1; 0 means
    that the message has no place. `notes` are the diagnostics that belong to it.
    """
    severity: str
    file: str
    line: int
    column: int
    message: str
    notes: tuple[Diagnostic, ...] = ()


class Error(Exception):
    """The base of all errors of this package."""


class CompileError(Error):
    """A specification, its settings or its options are wrong.

    The text has file, line, column, the source line and a caret. `diagnostics` is a tuple of
    Diagnostic.
    """

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()):
        super().__init__(message)
        self.diagnostics = diagnostics


class ArgumentError(Error, ValueError):
    """A call is refused because of a value, a shape or strides. Nothing was written.

    `code` is the code of the check (docs/Calling.md), or 0.
    """
    code = 0


class ArgumentTypeError(Error, TypeError):
    """A call is refused because of an element type or the kind of an argument. Nothing was written."""
    code = 3


class DeviceError(Error, RuntimeError):
    """The device is missing or does not suit, or arrays are not on it."""
    code = 8


class CompileWarning(UserWarning):
    """A warning of the compiler. `diagnostic` is its Diagnostic."""

    def __init__(self, message: str, diagnostic: Diagnostic | None = None):
        super().__init__(message)
        self.diagnostic = diagnostic


class ToleranceWarning(UserWarning):
    """The results were computed, but not shown to be within their tolerances (code 15)."""


for _public in (Diagnostic, Error, CompileError, ArgumentError, ArgumentTypeError, DeviceError, CompileWarning,
                ToleranceWarning):
    _public.__module__ = "moa"
