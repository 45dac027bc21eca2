"""The binary half of a Caffe model: weights by the name of their layer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ModelError
from headrace._core.types import Array
from headrace.network.model_bytes import foreign
from headrace.network.wire import WireError, doubles, fields, floats, message, signed, text, varints

WHAT = "a Caffe model (caffemodel)"
# Field numbers of NetParameter, LayerParameter, V1LayerParameter, BlobProto.
_NET_V1_LAYERS, _NET_LAYER = 2, 100
_V1_OLD_LAYER = 1
_LAYER_FIELDS = {_NET_LAYER: (1, 7), _NET_V1_LAYERS: (4, 6)}  # name, blobs
_LEGACY_DIMS = (1, 2, 3, 4)  # num, channels, height, width
_DATA, _SHAPE, _DOUBLE_DATA = 5, 7, 8


@dataclass(frozen=True, slots=True)
class WeightBlob:
    """One array of a layer. `legacy`: its shape always has four axes."""

    data: npt.NDArray[np.float32]
    shape: tuple[int, ...]
    legacy: bool


def read_caffemodel(data: bytes, path: Path) -> dict[str, list[WeightBlob]]:
    """The weights of each layer that has some. Arrays are views on `data` where possible."""
    by_layer: dict[str, list[WeightBlob]] = {}
    seen = 0
    try:
        for number, wire, value in fields(memoryview(data)):
            if number not in _LAYER_FIELDS:
                continue
            seen += 1
            name, blobs = _layer(message(wire, value), number, path)
            if blobs:
                by_layer[name] = blobs
    except WireError as error:
        raise foreign(data, path, WHAT, str(error)) from error
    if not seen:
        raise foreign(data, path, WHAT, "there are no layers")
    return by_layer


def _layer(data: memoryview, kind: int, path: Path) -> tuple[str, list[WeightBlob]]:
    name_field, blobs_field = _LAYER_FIELDS[kind]
    name, raw = "", []
    for number, wire, value in fields(data):
        if kind == _NET_V1_LAYERS and number == _V1_OLD_LAYER:
            raise ModelError(
                "the model has the oldest layout of layers (V0)",
                where=str(path),
                expected="layers with their fields, not a layer within each",
                fix="upgrade it with Caffe's upgrade_net_proto_binary, the text with "
                "upgrade_net_proto_text",
            )
        if number == name_field:
            name = text(wire, value)
        elif number == blobs_field:
            raw.append(message(wire, value))
    where = f"{path}, layer {name!r}"
    return name, [_blob(value, f"{where}, blob {i}") for i, value in enumerate(raw)]


def _blob(data: memoryview, where: str) -> WeightBlob:
    legacy: dict[int, int] = {}
    shape: list[int] | None = None
    parts: list[Array] = []
    for number, wire, value in fields(data):
        if number in _LEGACY_DIMS and wire == 0:
            legacy[number] = signed(value)
        elif number == _DATA:
            parts.append(floats(wire, value))
        elif number == _DOUBLE_DATA:
            parts.append(doubles(wire, value))
        elif number == _SHAPE and wire == 2:
            shape = [] if shape is None else shape
            for inner, inner_wire, dims in fields(value):
                if inner == 1:
                    shape += varints(inner_wire, dims)
    array = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, "<f4")
    dims = tuple(shape) if shape is not None else tuple(legacy.get(i, 0) for i in _LEGACY_DIMS)
    if any(d < 0 for d in dims) or prod(dims) != array.size:
        raise ModelError(
            f"{array.size} values do not fill the shape {'x'.join(map(str, dims)) or 'scalar'}",
            where=where,
            fix="the file is damaged: copy or download it again",
        )
    return WeightBlob(array.astype(np.float32, copy=False), dims, shape is None)
