"""`TensorType`s from and to ONNX's messages."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from headrace.network.tensor_spec import TensorType, axis_name

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto, TypeProto

    from headrace._core.types import Array


MAX_VALUES = 4096
"""Most elements of a tensor that is followed by value: shapes, indices, scales."""


def type_proto(info: TensorType) -> TypeProto:
    """Make the `TypeProto`."""
    from onnx import helper

    return helper.make_tensor_type_proto(info.elem, info.axes)


def read_type(proto: TypeProto) -> TensorType | None:
    """Read a `TypeProto`; None for anything but a tensor with an element type."""
    if proto is None or not proto.HasField("tensor_type") or not proto.tensor_type.elem_type:
        return None
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return TensorType(tensor.elem_type, None)
    axes = [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else axis_name(d.dim_param)
        for d in tensor.shape.dim
    ]
    return TensorType(tensor.elem_type, tuple(axes))


def constant_type(tensor: TensorProto) -> TensorType:
    """Describe a `TensorProto`, with its elements if they are few."""
    from onnx import numpy_helper

    shape = tuple(tensor.dims)
    small = prod(shape) <= MAX_VALUES and not tensor.HasField("data_location")
    array = numpy_helper.to_array(tensor) if small else None
    return TensorType(tensor.data_type, shape, array)


def model_beside(proto: ModelProto, name: str) -> ModelProto:
    """A model with an empty graph, of the versions and with the functions of another one."""
    import onnx

    model = onnx.ModelProto(ir_version=max(proto.ir_version, 4))  # before, weights are inputs
    model.opset_import.extend(proto.opset_import)
    model.functions.extend(proto.functions)
    model.graph.name = name
    return model


def small_constants(proto: ModelProto) -> dict[str, Array]:
    """Vectors and scalars of a model that are constant and may be shapes, by name."""
    from onnx import numpy_helper

    constants = {}
    for tensor in proto.graph.initializer:
        if len(tensor.dims) <= 1 and sum(tensor.dims) <= 64:
            constants[tensor.name] = numpy_helper.to_array(tensor)
    for node in proto.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and len(attribute.t.dims) <= 1:
                    constants[node.output[0]] = numpy_helper.to_array(attribute.t)
    return constants
