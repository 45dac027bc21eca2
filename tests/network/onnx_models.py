"""Tiny ONNX models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Shape = Sequence[int | str | None]


def image_model(
    shape: Shape = ("batch", 3, 4, 6),
    *,
    elem_type: int = FLOAT,
    scale: float = 2.0,
    out_shape: Shape | None = None,
    list_weight_as_input: bool = False,
    opset: int = 13,
) -> onnx.ModelProto:
    """`doubled = x * scale` (batch first) and `mean` = mean of each item (one axis: the batch)."""
    weight = numpy_helper.from_array(np.full((1, 1, 1, 1), scale, np.float32), "weight")
    nodes = [
        helper.make_node("Cast", ["x"], ["xf"], "cast", to=FLOAT),
        helper.make_node("Mul", ["xf", "weight"], ["doubled"], "double"),
        helper.make_node("ReduceMean", ["xf"], ["mean"], "average", axes=[1, 2, 3], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("x", elem_type, list(shape))]
    if list_weight_as_input:
        inputs.append(helper.make_tensor_value_info("weight", FLOAT, [1, 1, 1, 1]))
    outputs = [
        helper.make_tensor_value_info("doubled", FLOAT, list(out_shape or shape)),
        helper.make_tensor_value_info("mean", FLOAT, [shape[0]]),
    ]
    return model_of(nodes, inputs, outputs, [weight], opset=opset)


def model_of(
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    initializers: Sequence[Any] = (),
    *,
    opset: int = 13,
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def external_model(location: str, *, length: int | None = None, offset: int = 0) -> Any:
    """`y = x + w` with the 72 floats of `w` in the file `location`."""
    weight = TensorProto(name="w", data_type=FLOAT, dims=[1, 3, 4, 6])
    weight.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": str(offset), "length": str(length or 288)}
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return model_of(
        [helper.make_node("Add", ["x", "w"], ["y"], "add")],
        [helper.make_tensor_value_info("x", FLOAT, ["batch", 3, 4, 6])],
        [helper.make_tensor_value_info("y", FLOAT, ["batch", 3, 4, 6])],
        [weight],
    )


def save(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
