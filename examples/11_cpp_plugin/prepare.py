"""Writes swish.onnx: an image, a layer that only swish.cpp knows, and what lies around it."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

mix = np.random.default_rng(1).standard_normal((4, 3, 1, 1)).astype(np.float32)
nodes = [
    helper.make_node("Conv", ["image", "mix"], ["mixed"], name="mix"),
    helper.make_node("Swish_TRT", ["mixed"], ["swished"], name="swish", beta=2.0),
    helper.make_node("ReduceMean", ["swished"], ["means"], axes=[2, 3], keepdims=0),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])
means = helper.make_tensor_value_info("means", TensorProto.FLOAT, ["N", 4])
weights = [numpy_helper.from_array(mix, "mix")]
graph = helper.make_graph(nodes, "swish", [image], [means], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "swish.onnx")
