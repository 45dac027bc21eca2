"""Convert attributes of a node to the fields that a plugin's creator declares.

Source: tensorrt-plugins spec 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ModelError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.plugins.field_data import (
    FLOATS,
    INTEGERS,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
)

if TYPE_CHECKING:
    import onnx_ir as ir

    from headrace.plugins.base import AnyCreator

NODE_ATTRIBUTES = frozenset(
    {"plugin_version", "plugin_namespace", "tensorrt_plugin_shape_input_indices"}
)
"""Attributes that the parser reads itself."""

FieldType = PluginFieldType
_INT32 = np.iinfo(np.int32)


def fields_of(
    node: ir.Node, creator: Any, where: str
) -> tuple[PluginFieldCollection, list[Finding]]:
    """The attributes of an ONNX node that the creator has fields for, by their own kinds.

    Attributes that are no fields are left out, as in TensorRT; fields that are no attributes are
    left to the creator's defaults.

    Returns:
        The fields, and what is worth telling.

    Raises:
        ModelError: an attribute of a kind that no field can hold.
    """
    fields: list[PluginField] = []
    notices: list[Finding] = []
    missing: list[str] = []
    for declared in creator.field_names:
        attribute = node.attributes.get(declared.name)
        if attribute is None:
            missing.append(declared.name)
            continue
        fields.append(_field(declared, attribute, where, notices))
    if missing:
        text = f"plugin {creator.name}: the node has no attribute {', '.join(missing)}; the "
        text += f"creator's {'default is' if len(missing) == 1 else 'defaults are'} used"
        notices.append(Finding("plugin-defaults", "info", text, where))
    if (notice := attributes_left_out(node, creator, where)) is not None:
        notices.append(notice)
    return PluginFieldCollection(fields), notices


def attributes_left_out(node: ir.Node, creator: Any, where: str) -> Finding | None:
    """Warn of attributes that the creator has no fields for; None if there are none."""
    names = {declared.name for declared in creator.field_names}
    extra = [name for name in node.attributes if name not in names | NODE_ATTRIBUTES]
    if not extra:
        return None
    text = (
        f"plugin {creator.name}: the creator does not get {', '.join(extra)}, as in TensorRT: "
        f"its field names are {', '.join(sorted(names)) or 'none'}"
    )
    return Finding("plugin-attribute-left-out", "warning", text, where, {"attributes": extra})


def attribute_names(node: ir.Node) -> list[str]:
    """Attributes of a node that may be fields, with their kinds; for messages."""
    return [
        f"{name} ({attribute.type.name})"
        for name, attribute in node.attributes.items()
        if name not in NODE_ATTRIBUTES
    ]


def _field(
    declared: PluginField, attribute: ir.Attr, where: str, notices: list[Finding]
) -> PluginField:
    name, kind, value = declared.name, attribute.type.name, attribute.value
    if kind == "FLOAT":
        return PluginField(name, np.array([value], np.float32), FieldType.FLOAT32)
    if kind == "FLOATS":
        return PluginField(name, np.array(value, np.float32), FieldType.FLOAT32)
    if kind in ("INT", "INTS"):
        return _whole(
            declared, np.array([value] if kind == "INT" else value, np.int64), where, notices
        )
    if kind == "STRING":
        return PluginField(name, _bytes(value) + b"\0", FieldType.CHAR)
    if kind == "STRINGS":
        return PluginField(name, b"".join(_bytes(v) + b"\0" for v in value), FieldType.CHAR)
    if kind == "TENSOR":
        return _tensor(declared, value, where, notices)
    raise ModelError(
        f"attribute {name} is a {kind}",
        where=where,
        expected="a number, a text, a list of them, or a tensor: fields hold nothing else",
    )


def _whole(
    declared: PluginField,
    numbers: Array,
    where: str,
    notices: list[Finding],
    *,
    clamp: bool = False,
) -> PluginField:
    """Whole numbers as INT32, as TensorRT gives them: the lower bits, or the nearest (`clamp`).

    As INT64 where the creator declares that, or where 32 bits do not hold them and the field is not
    declared INT32: the first four bytes of a number are then what TensorRT gives.
    """
    name = declared.name
    beyond = numbers[(numbers < _INT32.min) | (numbers > _INT32.max)]
    if declared.type == FieldType.INT64:
        return PluginField(name, numbers, FieldType.INT64)
    if not beyond.size:
        return PluginField(name, numbers.astype(np.int32), FieldType.INT32)
    short = (np.clip(numbers, _INT32.min, _INT32.max) if clamp else numbers).astype(np.int32)
    cut = short[numbers == beyond[0]][0]
    text = f"attribute {name}: {beyond[0]} is beyond 32 bits, "
    if declared.type == FieldType.INT32:
        text += f"the plugin gets {cut}, as in TensorRT"
        kept, kind = short, FieldType.INT32
    else:
        text += f"the plugin gets INT64; TensorRT gives {cut} as INT32"
        kept, kind = numbers, FieldType.INT64
    notices.append(Finding("plugin-field", "warning", text, where))
    return PluginField(name, kept, kind)


def _tensor(declared: PluginField, tensor: Any, where: str, notices: list[Finding]) -> PluginField:
    name, kind = declared.name, tensor.dtype.name
    if kind == "STRING":
        notices.append(_not_read(name, kind, where))
        return PluginField(
            name, b"".join(_bytes(v) + b"\0" for v in tensor.string_data()), FieldType.CHAR
        )
    if kind == "BFLOAT16":
        return PluginField(name, tensor.tobytes(), FieldType.BF16)
    array = np.ascontiguousarray(tensor.numpy())
    if kind == "DOUBLE":
        return PluginField(name, _clipped(array), FieldType.FLOAT32)
    if kind == "UINT8":
        return PluginField(name, array.astype(np.int32), FieldType.INT32)
    if kind == "INT64":
        return _whole(declared, array.reshape(-1), where, notices, clamp=True)
    if kind not in ("FLOAT", "FLOAT16", "INT8", "INT16", "INT32"):
        raise ModelError(
            f"attribute {name} is a tensor of {kind}",
            where=where,
            expected="one of float, float16, bfloat16, double, int8, int16, int32, int64, uint8, "
            "string",
        )
    if kind == "INT16":
        notices.append(_not_read(name, kind, where))
    return PluginField(name, array, FieldType.of(array.dtype))


def _not_read(name: str, kind: str, where: str) -> Finding:
    text = f"attribute {name} is a tensor of {kind}: TensorRT's parser refuses the model for it"
    return Finding("plugin-field", "warning", text, where)


def _clipped(array: Array) -> Array:
    """Doubles as FLOAT; finite ones beyond it are its greatest, as in TensorRT."""
    most = np.finfo(np.float32).max
    return np.where(np.isfinite(array), np.clip(array, -most, most), array).astype(np.float32)


def plain_fields_of(values: Mapping[str, object], creator: AnyCreator) -> PluginFieldCollection:
    """Fields from plain values (UFF, Caffe, code): numbers, texts, arrays, lists of them.

    Values that are no fields are ignored.

    Raises:
        ModelError: a whole number beyond the field's type.
    """
    fields = []
    for declared in creator.field_names:
        if declared.name in values:
            _must_fit(declared, values[declared.name], f"plugin {creator.name}")
            field = field_of_value(declared.name, values[declared.name], declared.type)
            if field is not None:
                fields.append(field)
    return PluginFieldCollection(fields)


def _must_fit(field: PluginField, value: object, where: str) -> None:
    limits = integer_limits(field.type)
    if limits is None:
        return
    least, most = limits
    for number in _whole_numbers(value):
        if not least <= number <= most:
            raise ModelError(
                f"field {field.name}: {number}",
                where=where,
                expected=f"{field.type.name}: {least} to {most}",
            )


def _whole_numbers(value: object) -> list[int]:
    """Those in a value; of an array, which may be large, the least and the greatest."""
    if isinstance(value, (list, tuple)):
        return [number for number in value if isinstance(number, int)]
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.size:
        return [int(array.min()), int(array.max())]
    return (
        [n for n in array.reshape(-1).tolist() if isinstance(n, int)] if array.dtype == "O" else []
    )


def integer_limits(kind: PluginFieldType) -> tuple[int, int] | None:
    """Least and greatest whole number of a field; None for other types.

    A field that declares no type is INT32.
    """
    if kind in (FieldType.UNKNOWN, FieldType.CHAR, FieldType.DIMS):
        kind = FieldType.INT32
    if kind not in INTEGERS:
        return None
    limits = np.iinfo(kind.numpy)
    return int(limits.min), int(limits.max)


def field_of_value(
    name: str, value: Any, declared: PluginFieldType = PluginFieldType.UNKNOWN
) -> PluginField | None:
    """A field of a plain value; None for a kind that no field can hold.

    `declared`: type of the field where the value leaves it open (int or float, bytes).
    """
    if isinstance(value, (str, bytes)) and not (
        isinstance(value, bytes) and declared not in (FieldType.CHAR, FieldType.UNKNOWN)
    ):
        return PluginField(name, _bytes(value) + b"\0", FieldType.CHAR)
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = FieldType.FLOAT32 if declared == FieldType.UNKNOWN else declared
        return PluginField(name, bytes(value), kind)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
        return PluginField(name, b"".join(_bytes(v) + b"\0" for v in value), FieldType.CHAR)
    try:
        array = np.atleast_1d(np.asarray(value))
    except ValueError:  # a ragged list
        return None
    if array.dtype.kind == "b":
        array = array.astype(np.int32)
    if array.dtype.kind not in "iuf":
        return None
    wide = declared == FieldType.INT64 and array.dtype.kind in "iu"
    if declared in FLOATS or wide:
        return PluginField(name, array.astype(declared.numpy), declared)
    kind = FieldType.FLOAT32 if array.dtype.kind == "f" else FieldType.INT32
    return PluginField(name, array.astype(kind.numpy), kind)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
