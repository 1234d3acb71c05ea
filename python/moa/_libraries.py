"""Where the libraries and the tools are."""
from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_BUILD = os.path.normpath(os.path.join(_PACKAGE, "..", ".."))  # of build/python/moa


def find_library(name: str) -> str:
    """Returns the path of a library: in MOA_LIBRARY_DIR if it is set, else in the package or the build tree."""
    given = os.environ.get("MOA_LIBRARY_DIR")
    places = [given] if given else [os.path.join(_PACKAGE, "_lib"), os.path.join(_BUILD, "lib")]
    for place in places:
        for file in (name, name + ".0.1"):
            path = os.path.join(place, file)
            if os.path.exists(path):
                return path
    raise ImportError(f"{name} is not in {', '.join(places)}; reinstall the package, or set MOA_LIBRARY_DIR")


def find_tool(name: str) -> str:
    """Returns the path of a tool: in MOA_BUILD_DIR if it is set, else in the package or the build tree."""
    given = os.environ.get("MOA_BUILD_DIR")
    places = [os.path.join(given, "bin")] if given else [os.path.join(_PACKAGE, "_lib"), os.path.join(_BUILD, "bin")]
    for place in places:
        path = os.path.join(place, name)
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"{name} is not in {', '.join(places)}; reinstall the package, or set MOA_BUILD_DIR")


def version() -> str:
    """Returns the version of the compiler."""
    from moa import _compiler
    return _compiler.library().moa_version_text().decode()


def fingerprint() -> list:
    """Returns what tells one build of the compiler from another, without loading it."""
    path = os.path.realpath(find_library("libmoa-c.so"))
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns]
