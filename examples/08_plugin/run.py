"""A model that ends in BoxFilter_TRT: built, saved, loaded, run."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from headrace.engine import BuildOptions, Plan, build
from headrace.network import network_from_onnx
from headrace.plugins import get_plugin_registry

HERE = Path(__file__).parent


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


nodes = [
    helper.make_node("Sigmoid", ["logits"], ["scores"]),
    helper.make_node(
        "BoxFilter_TRT",
        ["boxes", "scores"],
        ["best", "top", "count"],
        name="filter",
        keep=10,
        threshold=0.95,
    ),
]
graph = helper.make_graph(
    nodes,
    "detector's end",
    [tensor("boxes", ["N", 100, 4]), tensor("logits", ["N", 100])],
    [
        tensor("best", ["N", 10, 4]),
        tensor("top", ["N", 10]),
        tensor("count", ["N", 1], TensorProto.INT32),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, HERE / "model.onnx")

get_plugin_registry().load_library(HERE / "box_filter.py")
plan = build(network_from_onnx(HERE / "model.onnx"), BuildOptions(max_batch=2))
plan.save(HERE / "model.engine")

loaded = Plan.load(HERE / "model.engine")
print(loaded.header.plugins[0])
rng = np.random.default_rng(0)
boxes = rng.uniform(0, 100, (1, 100, 4)).astype(np.float32)
logits = rng.normal(0, 2, (1, 100)).astype(np.float32)
with loaded.open_session() as session:
    found = session.run({"boxes": boxes, "logits": logits})
print(f"{found['count'][0, 0]} of 100 rows over 0.95, the best has {found['top'][0, 0]:.3f}")
