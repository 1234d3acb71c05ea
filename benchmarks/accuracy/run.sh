#!/usr/bin/env bash
# Prints every table of RESULTS.md, in its order:
#   benchmarks/accuracy/run.sh > benchmarks/accuracy/RESULTS.md
# NumPy is all it needs. One thread per process; about 20 minutes of one free core. SEEDS=1000 is what the
# estimate is tried on, PYTHON the interpreter.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
  echo "run.sh: $python has no NumPy; name one that has: PYTHON=/usr/bin/python3 $0" >&2
  exit 1
fi
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
echo "# Accuracy to spend: results"
echo
echo "What \`benchmarks/accuracy/run.sh\` printed. [NOTES.md](NOTES.md) says what was expected and what follows."
echo
"$python" "$here/formats.py"
"$python" "$here/estimate.py" --seeds "${SEEDS:-1000}" --minutes "${MINUTES:-120}"
"$python" "$here/sampled.py"
"$python" "$here/laws_of_plan.py"
"$python" "$here/earlier_rules.py"
