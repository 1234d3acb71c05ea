# REQUIRES: onnxruntime
# RUN: %venv_python %s
"""The columns of docs/Compatibility.md for onnxruntime (CPU) and for the reference evaluator of onnx."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
import edge_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def model(feed, out_shape, attributes):
    """Returns a model with one operator Attention (opset 23) whose inputs have the types of the arrays."""
    types = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(bool): TensorProto.BOOL}
    values = [helper.make_tensor_value_info(name, types[array.dtype], array.shape) for name, array in feed.items()]
    result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, out_shape)
    node = helper.make_node("Attention", list(feed), ["Y"], **attributes)
    return helper.make_model(helper.make_graph([node], "one_node", values, [result]),
                             opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


class Attention(edge_cases.Implementation):

    def __init__(self, run):
        self.run = run

    def call(self, q, k, v, mask, causal, scale, gqa, lse):
        if lse:
            raise edge_cases.NotOffered
        feed = {"Q": q, "K": k, "V": v}
        if mask is not None:
            feed["mask"] = np.ascontiguousarray(mask)
        attributes = ({"is_causal": 1} if causal else {}) | ({} if scale is None else {"scale": scale})
        return edge_cases.Result(self.run(model(feed, [*q.shape[:3], v.shape[3]], attributes), feed))


def by_onnxruntime(graph, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # refusals are raised too
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


def by_reference(graph, feed):
    return ReferenceEvaluator(graph).run(None, feed)[0]


class Page(unittest.TestCase):

    def test_cells(self):
        columns = {}
        if edge_cases.same_version("onnxruntime", onnxruntime.__version__):
            columns["onnxruntime"] = Attention(by_onnxruntime)
        if edge_cases.same_version("onnx", onnx.__version__):
            columns["ONNX reference"] = Attention(by_reference)
        if not columns:
            self.skipTest("other versions of onnxruntime and onnx")
        count, wrong = edge_cases.compare(columns, sys.argv[1:])
        self.assertEqual([], wrong, "\n" + "\n".join(wrong))
        self.assertGreater(count, 25 * len(columns))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
