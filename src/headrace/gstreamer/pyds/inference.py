"""Raw outputs and class maps of models, as `nvinfer` attaches them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.gstreamer.pyds.struct import Nested, Struct

NVDSINFER_MAX_DIMS = 8
_DATA_TYPES = ("float32", "float16", "int8", "int32", "int64", "uint8")
_FLOAT_BYTES = 4


class NvDsInferDataType(IntEnum):
    """Type of the values of a layer."""

    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5


class HostPointer(int):
    """Address of an array in main memory; the array lives as long as this.

    Attributes:
        values: the array.
    """

    values: Array

    @classmethod
    def to(cls, values: Array) -> HostPointer:
        """Return the address of an array, of a copy if its values do not lie in one piece."""
        values = np.ascontiguousarray(values)
        pointer = cls(values.__array_interface__["data"][0])
        pointer.values = values
        return pointer


class NvDsInferDims(Struct):
    """Axes of a layer, without the batch."""

    numDims = 0
    numElements = 0

    def __init__(self, shape: Sequence[int] = ()) -> None:
        self.numDims, self.numElements = len(shape), int(np.prod(shape, dtype=np.int64))
        self.d = [*shape, *[0] * (NVDSINFER_MAX_DIMS - len(shape))]


class NvDsInferDimsCHW(Struct):
    """Axes of an image."""

    c = 0
    h = 0
    w = 0


class NvDsInferNetworkInfo(Struct):
    """Size of a network's input, in pixels."""

    width = 0
    height = 0
    channels = 0


class NvDsInferLayerInfo(Struct):
    """One layer of a network, with its values for one frame or object.

    Attributes:
        dataType: one of `NvDsInferDataType`.
        buffer: address of the values in main memory.
    """

    dataType = 0
    bindingIndex = 0
    layerName = ""
    isInput = False
    buffer: int = 0

    def __init__(self, name: str = "", index: int = 0, data: Any = None) -> None:
        self.dims = NvDsInferDims(() if data is None else data.shape)
        self.layerName, self.bindingIndex = name, index
        if data is not None:
            self.dataType = _DATA_TYPES.index("uint8" if data.dtype == bool else data.dtype.name)
            self.buffer = HostPointer.to(data)

    @property
    def inferDims(self) -> NvDsInferDims:
        """The axes."""
        return self.dims


class NvDsInferTensorMeta(Struct):
    """Raw outputs of a model for one frame or object."""

    unique_id = 0
    gpu_id = 0
    priv_data: Any = None
    maintain_aspect_ratio = 0
    symmetric_padding = 0
    network_info = Nested(NvDsInferNetworkInfo)

    def __init__(self, layers: Sequence[NvDsInferLayerInfo] = ()) -> None:
        self._layers = list(layers)

    @property
    def num_output_layers(self) -> int:
        """Number of layers."""
        return len(self._layers)

    def output_layers_info(self, index: int) -> NvDsInferLayerInfo:
        """Return a layer by its place.

        Raises:
            IndexError: there is no such layer.
        """
        if not 0 <= index < len(self._layers):
            raise IndexError(f"output layer {index} of {len(self._layers)}")
        return self._layers[index]

    @property
    def out_buf_ptrs_host(self) -> list[int]:
        """Addresses of the layers' values."""
        return [layer.buffer for layer in self._layers]

    out_buf_ptrs_dev = out_buf_ptrs_host


class NvDsInferSegmentationMeta(Struct):
    """The class of each pixel of a network's output.

    Attributes:
        class_map: (height, width) int32, -1 where no class wins.
        class_probabilities_map: the raw output, or None.
        priv_data: Headrace's `SegmentationMeta`.
    """

    classes = 0
    width = 0
    height = 0
    class_map: npt.NDArray[np.int32] | None = None
    class_probabilities_map: npt.NDArray[np.float32] | None = None
    priv_data: Any = None


class NvDsInferObjectDetectionInfo(Struct):
    """A box that a parser found."""

    classId = 0
    left = 0.0
    top = 0.0
    width = 0.0
    height = 0.0
    detectionConfidence = 0.0


class NvDsInferAttribute(Struct):
    """An attribute that a classifier found."""

    attributeIndex = 0
    attributeValue = 0
    attributeConfidence = 0.0
    attributeLabel = ""

    @property
    def atttributeIndex(self) -> int:
        """The index, as the original spells it too."""
        return self.attributeIndex


def get_nvds_LayerInfo(meta: NvDsInferTensorMeta, index: int) -> NvDsInferLayerInfo:
    """Return a layer of raw outputs.

    Raises:
        IndexError: there is no such layer.
    """
    return meta.output_layers_info(index)


def get_detections(buffer: int, index: int) -> float:
    """Read one float32 of a layer.

    Args:
        buffer: `buffer` of the layer.
        index: counted in values.

    Raises:
        IndexError: the layer has fewer values.
    """
    if isinstance(buffer, HostPointer) and not 0 <= index < buffer.values.nbytes // _FLOAT_BYTES:
        raise IndexError(f"value {index} of a layer of {buffer.values.size}")
    return ctypes.c_float.from_address(buffer + _FLOAT_BYTES * index).value


def get_segmentation_masks(meta: NvDsInferSegmentationMeta) -> npt.NDArray[np.int32]:
    """Return the class of each pixel, (height, width) int32; a view.

    Raises:
        ValueError: the metadata has no class map.
    """
    if meta.class_map is None:
        raise ValueError("get_segmentation_masks: the metadata has no class map")
    return meta.class_map
