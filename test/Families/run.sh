#!/usr/bin/env bash
# All families in f64, f32 and bf16, as tables:
#
#   run.sh cpu               runs them on this CPU
#   run.sh device            runs small problems in the interpreter of the device level
#   run.sh emit DIRECTORY    writes the kernels for a GPU, CUDA C++ and PTX (where the compiler is)
#   run.sh compile DIRECTORY compiles them (with nvcc and gcc, anywhere)
#   run.sh test DIRECTORY    compiles what is left and runs both (where the GPU is); the tables are
#                            DIRECTORY/cuda.md and DIRECTORY/ptx.md
#   run.sh join FILE...      puts such tables into RESULTS.md
#
# The exit code is not 0 if something fails that is not expected to. MOA_COMMIT names the commit where
# there is no repository.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$root/test/Integration/Support PYTHONDONTWRITEBYTECODE=1
table() { "${PYTHON:-python3}" "$here/Support/table.py" "$@"; }
usage() { sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
job=${1:-}
shift || usage

compile() {
  base=$1
  [ ! "$base.ptx.so" -nt "$base.c" ] || return 0
  nvcc -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -shared -Xcompiler -fPIC \
    "$base.cu" -o "$base.so" >"$base.log" 2>&1 || { echo "nvcc failed: $base"; head -5 "$base.log"; }
  gcc -O2 -Wall -Wextra -Werror -shared -fPIC -I"$CUDA_ROOT/include" "$base.c" -o "$base.ptx.so" \
    -L"$CUDA_ROOT/lib64/stubs" -lcuda >"$base.log" 2>&1 || { echo "gcc failed: $base"; head -5 "$base.log"; }
}
export -f compile

case $job in
cpu | device)
  section=$(mktemp)
  status=0
  MOA_TEST_TARGET=$job table run "$job" "$section" || status=1
  table join "$here/RESULTS.md" "$section"
  rm -f "$section"
  exit $status
  ;;
emit)
  [ $# = 1 ] || usage
  table emit "$1"
  ;;
compile | test)
  [ $# = 1 ] || usage
  CUDA_ROOT=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
  export CUDA_ROOT
  find "$1" -name '*.cu' | sed 's/\.cu$//' | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'compile {}'
  [ "$job" = test ] || exit 0
  export MOA_GPU_KERNELS=$1
  status=0
  for target in cuda ptx; do
    MOA_TEST_TARGET=$target table run $target "$1/$target.md" || status=1
  done
  exit $status
  ;;
join)
  table join "$here/RESULTS.md" "$@"
  ;;
*) usage ;;
esac
