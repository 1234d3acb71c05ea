#!/usr/bin/env bash
# torch 2.11.0 (PyPI, Linux x86-64): `import torch` loads GCC's OpenMP, torch/lib/libgomp.so.1, for the whole process.
# dlsym(RTLD_DEFAULT, "omp_get_thread_num") then answers with libgomp's function. LLVM's OpenMP has functions of the same
# names, and libgomp's return 0 in each of its threads. Code that is linked with LLVM's library is safe, because its
# symbols have a version. Code that a JIT links by name, such as LLVM's DynamicLibrarySearchGenerator for the current
# process, gets libgomp's omp_get_thread_num beside libomp's __kmpc_fork_call, and its threads share one number.
#
# Output seen on 2026-11-30 (CPU, Python 3.11):
#   before import torch: not visible; after: libgomp.so.1 of torch
#
# Installs pinned packages in a temporary folder (3.5 GB), unless PYTHON names a Python that has torch 2.11.0. Exit code 0
# while the behaviour is as described, 1 if it changed.
set -euo pipefail
if [ -z "${PYTHON:-}" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 -m venv "$folder/venv"
  PYTHON=$folder/venv/bin/python
  "$PYTHON" -m pip install -q torch==2.11.0
fi
"$PYTHON" -W ignore - <<'END'
import ctypes
import sys


class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def library_of_symbol():
    """The file of the library whose omp_get_thread_num the process finds by name."""
    process, info = ctypes.CDLL(None), Info()
    try:
        function = process.omp_get_thread_num
    except AttributeError:
        return "not visible"
    process.dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    file = info.file.decode()
    return file.rsplit("/", 1)[-1] + (" of torch" if "/torch/lib/" in file else "")


before = library_of_symbol()
import torch  # noqa: E402

assert torch.__version__.startswith("2.11.0"), torch.__version__
after = library_of_symbol()
print(f"before import torch: {before}; after: {after}")
sys.exit((before, after) != ("not visible", "libgomp.so.1 of torch"))
END
