"""`raw-output-generated-callback`: a function of C that sees each run's tensors."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint, c_void_p
from typing import TYPE_CHECKING, Any

from headrace.gstreamer.pyds.inference import NVDSINFER_MAX_DIMS, NvDsInferLayerInfo
from headrace.infer.engine_runs import RawOutput

if TYPE_CHECKING:
    from headrace._core.types import Arrays


class InferDims(ctypes.Structure):
    """NvDsInferDims of C."""

    _fields_ = (
        ("numDims", c_uint), ("d", c_uint * NVDSINFER_MAX_DIMS), ("numElements", c_uint)
    )  # fmt: skip


class _CLayer(ctypes.Structure):
    """NvDsInferLayerInfo of C."""

    _fields_ = (
        ("dataType", c_int), ("inferDims", InferDims), ("bindingIndex", c_int),
        ("layerName", c_char_p), ("buffer", c_void_p), ("isInput", c_int),
    )  # fmt: skip


class _CNetwork(ctypes.Structure):
    """NvDsInferNetworkInfo of C."""

    _fields_ = (("width", c_uint), ("height", c_uint), ("channels", c_uint))


Callback = CFUNCTYPE(None, c_void_p, POINTER(_CNetwork), POINTER(_CLayer), c_uint, c_uint, c_void_p)
"""buffer, network, layers, number of layers, frames or objects of the run, user data."""


def address_of(pointer: Any) -> int:
    """Return the address in a pointer property's value; 0 for none."""
    return 0 if pointer is None else hash(pointer)


class RawOutputCallback:
    """Calls a function of C as the original does: inputs and outputs, each of the whole run.

    Args:
        function: its address.
        user_data: goes to it as it is.

    Attributes:
        buffer: address of the GstBuffer whose run comes next; 0 where none waits for it, as for
            an asynchronous classifier.
    """

    def __init__(self, function: int, user_data: int) -> None:
        self._call, self._user_data = Callback(function), user_data or None
        self.buffer = 0

    def __call__(self, raw: RawOutput) -> None:
        """Show the tensors of a run."""
        size = _CNetwork(raw.network.width, raw.network.height, raw.network.channels)
        layers = _layers(raw.inputs, True) + _layers(raw.outputs, False)
        table = (_CLayer * len(layers))()
        kept = []  # what the table points to
        for index, (layer, is_input) in enumerate(layers):
            dims, name = layer.dims, layer.layerName.encode()
            table[index] = _CLayer(
                layer.dataType, InferDims(dims.numDims, tuple(dims.d), dims.numElements),
                index, name, int(layer.buffer), is_input,
            )  # fmt: skip
            kept.append((layer, name))
        self._call(self.buffer or None, size, table, len(layers), len(raw.metas), self._user_data)


def _layers(arrays: Arrays, is_input: bool) -> list[tuple[NvDsInferLayerInfo, bool]]:
    """The layers with their axes but the batch's; the values are those of all items."""
    layers = []
    for name, array in arrays.items():
        layer = NvDsInferLayerInfo(name, 0, array)
        layer.dims = type(layer.dims)(array.shape[1:])
        layers.append((layer, is_input))
    return layers
