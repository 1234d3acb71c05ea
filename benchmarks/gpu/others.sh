#!/usr/bin/env bash
# The GPU benchmarks next to run.sh that measure no spent accuracy, on a machine that need not have the compiler:
#
#   others.sh emit DIRECTORY           writes the kernels, with build/bin/moa-codegen
#   others.sh run DIRECTORY [NAME...]  compiles them with nvcc and prints the tables of NAMEs (all by default):
#                                      decode, rows, moments, single, norms, linear, stored, eight_bits
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
codegen=${MOA_BUILD_DIR:-$root/build}/bin/moa-codegen
all='decode rows moments single norms linear stored eight_bits'
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
job=$1 directory=$2
shift 2

# emit FILE SPECIFICATION OPTION...
emit() {
  local file=$directory/$1.cu specification=$2
  shift 2
  mkdir -p "$(dirname "$file")"
  "$codegen" "$specification" --target=cuda "$@" -o "$file"
}

compile() {
  nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC "$1.cu" -o "$1.so" -lcuda >"$1.log" 2>&1 ||
    { echo "nvcc failed: $1"; head -5 "$1.log"; }
}
export -f compile

case $job in
emit)
  emit decode/decode "$here/decode.moa"
  for width in 64 128 256; do
    emit "rows/rows-$width" "$here/rows.moa" --set "D=$width"
  done
  emit linear/stored "$here/linear.moa"
  emit linear/dense "$here/linear.moa" --disable-rule=R7
  for type in bf16 f32; do
    emit "stored/stored-$type" "$here/stored.moa" --set "T=$type"
  done
  emit single/lanes "$here/single.moa"
  for name in moments norms eight_bits; do
    emit "$name/$name" "$here/$name.moa"
  done
  ;;
run)
  names=${*:-$all}
  for name in $names; do
    find "$directory/$name" -name '*.cu'
  done | sed 's/\.cu$//' | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
  for name in $names; do
    echo "== $name"
    case $name in
    moments | norms | eight_bits) python3 "$here/$name.py" "$directory/$name/$name.so" ;;
    *) python3 "$here/$name.py" "$directory/$name" ;;
    esac
  done
  ;;
*)
  echo "others.sh: expects emit or run, got '$job'" >&2
  exit 2
  ;;
esac
