"""Regions and tensors that `nvdspreprocess` attaches to a batch."""

from __future__ import annotations

from typing import Any

from headrace.gstreamer.pyds.inference import HostPointer
from headrace.gstreamer.pyds.meta import MetaField
from headrace.gstreamer.pyds.osd import NvOSD_RectParams
from headrace.gstreamer.pyds.struct import Nested, Struct

_DATA_TYPES = ("float32", "uint8", "int8", "uint32", "int32", "float16")


class NvDsRoiMeta(Struct):
    """A region or object of which a tensor has a row.

    Attributes:
        roi: in pixels of the frame.
        frame_meta, object_meta: what it shows; object_meta is None for a region.
        scale_ratio_x, scale_ratio_y: network pixels per frame pixel.
        offset_left, offset_top: padding before the image, in network pixels.
    """

    roi = Nested(NvOSD_RectParams)
    frame_meta: Any = None
    object_meta: Any = None
    scale_ratio_x = 1.0
    scale_ratio_y = 1.0
    offset_left = 0
    offset_top = 0
    classifier_meta_list = MetaField()
    roi_user_meta_list = MetaField()


class NvDsPreProcessTensorMeta(Struct):
    """A tensor; the values lie in main memory.

    Attributes:
        raw_tensor_buffer: address of the values.
        buffer_size: in bytes.
        tensor_shape: with the batch.
        data_type: 0 float, 1 uint8, 2 int8, 3 uint32, 4 int32, 5 half.
    """

    gpu_id = 0
    meta_id = 0
    tensor_name = ""
    maintain_aspect_ratio = 0
    raw_tensor_buffer: int = 0
    buffer_size = 0
    data_type = 0

    def __init__(self, values: Any = None) -> None:
        self.tensor_shape: list[int] = []
        if values is not None:
            self.raw_tensor_buffer = HostPointer.to(values)
            self.buffer_size = values.nbytes
            self.tensor_shape = list(values.shape)
            self.data_type = _DATA_TYPES.index(values.dtype.name)


class GstNvDsPreProcessBatchMeta(Struct):
    """A tensor of a batch with its regions, as user metadata of the batch."""

    tensor_meta: Any = None
    private_data: Any = None

    def __init__(self) -> None:
        self.roi_vector: list[NvDsRoiMeta] = []
        self.target_unique_ids: list[int] = []
