"""Writes swish.onnx: a picture, a layer that only swish.cpp knows, and what comes behind it."""

import onnx
from onnx import TensorProto, helper

nodes = [
    helper.make_node("Swish_TRT", ["picture"], ["swished"], name="swish", beta=2.0),
    helper.make_node("ReduceMean", ["swished"], ["means"], axes=[2, 3], keepdims=0),
]
picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["N", 3, 32, 32])
means = helper.make_tensor_value_info("means", TensorProto.FLOAT, ["N", 3])
graph = helper.make_graph(nodes, "swish", [picture], [means])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "swish.onnx")
