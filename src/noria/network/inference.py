"""Types and shapes inside a graph, as far as ONNX can tell them, around nodes it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import ModelError

SMALL = 1024
"""Initialisers of at most so many elements may be shapes, and are kept for inference."""
Axis = int | str | None
Shape = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value.

    Attributes:
        dtype: of its elements.
        shape: numbers, names or None per axis; None if not even the rank is known.
    """

    dtype: np.dtype[Any]
    shape: Shape | None

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The shape if every axis is a number."""
        if self.shape is None or not all(isinstance(d, int) for d in self.shape):
            return None
        return tuple(int(d) for d in self.shape if isinstance(d, int))


class ShapeView:
    """A graph seen with certain shapes of its inputs.

    Args:
        proto: the `ModelProto`; not changed. Large weights are left out of what is worked on.
        inputs: shapes of graph inputs that replace those in the model.
    """

    def __init__(self, proto: Any, inputs: Mapping[str, Shape] | None = None) -> None:
        self._model = _light(proto)
        self._declared = {v.name: v for v in proto.graph.value_info}
        for value in self._model.graph.input:
            shape = (inputs or {}).get(value.name)
            if shape is not None:
                _write_shape(value, shape)
        self._known: dict[str, Known] | None = None

    def known(self, names: Iterable[str]) -> list[Known | None]:
        """What is known of these values; inference is run if anything may have changed."""
        names = list(names)
        if self._known is None or any(n not in self._known for n in names):
            self._known = self._infer()
        return [self._known.get(name) for name in names]

    def tell(self, name: str, known: Known) -> None:
        """Say what a value is that inference cannot reach."""
        import onnx

        kind = onnx.helper.np_dtype_to_tensor_dtype(known.dtype)
        shape = None if known.shape is None else list(known.shape)
        info = onnx.helper.make_tensor_value_info(name, kind, shape)
        kept = [v for v in self._model.graph.value_info if v.name != name]
        del self._model.graph.value_info[:]
        self._model.graph.value_info.extend([*kept, info])
        for output in self._model.graph.output:
            if output.name == name:
                output.CopyFrom(info)
        if self._known is not None:
            self._known[name] = known

    def infos(self) -> list[Any]:
        """A `ValueInfoProto` for every value that something is known of."""
        import onnx

        if self._known is None:
            self._known = self._infer()
        return [
            onnx.helper.make_tensor_value_info(
                name,
                onnx.helper.np_dtype_to_tensor_dtype(known.dtype),
                None if known.shape is None else list(known.shape),
            )
            for name, known in self._known.items()
        ]

    def forget(self) -> None:
        """What was told changes what follows."""
        self._known = None

    def _infer(self) -> dict[str, Known]:
        import onnx

        try:
            done = onnx.shape_inference.infer_shapes(self._model, data_prop=True)
        except Exception:  # inference is a help; what it cannot do is measured, or told later
            done = self._model
        graph = done.graph
        found = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            if (known := read_value(value)) is not None:
                found[value.name] = known
        for name, value in self._declared.items():
            if name not in found and (known := read_value(value)) is not None:
                found[name] = known
        for tensor in graph.initializer:
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
            found[tensor.name] = Known(dtype, tuple(tensor.dims))
        for node in graph.node:
            if node.op_type == "Constant" and node.output:
                _constant(node, found)
        return found


def _light(proto: Any) -> Any:
    """The model without weights: they become inputs of known shape."""
    import onnx

    light = onnx.ModelProto()
    light.ir_version = max(proto.ir_version, 4)
    light.opset_import.extend(proto.opset_import)
    light.functions.extend(proto.functions)
    graph = light.graph
    graph.name = proto.graph.name or "graph"
    graph.node.extend(proto.graph.node)
    graph.input.extend(proto.graph.input)
    graph.output.extend(proto.graph.output)
    known = {v.name for v in graph.input}
    for tensor in proto.graph.initializer:
        if prod(tensor.dims) <= SMALL:
            graph.initializer.append(tensor)
        elif tensor.name not in known:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
    for tensor in proto.graph.sparse_initializer:
        graph.sparse_initializer.append(tensor)
    return light


def _write_shape(value: Any, shape: Shape) -> None:
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


def read_value(value: Any) -> Known | None:
    """What a `ValueInfoProto` says; None if not even a tensor's type."""
    import onnx

    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.elem_type:
        return None
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if not tensor.HasField("shape"):
        return Known(dtype, None)
    shape: list[Axis] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            shape.append(dim.dim_value)
        else:
            shape.append(dim.dim_param or None)
    return Known(dtype, tuple(shape))


def _constant(node: Any, found: dict[str, Known]) -> None:
    import onnx

    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(attribute.t.data_type))
            found.setdefault(node.output[0], Known(dtype, tuple(attribute.t.dims)))


def small_constants(proto: Any) -> dict[str, npt.NDArray[Any]]:
    """Vectors and scalars of a model that are constant and may be shapes, by name."""
    from onnx import numpy_helper

    found = {}
    for tensor in proto.graph.initializer:
        if len(tensor.dims) <= 1 and sum(tensor.dims) <= 64:
            found[tensor.name] = numpy_helper.to_array(tensor)
    for node in proto.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and len(attribute.t.dims) <= 1:
                    found[node.output[0]] = numpy_helper.to_array(attribute.t)
    return found
