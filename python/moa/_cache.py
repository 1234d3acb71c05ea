"""What was compiled, kept on disk (docs/Python.md, "The cache").

An entry is one file: a mark, the SHA-256 of the rest, the length of a JSON text, the text, and the
code. It is written beside its place and moved there, so a reader sees all of it or none.
"""
from __future__ import annotations

import hashlib
import json
import os
import tempfile

from moa import _libraries

_MARK = b"MoA cache 1\n"


def directory() -> str | None:
    """Returns the directory of the cache, or None if MOA_CACHE=0."""
    if os.environ.get("MOA_CACHE") == "0":
        return None
    given = os.environ.get("MOA_CACHE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "moa")


def processor() -> str:
    """Returns what tells this processor from others."""
    facts = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if not line.strip():
                    break
                facts[name.strip()] = value.strip()
    except OSError:
        pass
    kept = [facts.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping", "flags")]
    return "/".join(kept) if any(kept) else os.uname().machine


def key(**facts) -> str:
    """Returns the name of the entry for these facts and this build of the compiler."""
    text = json.dumps([_MARK.decode(), _libraries.fingerprint(), facts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read(name: str) -> tuple[dict, bytes] | None:
    """Returns the facts and the code of an entry, or None if there is none that is whole."""
    place = directory()
    if not place:
        return None
    try:
        with open(os.path.join(place, name), "rb") as file:
            whole = file.read()
    except OSError:
        return None
    start = len(_MARK) + 32
    if not whole.startswith(_MARK) or hashlib.sha256(whole[start:]).digest() != whole[len(_MARK):start]:
        return None
    length = int.from_bytes(whole[start:start + 8], "little")
    return json.loads(whole[start + 8:start + 8 + length]), whole[start + 8 + length:]


def write(name: str, facts: dict, code: bytes) -> None:
    """Writes an entry. A cache that cannot be written is none."""
    place = directory()
    if not place:
        return
    text = json.dumps(facts).encode()
    rest = len(text).to_bytes(8, "little") + text + code
    made = None
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=place, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(_MARK + hashlib.sha256(rest).digest() + rest)
        os.replace(made, os.path.join(place, name))
    except OSError:
        if made:
            try:
                os.unlink(made)
            except OSError:
                pass
