#!/usr/bin/env bash
# torch 2.11.0 (CPU): scaled_dot_product_attention with is_causal=True and scale=0.0 gives NaN in every row that has a
# hidden key, and so does a negative scale. In bfloat16 with 128 rows a negative scale gives zeros instead, without a
# sign of an error. The math back end gives the attention. CPU flash is the default for these inputs. The cause: hidden
# scores are set to -inf before they are multiplied by the scale, so they become NaN (0 * -inf) or +inf.
#
# Output seen on 2026-11-30 (128 queries and keys; the last row sees every key):
#   float32  scale  0.0: default NaN    math right
#   float32  scale -1.0: default NaN    math right
#   bfloat16 scale  0.0: default NaN    math right
#   bfloat16 scale -1.0: default zeros  math right
#
# Installs pinned packages in a temporary folder (3.5 GB), unless PYTHON names a Python that has torch 2.11.0. Exit code 0
# while the behaviour is as described, 1 if it changed.
set -euo pipefail
if [ -z "${PYTHON:-}" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 -m venv "$folder/venv"
  PYTHON=$folder/venv/bin/python
  "$PYTHON" -m pip install -q torch==2.11.0 numpy==2.4.6
fi
"$PYTHON" -W ignore - <<'END'
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

assert torch.__version__.startswith("2.11.0"), torch.__version__
LENGTH, DEPTH = 128, 64
attention = torch.nn.functional.scaled_dot_product_attention


def word(found, expected):
    hidden = found[:, :, :-1].double()
    if hidden.isnan().all():
        return "NaN"
    if not hidden.any():
        return "zeros"
    return "right" if (found.double() - expected).norm() < 2e-2 * expected.norm() else "wrong"


seen = []
for dtype in (torch.float32, torch.bfloat16):
    for scale in (0.0, -1.0):
        torch.manual_seed(0)
        q, k, v = (torch.randn(1, 2, LENGTH, DEPTH, dtype=torch.float64).to(dtype) for _ in range(3))
        scores = (q.double() @ k.double().mT * scale).masked_fill(~torch.ones(LENGTH, LENGTH).tril().bool(), -torch.inf)
        expected = scores.softmax(-1) @ v.double()
        default = word(attention(q, k, v, is_causal=True, scale=scale), expected)
        with sdpa_kernel(SDPBackend.MATH):
            math = word(attention(q, k, v, is_causal=True, scale=scale), expected)
        print(f"{str(dtype)[6:]:8} scale {scale:4}: default {default:6} math {math}")
        seen.append((default, math))
sys.exit(seen != [("NaN", "right")] * 3 + [("zeros", "right")])
END
