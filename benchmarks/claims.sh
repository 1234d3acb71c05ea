#!/usr/bin/env bash
# Prints every number that README.md and docs/ claim, next to what is measured now:
#
#   benchmarks/claims.sh              all claims that need no more than this machine, in some minutes
#   benchmarks/claims.sh NAME…        these claims only; benchmarks/claims.sh --list names them
#   benchmarks/claims.sh --check      only that every claim still stands in its document; nothing is measured
#
# A line says ok, differs, or why it was left out. Figures of a GPU come from the committed table benchmarks/gpu/FIGURES.tsv,
# with its date; where there is a GPU, a fresh run follows. The exit code is not 0 if a claim differs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export MOA_SOURCE_ROOT=$root MOA_BINARY_ROOT=${MOA_BUILD_DIR:-$root/build}
export PYTHONPATH=$root/test/Integration/Support:$root/benchmarks/accuracy PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-/usr/bin/python3}
command -v "$python" >/dev/null || python=python3
exec "$python" "$root/benchmarks/claims.py" "$@"
