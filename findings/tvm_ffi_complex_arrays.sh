#!/usr/bin/env bash
# apache-tvm-ffi 0.1.15.post2 with NumPy 2.4.6 (PyPI): from_dlpack takes an array of complex numbers, but its dtype cannot
# be read: ValueError, "DLDataType contains unknown type_code=5". DLPack defines code 5 as kDLComplex, and NumPy reads the
# same tensor back without loss. So a tensor passes through code that never looks at its type, and fails where a check
# of arguments reads the type to report it.
#
# Output seen on 2026-11-30 (CPU):
#   shape (3,), NumPy reads complex64, dtype raises ValueError: DLDataType contains unknown type_code=5
#
# Installs pinned packages in a temporary folder. Exit code 0 while the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q apache-tvm-ffi==0.1.15.post2 numpy==2.4.6
"$folder/venv/bin/python" - <<'END'
import sys

import numpy as np
import tvm_ffi

array = np.array([1 + 2j, 3 - 4j, 0], np.complex64)
tensor = tvm_ffi.from_dlpack(array)
back = np.from_dlpack(tensor)
assert np.array_equal(back, array)
try:
    raised = "nothing, " + str(tensor.dtype)
except ValueError as error:
    raised = "ValueError: " + str(error).splitlines()[-1].strip()
print(f"shape {tuple(tensor.shape)}, NumPy reads {back.dtype}, dtype raises {raised}")
sys.exit("unknown type_code=5" not in raised)
END
