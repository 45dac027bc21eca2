"""Types and shapes of a whole graph by ONNX's own inference, around nodes that it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING

from headrace._core.errors import ModelError
from headrace.network.shapes.protos import model_beside, read_type
from headrace.network.tensor_spec import Axes, TensorType

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto


SMALL = 1024
"""Initialisers of at most so many elements may be shapes, and are kept for inference."""


class ShapeView:
    """A graph seen with certain shapes of its inputs.

    Args:
        proto: the `ModelProto`; not changed. Large weights are left out of what is worked on.
        inputs: shapes of graph inputs that replace those in the model.
    """

    def __init__(self, proto: ModelProto, inputs: Mapping[str, Axes] | None = None) -> None:
        self._model = without_weights(proto)
        self._declared = {v.name: v for v in proto.graph.value_info}
        for value in self._model.graph.input:
            shape = (inputs or {}).get(value.name)
            if shape is not None:
                _write_shape(value, shape)
        self._known: dict[str, TensorType] | None = None

    def known(self, names: Iterable[str]) -> list[TensorType | None]:
        """Find these values; inference runs if anything may have changed."""
        names = list(names)
        if self._known is None or any(n not in self._known for n in names):
            self._known = self._infer()
        return [self._known.get(name) for name in names]

    def tell(self, name: str, known: TensorType) -> None:
        """Add a value that inference cannot reach."""
        import onnx

        info = onnx.helper.make_tensor_value_info(name, known.elem, known.axes)
        kept = [v for v in self._model.graph.value_info if v.name != name]
        del self._model.graph.value_info[:]
        self._model.graph.value_info.extend([*kept, info])
        for output in self._model.graph.output:
            if output.name == name:
                output.CopyFrom(info)
        if self._known is not None:
            self._known[name] = known

    def infos(self) -> list[ValueInfoProto]:
        """Make a `ValueInfoProto` for every value of known type."""
        import onnx

        if self._known is None:
            self._known = self._infer()
        return [
            onnx.helper.make_tensor_value_info(name, known.elem, known.axes)
            for name, known in self._known.items()
        ]

    def forget(self) -> None:
        """Drop cached findings; values added by `tell` invalidate them."""
        self._known = None

    def _infer(self) -> dict[str, TensorType]:
        import onnx

        try:
            done = onnx.shape_inference.infer_shapes(self._model, data_prop=True)
        except Exception:  # inference is a help; the rest is measured, or reported later
            done = self._model
        graph = done.graph
        types = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            if (known := read_type(value.type)) is not None:
                types[value.name] = known
        for name, value in self._declared.items():
            if name not in types and (known := read_type(value.type)) is not None:
                types[name] = known
        for tensor in graph.initializer:
            types[tensor.name] = TensorType(tensor.data_type, tuple(tensor.dims))
        for node in graph.node:
            if node.op_type == "Constant" and node.output:
                for tensor in (
                    a.t for a in node.attribute if a.name == "value" and a.HasField("t")
                ):
                    known = TensorType(tensor.data_type, tuple(tensor.dims))
                    types.setdefault(node.output[0], known)
        return types


def without_weights(proto: ModelProto) -> ModelProto:
    """Make the model without weights: they become inputs of known shape."""
    import onnx

    light = model_beside(proto, proto.graph.name or "graph")
    graph = light.graph
    graph.input.extend(proto.graph.input)
    graph.output.extend(proto.graph.output)
    known = {v.name for v in graph.input}
    weights = {}
    for tensor in proto.graph.initializer:
        if prod(tensor.dims) <= SMALL:
            graph.initializer.append(tensor)
        elif tensor.name not in known:
            weights[tensor.name] = tensor
    for node in proto.graph.node:
        constant = _constant(node)
        if constant is None or prod(constant.dims) <= SMALL:
            graph.node.append(node)
        else:  # as Paddle writes its weights
            weights[node.output[0]] = constant
    graph.input.extend(
        onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
        for name, tensor in weights.items()
    )
    graph.sparse_initializer.extend(proto.graph.sparse_initializer)
    return light


def _constant(node: NodeProto) -> TensorProto | None:
    """The tensor of a node that holds one; None for other nodes."""
    if node.op_type != "Constant" or len(node.attribute) != 1 or len(node.output) != 1:
        return None
    attribute = node.attribute[0]
    return attribute.t if attribute.name == "value" else None


def _write_shape(value: ValueInfoProto, shape: Axes) -> None:
    dims = value.type.tensor_type.shape.dim
    if not value.type.tensor_type.HasField("shape") or len(dims) != len(shape):
        raise ModelError(f"input {value.name!r} has {len(dims)} axes", expected=f"{len(shape)}")
    for dim, axis in zip(dims, shape, strict=True):
        if isinstance(axis, int):
            dim.dim_value = axis
        elif axis:
            dim.dim_param = axis
        else:
            dim.Clear()
