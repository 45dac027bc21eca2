"""Writes swish.onnx: an image, a layer that only swish.cpp knows, and what comes behind it."""

import onnx
from onnx import TensorProto, helper

nodes = [
    helper.make_node("Swish_TRT", ["image"], ["swished"], name="swish", beta=2.0),
    helper.make_node("ReduceMean", ["swished"], ["means"], axes=[2, 3], keepdims=0),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])
means = helper.make_tensor_value_info("means", TensorProto.FLOAT, ["N", 3])
graph = helper.make_graph(nodes, "swish", [image], [means])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "swish.onnx")
