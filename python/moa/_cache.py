"""Keeps compiled kernels on disk (docs/Python.md, "The cache").

An entry is one file: a mark, the SHA-256 of the rest, the length of a JSON text, the text, and the
code. It is written to a file of its own in the same directory and then renamed, so a reader sees all
of it or none. The modification time of an entry is the time of its last use.
"""
from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
import warnings

from moa import _libraries

_MARK = b"MoA cache 1\n"
_DEFAULT_SIZE = 1 << 30
_ENTRY = re.compile(r"[0-9a-f]{64}")
_PARTIAL = ".new-"
_PARTIAL_AGE = 3600  # seconds after which the writer of a partial entry counts as dead


def directory() -> str | None:
    """Returns the directory of the cache, or None if MOA_CACHE=0."""
    if os.environ.get("MOA_CACHE") == "0":
        return None
    given = os.environ.get("MOA_CACHE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "moa")


def size_limit() -> int:
    """Returns the number of bytes that the entries may take, from MOA_CACHE_SIZE."""
    given = os.environ.get("MOA_CACHE_SIZE")
    if not given:
        return _DEFAULT_SIZE
    found = re.fullmatch(r"(\d+)([KMG]?)", given.strip().upper(), re.ASCII)
    if not found:
        warnings.warn(f"MOA_CACHE_SIZE is {given!r}, so the limit is 1G; give bytes or a suffix, as in 512M",
                      RuntimeWarning, stacklevel=2)
        return _DEFAULT_SIZE
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


def _trim(place: str, kept: str) -> None:
    """Removes the least recently used entries until the others fit the limit. The entry `kept` stays.

    Other processes may read, write and remove entries meanwhile. For example, an entry that another
    process has removed counts as removed here too.
    """
    entries = []
    with os.scandir(place) as listed:
        for file in listed:
            try:
                if _ENTRY.fullmatch(file.name):
                    facts = file.stat(follow_symlinks=False)
                    entries.append((facts.st_mtime_ns, file.name, facts.st_size))
                elif file.name.startswith(_PARTIAL) and time.time() - file.stat().st_mtime > _PARTIAL_AGE:
                    os.unlink(file.path)
            except OSError:  # removed meanwhile
                pass
    excess = sum(size for _, _, size in entries) - size_limit()
    for _, name, size in sorted(entries):
        if excess <= 0:
            break
        if name == kept:
            continue
        try:
            os.unlink(os.path.join(place, name))
        except FileNotFoundError:
            pass
        except OSError:
            continue
        excess -= size


def processor() -> str:
    """Returns the vendor, model and features of this processor, or else its architecture."""
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


def _mark_used(path: str) -> None:
    now = time.time_ns()
    try:
        os.utime(path, ns=(now, now))
    except OSError:  # a directory of another owner, or the entry has been removed
        pass


def read(name: str) -> tuple[dict, bytes] | None:
    """Returns the facts and the code of an entry, or None if there is none that is whole."""
    place = directory()
    if not place:
        return None
    path = os.path.join(place, name)
    try:
        with open(path, "rb") as file:
            whole = file.read()
    except OSError:
        return None
    start = len(_MARK) + 32
    if not whole.startswith(_MARK) or hashlib.sha256(whole[start:]).digest() != whole[len(_MARK):start]:
        return None
    _mark_used(path)
    length = int.from_bytes(whole[start:start + 8], "little")
    return json.loads(whole[start + 8:start + 8 + length]), whole[start + 8 + length:]


def write(name: str, facts: dict, code: bytes) -> None:
    """Writes an entry, and removes old ones beyond the limit. A cache that cannot be written is none."""
    place = directory()
    if not place:
        return
    text = json.dumps(facts).encode()
    rest = len(text).to_bytes(8, "little") + text + code
    made = None
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=place, prefix=_PARTIAL)
        with os.fdopen(handle, "wb") as file:
            file.write(_MARK + hashlib.sha256(rest).digest() + rest)
        _mark_used(made)
        os.replace(made, os.path.join(place, name))
        made = None
        _trim(place, name)
    except OSError:
        if made:
            try:
                os.unlink(made)
            except OSError:
                pass
