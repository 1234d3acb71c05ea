"""The types of the package; docs/Python.md describes its names."""
from moa._errors import (ArgumentError as ArgumentError, ArgumentTypeError as ArgumentTypeError,
                         CompileError as CompileError, CompileWarning as CompileWarning, DeviceError as DeviceError,
                         Diagnostic as Diagnostic, Error as Error, ToleranceWarning as ToleranceWarning)
from moa._kernel import Kernel as Kernel, Parameter as Parameter, compile as compile
from moa._options import Options as Options

__version__: str
__all__: list[str]
