#!/usr/bin/env bash
# The integration tests of every form on a GPU, where the compiler itself need
# not be:
#
#   run.sh emit DIRECTORY [TEST...]   write the kernels (here; runs the tests on the CPU)
#   run.sh test DIRECTORY [TEST...]   compile them with nvcc and run the tests (there)
#
# Without names of tests, such as back_to_back, all of them. Those of this folder write their kernels without running.
# lit runs the same tests (test/Integration/GPU) where both are.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$here/../Support PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-python3}
job=$1 directory=$2
shift 2

export MOA_GPU_KERNELS=$directory
tests=$(grep -l 'forms.FormTest\|mt.make_kernel\|plans.PlansTest' "$here"/../CPU/*.py; ls "$here"/*.py)
if [ $# -gt 0 ]; then
  tests=$(for name in "$@"; do ls "$here/../CPU/$name.py" "$here/$name.py" 2>/dev/null || true; done)
fi
case $job in
emit)
  # The tests run on this CPU and write down every kernel they ask for.
  mkdir -p "$directory"
  status=0
  for test in $tests; do
    MOA_TEST_TARGET=record "$python" "$test" >/dev/null 2>&1 || { echo "failed on this CPU: $test"; status=1; }
  done
  count=$(find "$directory" -name '*.cu' | wc -l)
  echo "$count kernels in $directory"
  [ "$count" -gt 0 ] || status=1
  exit $status
  ;;
test) ;;
*) echo "run.sh: expects emit or test" >&2; exit 2 ;;
esac

compile() {
  nvcc -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -shared -Xcompiler -fPIC \
    "$1.cu" -o "$1.so" >"$1.log" 2>&1 || { echo "nvcc failed: $1"; head -5 "$1.log"; }
}
export -f compile
find "$directory" -name '*.cu' | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile {}'

export MOA_TEST_TARGET=cuda
status=0
for test in $tests; do
  if "$python" "$test" >"$directory/$(basename "$test").log" 2>&1; then result=passed; else result=FAILED status=1; fi
  echo "$result $(basename "$test" .py): $(grep 'largest relative' "$directory/$(basename "$test").log" | sed 's/largest relative L2 error //' | tr '\n' ';')"
  [ "$result" = passed ] || grep -E '^(FAIL|ERROR|AssertionError|RuntimeError)' "$directory/$(basename "$test").log" | head -6
done
exit $status
