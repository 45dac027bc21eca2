"""Tensors that decide shapes by their values. Source: tensorrt-api spec 3.3, 3.4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noria.trt.api.tensor import ITensor
    from noria.trt.layers.base import ILayer

_LAYERS = {
    "SHUFFLE": (1,), "SLICE": (1, 2, 3), "RESIZE": (1,), "FILL": (0,), "TOPK": (1,),
    "ONE_HOT": (2,), "SQUEEZE": (1,), "UNSQUEEZE": (1,), "TRIP_LIMIT": (0,), "NMS": (2,),
}  # fmt: skip
"""Layer -> inputs that decide the shape of its output by their values."""
_NODES = {
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "Slice": (1, 2, 3, 4), "Pad": (1,),
    "Resize": (2, 3), "Upsample": (1,), "ConstantOfShape": (0,), "Range": (0, 1, 2), "TopK": (1,),
    "OneHot": (1,), "Squeeze": (1,), "Unsqueeze": (1,), "Split": (1,), "NonMaxSuppression": (2,),
    "Loop": (0,),
}  # fmt: skip
"""The same for nodes of parsed models."""
_INTEGERS = (6, 7)  # ONNX's INT32 and INT64


def shape_tensors(layers: Iterable[ILayer]) -> set[str]:
    """Find the uids of tensors that decide shapes by their values.

    They are integers with at most one axis, and the tensors that these are computed from, up to the
    network's inputs and to layers that take extents.
    """
    waiting: list[ITensor] = []
    for layer in layers:
        waiting += _deciding(layer)
    found: set[str] = set()
    while waiting:
        tensor = waiting.pop()
        info = tensor._info
        small = info is not None and info.shape is not None and len(info.shape) <= 1
        if tensor._uid in found or info is None or not small or info.elem not in _INTEGERS:
            continue
        found.add(tensor._uid)
        maker = tensor._producer
        if maker is not None and not _takes_extents(maker):
            waiting += [t for t in maker._inputs if t is not None]
    return found


def _deciding(layer: ILayer) -> list[ITensor]:
    if layer._node is not None:
        places = _NODES.get(layer._node.op_type, ())
        slots = [layer._slots[i] for i in places if i < len(layer._slots)]
        chosen = [layer._inputs[what] for kind, what in slots if kind == "tensor"]
    elif "_plain" in layer._params:  # a plugin: its shape inputs come last
        chosen = list(layer._inputs[int(layer._params["_plain"]) :])
    elif layer._kind == "TRIP_LIMIT" and layer._params["kind"].name == "WHILE":
        chosen = []
    else:
        places = _LAYERS.get(layer._kind, ())
        chosen = [layer._inputs[i] for i in places if i < len(layer._inputs)]
    return [tensor for tensor in chosen if tensor is not None]


def _takes_extents(layer: ILayer) -> bool:
    return layer._kind == "SHAPE" or (
        layer._node is not None and layer._node.op_type in ("Shape", "Size")
    )
