#!/usr/bin/env bash
# jax 0.10.2 (CPU), jax.nn.dot_product_attention with implementation="xla": a row whose boolean mask is False at every
# key gives the mean of all values, also of keys that no row sees, such as padding. So values of padding reach the
# result, and a NaN there does too. A row whose float bias is -inf at every key gives NaN. PyTorch, onnxruntime and
# FlexAttention give 0 for both rows. The cause: a hidden score becomes a finite number (-0.7 times the largest float),
# the same one at every key.
#
# Output seen on 2026-11-30 (row 2 of 4 sees no key; keys 4 to 7 are padding whose values are 100):
#   mask: mean of all 8 values True (50.18; of the 4 used keys: 0.35)   bias: NaN True   other rows agree: True
#
# Installs pinned packages in a temporary folder, unless PYTHON names a Python that has jax 0.10.2. Exit code 0 while the
# behaviour is as described, 1 if it changed.
set -euo pipefail
if [ -z "${PYTHON:-}" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 -m venv "$folder/venv"
  PYTHON=$folder/venv/bin/python
  "$PYTHON" -m pip install -q jax==0.10.2 numpy==2.4.6
fi
JAX_PLATFORMS=cpu "$PYTHON" - <<'END'
import sys

import jax
import numpy as np

assert jax.__version__ == "0.10.2", jax.__version__
ROWS, KEYS, USED, DEPTH = 4, 8, 4, 16
random = np.random.default_rng(0)
q, k, v = (random.standard_normal((1, n, 1, DEPTH)).astype(np.float32) for n in (ROWS, KEYS, KEYS))
v[:, USED:] = 100
mask = np.broadcast_to(np.arange(KEYS) < USED, (1, 1, ROWS, KEYS)).copy()
mask[0, 0, 2] = False
bias = np.where(mask, 0, -np.inf).astype(np.float32)


def run(**options):
    return np.asarray(jax.nn.dot_product_attention(q, k, v, implementation="xla", **options))[0, :, 0]


scores = q[0, :, 0].astype(float) @ k[0, :USED, 0].astype(float).T / np.sqrt(DEPTH)
weights = np.exp(scores)
expected = weights / weights.sum(-1, keepdims=True) @ v[0, :USED, 0]
masked, biased = run(mask=mask), run(bias=bias)
rest = [0, 1, 3]
mean = v[0, :, 0].mean(0)
seen = [bool(np.allclose(masked[2], mean, rtol=1e-5)), bool(np.isnan(biased[2]).all()),
        bool(np.allclose(masked[rest], expected[rest], atol=1e-5) and np.allclose(biased[rest], expected[rest], atol=1e-5))]
print(f"mask: mean of all {KEYS} values {seen[0]} ({masked[2, 0]:.2f}; of the {USED} used keys: "
      f"{v[0, :USED, 0, 0].mean():.2f})   bias: NaN {seen[1]}   other rows agree: {seen[2]}")
sys.exit(seen != [True, True, True])
END
