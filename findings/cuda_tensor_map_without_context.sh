#!/usr/bin/env bash
# cuda-bindings 13.0.3 (PyPI) with the driver of a GPU: cuTensorMapEncodeTiled returns CUDA_ERROR_INVALID_CONTEXT (201) in a
# thread that has made no other CUDA call, although it only fills 128 bytes on the host. cudaGetDevice does not help: it
# answers 0, but makes no context current. After cudaFree(0), which makes the primary context current, the same call
# returns 0. So code that checks arguments, describes tiles and then launches fails in a new thread at the second step.
#
# Output seen on 2026-11-30 (NVIDIA H200, driver 580.159.04):
#   main thread 0, new thread 201, after cudaGetDevice 201, after cudaFree 0
#
# Needs a GPU. Installs pinned packages in a temporary folder. Exit code 0 while the behaviour is as described, 1 if it
# changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q cuda-bindings==13.0.3
"$folder/venv/bin/python" - <<'END'
import sys
import threading

from cuda.bindings import driver, runtime

error, pointer = runtime.cudaMalloc(64 * 128 * 2)
assert int(error) == 0, "needs a GPU"
seen = []


def encode():
    """The code of a map of tiles of 64 x 64 elements of 16 bits in an array of 128 x 64."""
    numbers = [driver.cuuint64_t(n) for n in (64, 128, 64 * 2)]
    small = [driver.cuuint32_t(n) for n in (64, 64, 1, 1)]
    code, _ = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, driver.cuuint32_t(2), pointer, numbers[:2],
        numbers[2:], small[:2], small[2:], driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    seen.append(int(code))


def in_thread():
    encode()
    assert int(runtime.cudaGetDevice()[0]) == 0
    encode()
    assert int(runtime.cudaFree(0)[0]) == 0
    encode()


encode()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
print("main thread %d, new thread %d, after cudaGetDevice %d, after cudaFree %d" % tuple(seen))
sys.exit(seen != [0, 201, 201, 0])
END
