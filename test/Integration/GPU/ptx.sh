#!/usr/bin/env bash
# PTX by its launcher and by the run-time library against CUDA C++, bit for bit, for
# every example and element type and for every elementary function, where the
# compiler itself need not be:
#
#   ptx.sh emit DIRECTORY    write the kernels of both targets (here)
#   ptx.sh test DIRECTORY    compile both and the library, run them, compare (there)
#
# The last lines are a table; the exit code is not 0 if one bit differs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$here/../Support PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-python3}
job=${1:-} directory=${2:-}
[ -n "$directory" ] || { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

case $job in
emit)
  mkdir -p "$directory/include"
  # The library is compiled there, and needs this header.
  cp -rL "${JSON_INCLUDE:-/usr/include}/nlohmann" "$directory/include/"
  exec "$python" "$here/../Support/ptx_equal.py" emit "$directory"
  ;;
test) ;;
*) echo "ptx.sh: expects emit or test" >&2; exit 2 ;;
esac

cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
export CUDA_ROOT=$cuda
compile() {
  base=$1
  nvcc -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -shared -Xcompiler -fPIC \
    "$base.cu" -o "$base.cu.so" >"$base.log" 2>&1 || { echo "nvcc failed: $base"; head -5 "$base.log"; }
  gcc -O2 -Wall -Wextra -Werror -shared -fPIC -I"$CUDA_ROOT/include" "$base.c" -o "$base.ptx.so" \
    -L"$CUDA_ROOT/lib64/stubs" -lcuda >"$base.log" 2>&1 || { echo "gcc failed: $base"; head -5 "$base.log"; }
}
export -f compile
g++ -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -I"$root" -I"$root/include" \
  -isystem "$directory/include" "$root"/lib/Runtime/*.cpp -o "$directory/libmoa-runtime.so" \
  -Wl,--version-script="$root/lib/Runtime/exports.map" -ldl
export MOA_RUNTIME_LIBRARY=$directory/libmoa-runtime.so
find "$directory" -name '*.cu' | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
exec "$python" "$here/../Support/ptx_equal.py" test "$directory"
