#!/usr/bin/env bash
# Kernels with --binding=tvm-ffi on a GPU, where the compiler itself need not be:
#
#   ffi.sh emit DIRECTORY    write the kernels (here)
#   ffi.sh test DIRECTORY    compile them with nvcc, call them from Python, measure (there)
#
# The test needs a Python with PyTorch and apache-tvm-ffi; PYTHON names it. With
# network: pip install apache-tvm-ffi. Without, before: pip download apache-tvm-ffi
# -d DIRECTORY/wheels, with the version of that Python; the test installs from there.
# The last lines are a table; the exit code is not 0 if a result is wrong.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=${PYTHON:-python3}
job=${1:-} directory=${2:-}
[ -n "$directory" ] || { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

# The name of a kernel and its settings.
kernels='
sdpa
gqa_causal
layernorm_product  --set T=f32
'

case $job in
emit)
  mkdir -p "$directory"
  while read -r name settings; do
    [ -n "$name" ] || continue
    # shellcheck disable=SC2086
    "${MOA_BUILD_DIR:-$root/build}/bin/moa-codegen" "$root/examples/$name.moa" $settings --target=cuda \
      --binding=tvm-ffi -o "$directory/$name.cu"
  done <<<"$kernels"
  ls "$directory"/*.cu
  exit 0
  ;;
test) ;;
*) echo "ffi.sh: expects emit or test" >&2; exit 2 ;;
esac

if ! "$python" -c 'import tvm_ffi' 2>/dev/null; then
  if [ -d "$directory/wheels" ]; then
    "$python" -m pip install --quiet --no-index --find-links "$directory/wheels" --target "$directory/packages" apache-tvm-ffi
  else
    "$python" -m pip install --quiet --target "$directory/packages" apache-tvm-ffi
  fi
  export PYTHONPATH=$directory/packages
fi
compile() {
  nvcc -O2 -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -shared -Xcompiler -fPIC \
    "$1.cu" -o "$1.so" >"$1.log" 2>&1 || { echo "nvcc failed: $1"; head -5 "$1.log"; }
}
export -f compile
find "$directory" -maxdepth 1 -name '*.cu' | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
echo 'int __tvm_ffi_nothing(void *self, const void *args, int num_args, void *result) { return 0; }' |
  gcc -O2 -w -shared -fPIC -xc - -o "$directory/empty.so"
exec "$python" "$here/../Support/ffi_calls.py" "$directory"
