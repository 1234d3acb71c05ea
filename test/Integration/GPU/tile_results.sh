#!/usr/bin/env bash
# Every specification whose nests have two or more results in tiles, on a GPU in both texts, where the compiler itself need
# not be:
#
#   tile_results.sh emit DIRECTORY   write the kernels, CUDA C++ and PTX (here)
#   tile_results.sh test DIRECTORY   compile and run them against NumPy, several times each (there)
#
# The exit code is not 0 if a result is wrong or differs from run to run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$here/../Support PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-python3}
job=${1:-} directory=${2:-}
[ -n "$directory" ] || { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
export MOA_GPU_KERNELS=$directory

case $job in
emit)
  MOA_TEST_TARGET=record exec "$python" "$here/../CPU/tile_results.py"
  ;;
test) ;;
*) echo "tile_results.sh: expects emit or test" >&2; exit 2 ;;
esac

CUDA_ROOT=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
export CUDA_ROOT
compile() {
  base=$1
  [ -e "$base.so" ] || nvcc -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -shared -Xcompiler -fPIC \
    "$base.cu" -o "$base.so" >"$base.log" 2>&1 || { echo "nvcc failed: $base"; head -5 "$base.log"; }
  [ ! -e "$base.c" ] || gcc -O2 -Wall -Wextra -Werror -shared -fPIC -I"$CUDA_ROOT/include" "$base.c" -o "$base.ptx.so" \
    -L"$CUDA_ROOT/lib64/stubs" -lcuda >"$base.log" 2>&1 || { echo "gcc failed: $base"; head -5 "$base.log"; }
}
export -f compile
find "$directory" -name '*.cu' | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile "{}"'

status=0
for target in cuda ptx; do
  if MOA_TEST_TARGET=$target "$python" "$here/../CPU/tile_results.py" >"$directory/$target.log" 2>&1; then result=passed; else result=FAILED status=1; fi
  echo "$result $target: $(grep 'largest relative' "$directory/$target.log" | sed 's/largest relative L2 error //' | tr '\n' ';')"
  [ "$result" = passed ] || grep -E '^(FAIL|ERROR|AssertionError|RuntimeError)' "$directory/$target.log" | head -20
done
exit $status
