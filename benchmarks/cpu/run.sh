#!/usr/bin/env bash
# Prints the CPU figures. Arguments go to moa-bench-cpu, for example
#   benchmarks/cpu/run.sh --figure=attention --rounds=21
#   benchmarks/cpu/run.sh --parts        (the pieces of the rival, Google Benchmark)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${MOA_BUILD_DIR:-$root/build}
if [ ! -d "$build/bin" ]; then
  echo "run.sh: there is no build in $build; run ./build.sh build first" >&2
  exit 1
fi
for program in moa-bench-cpu moa-bench-cpu-parts; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "run.sh: $build/bin/$program is missing; ./build.sh build makes it where" \
         "OpenBLAS and Google Benchmark are installed" >&2
    exit 1
  fi
done

# Old OpenBLAS does not recognise every processor, and a wrong guess halves its
# speed: name the kernels that fit.
if [ -z "${OPENBLAS_CORETYPE:-}" ]; then
  if grep -qw avx512f /proc/cpuinfo; then
    export OPENBLAS_CORETYPE=SkylakeX
  elif grep -qw avx2 /proc/cpuinfo; then
    export OPENBLAS_CORETYPE=Haswell
  fi
fi
# Threads that wait give their core away, so that neither side disturbs the other.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

sed -n 's/^model name[[:space:]]*: /machine: /p' /proc/cpuinfo | head -1
echo "load before the run: $(cut -d' ' -f1-3 /proc/loadavg)"
if [ "${1:-}" = --parts ]; then
  shift
  exec "$build/bin/moa-bench-cpu-parts" "$@"
fi
exec "$build/bin/moa-bench-cpu" "$@"
