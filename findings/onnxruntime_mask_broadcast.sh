#!/usr/bin/env bash
# onnxruntime 1.30.0 (CPU), operator Attention (opset 23): an additive mask whose query axis has extent 1 is refused
# when the node runs. The schema says that the mask broadcasts to (batch, heads, queries, keys), and the ONNX reference
# evaluator (onnx 1.23.1) takes each of these shapes. Padding masks have such a shape: (batch, 1, 1, keys).
#
# Output seen on 2026-11-29 for 2 batch entries, 2 heads, 4 queries and 8 keys:
#   [4, 8]       agrees      [2, 4, 8]    agrees      [2, 1, 4, 8] agrees
#   [1, 8]       refused     [2, 1, 8]    refused     [2, 1, 1, 8] refused     [2, 2, 1, 8] refused
#
# Installs pinned packages in a temporary folder. Exit code 0 while the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnxruntime==1.30.0 onnx==1.23.1 numpy==2.4.6
"$folder/venv/bin/python" - 2>/dev/null <<'END'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

BATCH, HEADS, ROWS, KEYS, DEPTH = 2, 2, 4, 8, 16
EXPECTED = {(ROWS, KEYS): "agrees", (HEADS, ROWS, KEYS): "agrees", (BATCH, 1, ROWS, KEYS): "agrees",
            (1, KEYS): "refused", (HEADS, 1, KEYS): "refused", (BATCH, 1, 1, KEYS): "refused",
            (BATCH, HEADS, 1, KEYS): "refused"}
random = np.random.default_rng(0)


def behaviour(mask_shape):
    """Returns whether onnxruntime agrees with the reference evaluator, differs from it, or refuses the mask."""
    shapes = {"Q": [BATCH, HEADS, ROWS, DEPTH], "K": [BATCH, HEADS, KEYS, DEPTH], "V": [BATCH, HEADS, KEYS, DEPTH],
              "mask": list(mask_shape)}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, shapes["Q"])
    graph = helper.make_graph([helper.make_node("Attention", list(shapes), ["Y"])], "one_node", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    feed = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    wanted = ReferenceEvaluator(model).run(None, feed)[0]
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, feed)[0]
    except Exception:
        return "refused"
    return "agrees" if np.abs(found - wanted).max() < 1e-5 else "differs"


seen = {shape: behaviour(shape) for shape in EXPECTED}
for shape, what in seen.items():
    print(f"{list(shape)!s:13} {what}")
sys.exit(seen != EXPECTED)
END
