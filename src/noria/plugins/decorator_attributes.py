"""Signatures of plugins by decorators, and their attributes as fields.

Source: tensorrt-plugins spec 13.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noria.plugins.decorator_tensors import TensorDesc
from noria.plugins.field_data import PluginField, PluginFieldType

FORBIDDEN = ("outputs", "stream", "tactic")
_PLAIN = (int, float, str, bool, bytes)


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs, outputs and attributes of a plugin, from its annotations.

    Attributes:
        inputs: names of its tensors.
        attributes: name -> type (int, float, str, bool, bytes), or a NumPy type for arrays.
        outputs: how many tensors it gives.
    """

    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    outputs: int

    def bind(self, inputs: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes, all there and of their types.

        Raises:
            TypeError: too many or too few.
        """
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{len(inputs)} tensors; {len(self.inputs)} are needed: {self.inputs}")
        if given.keys() != self.attributes.keys():
            raise TypeError(f"attributes {list(given)}; needed are {list(self.attributes)}")
        return {
            name: given[name] if kind in _PLAIN else np.ascontiguousarray(given[name], kind)
            for name, kind in self.attributes.items()
        }


def signature_of(function: Callable[..., Any], plugin_id: str) -> Signature:
    """Read the annotations of a function for `register`.

    Raises:
        ValueError: what is missing or cannot be.
    """
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f"{plugin_id}: an annotation cannot be read: {error}") from error
    inputs: list[str] = []
    attributes: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise ValueError(f"{plugin_id}: argument {name} has no annotation")
        if parameter.default is not inspect.Parameter.empty:
            raise ValueError(f"{plugin_id}: argument {name} has a default value")
        if name in FORBIDDEN:
            raise ValueError(f"{plugin_id}: no argument may be called {name}")
        if hints[name] is TensorDesc:
            if attributes:
                raise ValueError(f"{plugin_id}: tensor {name} comes after attributes")
            inputs.append(name)
        else:
            attributes[name] = _attribute(hints[name], name, plugin_id)
    if not inputs:
        raise ValueError(f"{plugin_id}: there is no TensorDesc among the arguments")
    return Signature(tuple(inputs), attributes, _outputs(hints.get("return"), plugin_id))


def _attribute(hint: Any, name: str, plugin_id: str) -> Any:
    if hint in _PLAIN:
        return hint
    if (alias := getattr(typing.get_origin(hint), "__value__", None)) is not None:
        hint = alias[typing.get_args(hint)]  # NDArray, since NumPy says `type NDArray[…] = …`
    if typing.get_origin(hint) is np.ndarray:
        for part in typing.get_args(hint):
            for inner in typing.get_args(part):
                if isinstance(inner, type) and issubclass(inner, np.generic):
                    return np.dtype(inner)
    raise ValueError(
        f"{plugin_id}: attribute {name} is a {hint}; it may be int, float, str, bool, bytes or "
        "numpy.typing.NDArray[type]"
    )


def _outputs(hint: Any, plugin_id: str) -> int:
    if isinstance(hint, type) and issubclass(hint, TensorDesc):
        return 1
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and parts and Ellipsis not in parts:
        return len(parts)
    raise ValueError(
        f"{plugin_id}: the result must be annotated TensorDesc or Tuple[TensorDesc, …]"
    )


def field_of(name: str, value: Any, kind: Any) -> PluginField:
    """An attribute as it is saved."""
    if kind is bool:
        return PluginField(name, np.array([value], np.int8), PluginFieldType.INT8)
    if kind is int:
        return PluginField(name, np.array([value], np.int64), PluginFieldType.INT64)
    if kind is float:
        return PluginField(name, np.array([value], np.float64), PluginFieldType.FLOAT64)
    if kind is str:
        return PluginField(name, value.encode(), PluginFieldType.CHAR)
    if kind is bytes:
        return PluginField(name, value, PluginFieldType.UNKNOWN)
    array = np.ascontiguousarray(value, kind)
    if array.dtype == np.float16:  # as raw bytes
        return PluginField(name, array.tobytes(), PluginFieldType.UNKNOWN)
    return PluginField(name, array, PluginFieldType.of(array.dtype))


def value_of(field: PluginField, kind: Any) -> Any:
    """An attribute from a field, whether it was saved or comes from a node.

    Raises:
        ValueError: the field holds something else.
    """
    if kind is str:
        return field.text()
    if kind is bytes:
        return field.raw
    if field.data is None or not field.size:
        raise ValueError(f"field {field.name} is empty")
    if kind in (int, float, bool):
        return kind(field.data.reshape(-1)[0])
    if kind == np.float16 and field.type == PluginFieldType.UNKNOWN:
        return np.frombuffer(field.raw, np.float16)
    return field.data.astype(kind)
