"""The options of a compilation."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike


@dataclass(frozen=True)
class Options:
    """Options of moa.compile other than the settings of the specification.

    settings: further settings, for names that are parameters of moa.compile.
    name: the file in messages about a specification that is given as text.
    schedule: a text as Kernel.schedule has it, or the path of its file.
    processor: the LLVM name of the processor, by default this machine's.
    architecture: the GPU of the schedule and the report, by default "sm_90a" for target "cuda".
    optimization: LLVM's level for CPU code, 0 to 3. All yield the same results.
    within: tolerances of results, in place of those of the specification:
        {"O": "3e-2 relative sampled"}, or a number for a bound that holds for every input.
    check_tolerances: evaluate in each call the bounds of tolerances that hold for every input.
    spend: add mixed-precision variants within the tolerances.
    spend_from: the rows and keys from which variants are tried, at least 256; 0: where they pay.
    pilot_from: the multiply-adds of a head from which a pilot is run on a GPU; -1: where it pays.
    spend_as_gpu: use the variants of a GPU, whatever the target.
    low_rank: the rows and keys from which few keys may stand for many, at least 256; 0: never.
    decisions: return the decisions of variants as further results.
    plans: decisions taken beforehand, as a text or the path of a file of moa-run --calibrate.
    check_plans: estimate the error of given decisions too, and replace those that exceed it.
    warn_if_unused: warn if no variant can be used for any size.
    cache: keep what was compiled on disk, and read it from there.
    """
    settings: Mapping[str, object] = field(default_factory=dict)
    name: str | None = None
    schedule: str | PathLike | None = None
    processor: str | None = None
    architecture: str | None = None
    optimization: int = 1
    within: Mapping[str, str | float] = field(default_factory=dict)
    check_tolerances: bool = True
    spend: bool = False
    spend_from: int = 256
    pilot_from: int = -1
    spend_as_gpu: bool = False
    low_rank: int = 0
    decisions: bool = False
    plans: str | PathLike | None = None
    check_plans: bool = False
    warn_if_unused: bool = False
    cache: bool = True


def _read(given) -> tuple[str, str]:
    """Returns the text of an option and its file: a path or the text itself."""
    if isinstance(given, os.PathLike) or not ("\n" in given or given.lstrip().startswith("{")):
        path = os.fspath(given)
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    return given, ""


def texts_of(options) -> dict:
    """Returns the texts of the options that may be files."""
    return {name: _read(given) for name in ("schedule", "plans") if (given := getattr(options, name))}
