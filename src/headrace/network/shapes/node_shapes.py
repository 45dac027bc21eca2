"""Types, shapes and values of a node's outputs from those of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.text import error_text
from headrace._core.types import Array
from headrace.network.shapes.protos import MAX_VALUES, read_type, type_proto
from headrace.network.shapes.small_values import compute
from headrace.network.tensor_spec import TensorType

if TYPE_CHECKING:
    import numpy.typing as npt
    from onnx import AttributeProto, NodeProto

    from headrace.network.shapes.small_values import Attributes


Shape = tuple[int, ...]
"""Extents; -1 for a free one."""
_INT64 = 7
_CASTS = frozenset({"Cast", "CastLike"})


MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What comes out of working with attributes and inputs that are not what an operator has."""


class InferenceError(ValueError):
    """The inputs cannot be inputs of this node."""


def infer_node(
    node: NodeProto,
    infos: Mapping[str, TensorType],
    opset: int,
    domains: Mapping[str, int] | None = None,
) -> list[TensorType | None]:
    """Infer the type of each output of `node`; None for an output of which nothing is known.

    Args:
        node: an `onnx.NodeProto`.
        infos: types of its inputs, by name.
        opset: version of ONNX's operators.
        domains: versions of further domains.

    Raises:
        InferenceError: ONNX refuses the inputs, or an attribute is not what the operator has.
    """
    input_types = [infos.get(name) if name else None for name in node.input]
    try:
        attributes = attributes_of(node)
        if node.op_type == "Shape":
            return [_shape_of(input_types[0], attributes)]
        output_types = _by_schema(node, infos, opset, domains or {})
        if output_types and output_types[0] is not None:
            output_types[0] = _completed(node.op_type, input_types, attributes, output_types[0])
    except InferenceError:
        raise
    except MISFITS as error:
        raise InferenceError(error_text(error)) from error
    return output_types


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Attributes of an `onnx.NodeProto` as Python values; tensors as arrays."""
    return {a.name: _attribute(a) for a in node.attribute}


def _attribute(attribute: AttributeProto) -> Any:
    from onnx import AttributeProto, helper, numpy_helper

    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return attribute
    value = helper.get_attribute_value(attribute)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _shape_of(info: TensorType | None, attributes: Attributes) -> TensorType:
    if info is None or info.shape is None:
        return TensorType(_INT64, (-1,))
    axes = info.shape[int(attributes.get("start", 0)) : attributes.get("end")]
    return TensorType(_INT64, (len(axes),), _value_of_axes(axes))


def _value_of_axes(axes: Sequence[int]) -> Array:
    if any(d < 0 for d in axes):
        return np.array([np.nan if d < 0 else d for d in axes], np.float64)
    return np.array(axes, np.int64)


@lru_cache(512)
def _schema(op: str, opset: int, domain: str) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def _by_schema(
    node: NodeProto, infos: Mapping[str, TensorType], opset: int, domains: Mapping[str, int]
) -> list[TensorType | None]:
    import onnx
    from onnx import helper, numpy_helper

    domain = "" if node.domain == "ai.onnx" else node.domain
    schema = _schema(node.op_type, opset if domain == "" else domains.get(domain, 1), domain)
    unknown: list[TensorType | None] = [None] * len(node.output)
    if schema is None:
        return unknown
    types, data = {}, {}
    for name in node.input:
        info = infos.get(name)
        if info is None:
            if name and not schema.has_function:
                return unknown
            continue
        types[name] = type_proto(info)
        known = info.known
        if known is not None and known.size <= MAX_VALUES:
            kind = helper.tensor_dtype_to_np_dtype(info.elem)
            data[name] = numpy_helper.from_array(_cast(known, kind))
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(d, v) for d, v in domains.items() if d not in ("", "ai.onnx")]
    try:
        protos = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=imports
        )
    except Exception as error:  # InferenceError of the binding, ValidationError, RuntimeError
        lines = str(error).strip().splitlines()
        raise InferenceError(lines[-1][:300] if lines else type(error).__name__) from error
    output_types = [read_type(protos[name]) if name in protos else None for name in node.output]
    return [None if info is None else info.without_names() for info in output_types]


def _completed(
    op: str,
    input_types: Sequence[TensorType | None],
    attributes: Attributes,
    output_type: TensorType,
) -> TensorType:
    shape = output_type.shape
    axes = output_type.axes
    if shape is None or -1 in shape:
        better = _shape_from_values(op, input_types, attributes)
        axes, shape = (axes, shape) if better is None else (better, better)
    value = None
    small = shape is not None and -1 not in shape and prod(shape) <= MAX_VALUES
    if small:
        value = _value(op, input_types, attributes, output_type.elem)
        if value is not None and value.shape != shape:
            value = None
    return TensorType(output_type.elem, axes, value)


def _value(
    op: str, input_types: Sequence[TensorType | None], attributes: Attributes, elem: int
) -> Array | None:
    from onnx import helper

    if op == "Constant":
        for name in ("value", "value_int", "value_ints", "value_float", "value_floats"):
            if name in attributes:
                return np.asarray(attributes[name], helper.tensor_dtype_to_np_dtype(elem))
        return None
    values = [None if info is None else info.value for info in input_types]
    if not input_types or any(i is not None and i.value is None for i in input_types):
        return None
    if op in _CASTS:
        array = values[0]
        if array is not None and np.isnan(array).any() if _is_float(array) else False:
            return array
    else:
        integer = input_types[0] is not None and input_types[0].elem not in (1, 10, 11, 16)
        array = compute(op, values, {**attributes, "_integer": integer})
    if array is None:
        return None
    if _is_float(array) and np.isnan(array).any():
        return array.astype(np.float64)
    return _cast(array, helper.tensor_dtype_to_np_dtype(elem))


def _is_float(value: Array | None) -> bool:
    return value is not None and value.dtype.kind == "f"


def _cast(value: Array, dtype: npt.DTypeLike) -> Array:
    if value.dtype == dtype:
        return value
    kind = np.dtype(dtype)
    if value.dtype.kind == "f" and kind.kind in "iu":
        limits = np.iinfo(kind)
        exact = [min(max(int(v), int(limits.min)), int(limits.max)) for v in value.reshape(-1)]
        return np.array(exact, kind).reshape(value.shape)
    return value.astype(kind)


def _shape_from_values(
    op: str,
    input_types: Sequence[TensorType | None],
    attributes: Attributes,
) -> Shape | None:
    """The shape, where an operator takes it from a tensor that is known in part only."""
    values = [None if info is None else info.value for info in input_types]
    first = input_types[0].shape if input_types and input_types[0] is not None else None
    if (
        op == "Reshape"
        and len(input_types) > 1
        and values[1] is not None
        and input_types[0] is not None
    ):
        return _reshaped(input_types[0].shape, values[1], bool(attributes.get("allowzero")))
    if op == "ConstantOfShape" and values and values[0] is not None:
        return _axes_of(values[0])
    if op == "Expand" and values[1] is not None and first is not None:
        return _broadcast(first, _axes_of(values[1]))
    if op == "Resize" and len(input_types) > 3 and values[3] is not None:
        return _axes_of(values[3])
    if op == "Slice" and len(input_types) > 2 and first is not None:
        return _sliced(first, values)
    if op == "Tile" and first is not None and values[1] is not None:
        pairs = zip(first, _axes_of(values[1]), strict=False)
        return tuple(-1 if d < 0 or r < 0 else d * r for d, r in pairs)
    return None


def _axes_of(value: Array) -> Shape:
    return tuple(-1 if np.isnan(float(d)) else int(d) for d in value.reshape(-1))


def _reshaped(shape: Shape | None, target: Array, allow_zero: bool) -> Shape:
    axes: list[int] = []
    inferred, copied, unknown = -1, 0, 0
    for i, number in enumerate(target.reshape(-1)):
        if np.isnan(float(number)):
            unknown += 1
            axes.append(-1)
        elif int(number) == 0 and not allow_zero:
            length = shape[i] if shape is not None and i < len(shape) else -1
            copied += length < 0
            axes.append(length)
        else:
            inferred = i if int(number) == -1 else inferred
            axes.append(int(number))
    if shape is None:
        return tuple(axes)
    free = shape.count(-1)
    holes = [i for i, d in enumerate(axes) if d < 0]
    rest = prod(d for d in axes if d >= 0)
    fixed = prod(d for d in shape if d >= 0)
    if free == 0 and len(holes) == 1 and rest:
        axes[holes[0]] = fixed // rest
    elif inferred >= 0 and not unknown and free == copied and rest:
        # the free axes of both sides are the same, copied: they divide out
        axes[inferred] = fixed // rest
    return tuple(axes)


def _broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(
        y if x == 1 else x if y == 1 else max(x, y) if x == y or -1 in (x, y) else -1
        for x, y in zip(left, right, strict=True)
    )


def _sliced(shape: Shape, values: Sequence[Array | None]) -> Shape:
    starts, ends = values[1], values[2]
    axes = values[3] if len(values) > 3 else None
    steps = values[4] if len(values) > 4 else None
    lengths = list(shape)
    count = len(starts) if starts is not None else len(ends) if ends is not None else 0
    which = range(count) if axes is None else [int(a) for a in axes.reshape(-1)]
    if not count:
        return tuple(-1 for _ in shape)
    for i, axis in enumerate(which):
        length = shape[axis]
        numbers = [
            None if v is None or np.isnan(float(v.reshape(-1)[i])) else int(v.reshape(-1)[i])
            for v in (starts, ends)
        ]
        step = 1 if steps is None else int(steps.reshape(-1)[i])
        if length < 0 or None in numbers:
            lengths[axis] = _free_slice(length, numbers, step)
        else:
            lengths[axis] = len(range(*slice(numbers[0], numbers[1], step).indices(length)))
    return tuple(lengths)


def _free_slice(length: int, numbers: Sequence[int | None], step: int) -> int:
    start, end = numbers
    whole = start == 0 and end is not None and end >= 2**31 - 1 and step == 1
    return length if whole else -1
