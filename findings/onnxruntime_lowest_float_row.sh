#!/usr/bin/env bash
# onnxruntime 1.30.0 (CPU), operator Attention (opset 23): a row whose additive mask is the lowest finite f32 at every
# key gives 0. With -3e38 at every key the same row gives the mean of V, as the ONNX reference evaluator (onnx 1.23.1)
# gives for both. Other rows agree. So the lowest finite value is taken for "masked out", not for a number.
#
# Output seen on 2026-11-29 (largest difference of row 0 from float64, and whether it is all zeros):
#   -3e+38         onnxruntime 4.5e-08 False   reference 6.7e-08 False
#   -3.4028235e+38 onnxruntime 6.7e-01 True    reference 6.7e-08 False
#
# Installs pinned packages in a temporary folder. Exit code 0 while the behaviour is as described, 1 if it changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnxruntime==1.30.0 onnx==1.23.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'END'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

ROWS, KEYS, DEPTH = 4, 8, 16
shapes = {"Q": [1, 1, ROWS, DEPTH], "K": [1, 1, KEYS, DEPTH], "V": [1, 1, KEYS, DEPTH], "mask": [ROWS, KEYS]}
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, shapes["Q"])
node = helper.make_node("Attention", list(shapes), ["Y"])
model = helper.make_model(helper.make_graph([node], "one_node", values, [result]),
                          opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
reference = ReferenceEvaluator(model)
random = np.random.default_rng(0)
feed = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def expected(mask):
    scores = (feed["Q"].astype(float) @ feed["K"].astype(float).transpose(0, 1, 3, 2)) / np.sqrt(DEPTH)
    scores = (scores.astype(np.float32) + mask).astype(float)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ feed["V"].astype(float)


seen = []
for low in (np.float32(-3e38), np.finfo(np.float32).min):
    feed["mask"] = np.zeros((ROWS, KEYS), np.float32)
    feed["mask"][0] = low
    line = f"{low!s:14}"
    for name, run in (("onnxruntime", session), ("reference", reference)):
        found, wanted = run.run(None, feed)[0][0, 0], expected(feed["mask"])[0, 0]
        assert np.abs(found - wanted)[1:].max() < 1e-5
        is_zero = not found[0].any()
        line += f" {name} {np.abs(found - wanted)[0].max():.1e} {is_zero}  "
        seen.append(bool(is_zero))
    print(line)
sys.exit(seen != [False, False, True, False])
END
