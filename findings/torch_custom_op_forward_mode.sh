#!/usr/bin/env bash
# torch 2.11.0 (CPU): an operator of torch.library.custom_op with a backward pass gives a wrong forward-mode derivative
# without an error. torch.func.jvp returns zeros, and a dual tensor loses its tangent. A torch.autograd.Function without
# jvp raises an error in the same case.
#
# Output seen on 2026-11-30 (the operator doubles its argument, so the derivative is 2):
#   operator: jvp 0.0, tangent of the result None
#   function: NotImplementedError
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
from torch.autograd import forward_ad

assert torch.__version__.startswith("2.11.0"), torch.__version__


@torch.library.custom_op("finding::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


double.register_fake(torch.empty_like)
double.register_autograd(lambda ctx, gradient: gradient * 2)


class Double(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


x = torch.ones(1)
derivative = torch.func.jvp(double, (x,), (x,))[1].item()
with forward_ad.dual_level():
    dual = forward_ad.make_dual(x, x)
    tangent = forward_ad.unpack_dual(double(dual)).tangent
    try:
        Double.apply(dual)
        function = "no error"
    except RuntimeError as error:
        function = type(error).__name__
print(f"operator: jvp {derivative}, tangent of the result {tangent}")
print(f"function: {function}")
sys.exit((derivative, tangent, function) != (0.0, None, "NotImplementedError"))
END
