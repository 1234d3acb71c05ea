#!/usr/bin/env bash
# compute-sanitizer on small kernels: sanitize.sh DIRECTORY, where run.sh has put
# and compiled the kernels.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$here/../Support MOA_TEST_TARGET=cuda MOA_GPU_KERNELS=$1
status=0
for test in unseen_values pair_masks; do
  for tool in memcheck racecheck synccheck; do
    log=$1/$test-$tool.log
    if compute-sanitizer --tool "$tool" --error-exitcode 9 "${PYTHON:-python3}" "$here/../CPU/$test.py" >"$log" 2>&1
    then echo "$test $tool: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -1)"
    else echo "$test $tool FAILED"; tail -5 "$log"; status=1
    fi
  done
done
exit $status
