#!/usr/bin/env bash
# The tests of CPU kernels, compiled for several processors:
#
#   processors.sh local [TEST…]            compile and run here, for each processor that this one can stand for
#   processors.sh emit DIRECTORY [TEST…]   only compile, for all of them, into DIRECTORY/kernels.tar.xz (needs the compiler)
#   processors.sh test DIRECTORY [TEST…]   run what was compiled, where only NumPy need be
#
# A TEST is the name of a file in this folder, such as sdpa; without one all run. PROCESSORS names the processors.
# MOA_TEST_OPTIMISATION=0, given to emit and to test alike, compiles in half of the time.
# The exit code is not 0 if a test fails, or if a kernel was not carried.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$here/../Support PYTHONDONTWRITEBYTECODE=1
# One with NumPy, as Debian's is.
python=${PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
usage() { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

# Processor by LLVM's name | what /proc/cpuinfo must say | what tests are told of it when kernels are made.
# cooperlake is a Xeon with everything but tiles (AMX); sapphirerapids has these too.
avx2="avx2 fma bmi2 f16c"
avx512="$avx2 avx512f avx512bw avx512cd avx512dq avx512vl"
dots="$avx512 avx512_vnni avx512_bf16"
table="
x86-64-v3      | $avx2
x86-64-v4      | $avx512
cooperlake     | $dots
sapphirerapids | $dots avx_vnni avx512_fp16 amx_tile amx_bf16 amx_int8
"
PROCESSORS=${PROCESSORS:-x86-64-v3 x86-64-v4 cooperlake sapphirerapids}

job=${1:-}
case $job in
local) shift ;;
emit | test) [ $# -ge 2 ] || usage; directory=$2; shift 2 ;;
*) usage ;;
esac

if [ "$job" != test ] && [ ! -x "$MOA_BINARY_ROOT/bin/moa-codegen" ]; then
  echo "processors.sh: $MOA_BINARY_ROOT/bin/moa-codegen is missing; run ./build.sh build first" >&2
  exit 1
fi

words_of() { awk -F'|' -v name="$1" '{ key = $1; gsub(/ /, "", key) } key == name { print $2 }' <<<"$table"; }

# Whether this machine has the words of a processor; the first one that is missing is named.
lacks() {
  local word
  for word in $(words_of "$1"); do
    grep -qw "$word" /proc/cpuinfo || { echo "$word"; return; }
  done
}

if [ $# -gt 0 ]; then
  tests=$(printf "$here/%s.py\n" "$@")
else
  # Those that make kernels: the others test tools, whatever the processor is.
  tests=$(grep -lE 'forms\.FormTest|mt\.(make_k|K)ernel|plans\.PlansTest|in_blocks' "$here"/*.py)
fi

# Runs one test; prints its line and returns whether it passed with all of its kernels.
run_one() {
  local processor=$1 test=$2 log=$3 result=passed skipped absent
  "$python" "$test" >"$log" 2>&1 || result=FAILED
  skipped=$(grep -cE "skipped '|skipped \"" "$log" || true)
  absent=$(grep -c "was not carried" "$log" || true)
  printf '%-14s %-7s %s: %s, %s skipped, %s not carried\n' "$processor" "$result" "$(basename "$test" .py)" \
    "$(grep -E '^Ran [0-9]+ test' "$log" | sed 's/ in .*//' || true)" "$skipped" "$absent"
  [ "$result" = passed ] || grep -E '^(FAIL|ERROR|AssertionError|RuntimeError|.*Error:)' "$log" | head -6 | sed 's/^/    /'
  [ "$result" = passed ] && [ "$absent" = 0 ]
}

status=0
case $job in
emit)
  mkdir -p "$directory"
  kernels=$(mktemp -d) logs=$(mktemp -d)
  trap 'rm -rf "$kernels" "$logs"' EXIT
  for processor in $PROCESSORS; do
    echo "compiling for $processor"
    export MOA_TEST_EMIT=1 MOA_CPU_KERNELS=$kernels MOA_TEST_PROCESSOR=$processor
    MOA_TEST_WORDS="GenuineIntel $(words_of "$processor")"
    export MOA_TEST_WORDS
    # A test whose control flow follows from results may end early: its other kernels are missing then.
    echo "$tests" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c '"$0" -O "$1" >"$2/$3-$(basename "$1").log" 2>&1 || tail -1 "$2/$3-$(basename "$1").log" | sed "s|^|    $(basename "$1"): |"' \
      "$python" {} "$logs" "$processor"
  done
  count=$(find "$kernels" -name '*.so' | wc -l)
  cp -L "${MOA_LIBOMP:-/usr/lib/llvm-22/lib/libomp.so}" "$kernels/libomp.so.5"
  # Kernels for several processors are alike, which a large dictionary finds.
  tar -C "$kernels" -cf - . | xz -T0 -9 >"$directory/kernels.tar.xz"
  echo "$count kernels, $(du -h "$directory/kernels.tar.xz" | cut -f1) in $directory/kernels.tar.xz"
  [ "$count" -gt 0 ] || status=1
  ;;
test | local)
  logs=$(mktemp -d)
  trap 'rm -rf "$logs"' EXIT
  if [ "$job" = test ]; then
    mkdir "$logs/kernels"
    xz -dc "$directory/kernels.tar.xz" | tar -C "$logs/kernels" -xf -
    export MOA_CPU_KERNELS=$logs/kernels MOA_LIBOMP=$logs/kernels/libomp.so.5
    export LD_LIBRARY_PATH=$logs/kernels${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  else
    PROCESSORS="$PROCESSORS native"
  fi
  sed -n 's/^model name[[:space:]]*: /machine: /p' /proc/cpuinfo | head -1
  for processor in $PROCESSORS; do
    missing=$(lacks "$processor")
    if [ -n "$missing" ]; then
      echo "$processor: left out, as this machine lacks $missing"
      continue
    fi
    export MOA_TEST_PROCESSOR=$processor
    # Tests choose among processors by what the compiled-for one has.
    [ "$processor" = native ] || export MOA_TEST_WORDS="$(grep -m1 -o 'GenuineIntel\|AuthenticAMD' /proc/cpuinfo) $(words_of "$processor")"
    [ "$processor" != native ] || unset MOA_TEST_WORDS MOA_TEST_PROCESSOR
    for test in $tests; do
      run_one "$processor" "$test" "$logs/log" || status=1
    done
  done
  ;;
esac
exit $status
