#!/usr/bin/env bash
# The GPU benchmark, on a machine that need not have the compiler:
#
#   run.sh emit DIRECTORY            write the kernels, with build/bin/moa-codegen
#   run.sh run DIRECTORY… [OPTION…]  compile them with nvcc and time them next to PyTorch's
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
codegen=${MOA_BUILD_DIR:-$root/build}/bin/moa-codegen
job=$1
shift
case $job in
emit)
  directory=$1
  mkdir -p "$directory"
  for width in 64 128 256; do
    for form in sdpa causal; do
      "$codegen" "$root/examples/$form.moa" --set T=bf16 --set "D=$width" --target=cuda \
        -o "$directory/$form-$width.cu"
    done
  done
  for width in 64 128; do
    for form in alibi softcap sliding_window; do
      "$codegen" "$root/examples/$form.moa" --set T=bf16 --set "D=$width" --target=cuda \
        -o "$directory/$form-$width.cu"
    done
  done
  for width in 64 128; do
    "$codegen" "$root/test/Families/document.moa" --set T=bf16 --set "D=$width" --target=cuda \
      -o "$directory/document-$width.cu"
  done
  # Grouped queries, with any number of queries and with one.
  "$codegen" "$root/examples/gqa_causal.moa" --set T=bf16 --set D=128 --target=cuda -o "$directory/gqa_causal-128.cu"
  "$codegen" "$root/examples/gqa_causal.moa" --set T=bf16 --set D=128 --set N=1 --target=cuda -o "$directory/decode-128.cu"
  for form in mask_ij mask_bhij block_sparse tree_ancestors; do
    "$codegen" "$root/test/Families/$form.moa" --set T=bf16 --set D=128 --target=cuda \
      -o "$directory/$form-128.cu"
  done
  ;;
run)
  compile() {
    nvcc -gencode arch=compute_90a,code=sm_90a -Werror all-warnings -Xptxas -v -shared -Xcompiler -fPIC \
      "$1.cu" -o "$1.so" >"$1.log" 2>&1 || { echo "nvcc failed: $1"; head -5 "$1.log"; }
  }
  export -f compile
  for directory in "$@"; do
    [ ! -d "$directory" ] || find "$directory" -name '*.cu'
  done | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
  exec python3 "$here/run.py" "$@"
  ;;
*)
  echo "run.sh: expects emit or run" >&2
  exit 2
  ;;
esac
