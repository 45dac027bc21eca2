"""Metadata of batches, frames and objects."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from threading import RLock
from typing import Any
from weakref import ref

from headrace.gstreamer.pyds.osd import (
    Elements,
    NvOSD_ArrowParams,
    NvOSD_CircleParams,
    NvOSD_LineParams,
    NvOSD_MaskParams,
    NvOSD_RectParams,
    NvOSD_TextParams,
)
from headrace.gstreamer.pyds.struct import Nested, Struct

UNTRACKED_OBJECT_ID = (1 << 64) - 1
NVDS_START_USER_META = 8193


class NvDsMetaType(IntEnum):
    """Types of metadata."""

    NVDS_INVALID_META = -1
    NVDS_BATCH_META = 1
    NVDS_FRAME_META = 2
    NVDS_OBJ_META = 3
    NVDS_DISPLAY_META = 4
    NVDS_CLASSIFIER_META = 5
    NVDS_LABEL_INFO_META = 6
    NVDS_USER_META = 7
    NVDS_PAYLOAD_META = 8
    NVDS_EVENT_MSG_META = 9
    NVDS_OPTICAL_FLOW_META = 10
    NVDS_LATENCY_MEASUREMENT_META = 11
    NVDSINFER_TENSOR_OUTPUT_META = 12
    NVDSINFER_SEGMENTATION_META = 13
    NVDS_CROP_IMAGE_META = 14
    NVDS_TRACKER_PAST_FRAME_META = 15
    NVDS_TRACKER_BATCH_REID_META = 16
    NVDS_TRACKER_OBJ_REID_META = 17
    NVDS_TRACKER_TERMINATED_LIST_META = 18
    NVDS_TRACKER_SHADOW_LIST_META = 19
    NVDS_OBJ_VISIBILITY = 20
    NVDS_OBJ_IMAGE_FOOT_LOCATION = 21
    NVDS_OBJ_WORLD_FOOT_LOCATION = 22
    NVDS_OBJ_IMAGE_CONVEX_HULL = 23
    NVDS_AUDIO_BATCH_META = 24
    NVDS_AUDIO_FRAME_META = 25
    NVDS_PREPROCESS_FRAME_META = 26
    NVDS_PREPROCESS_BATCH_META = 27
    NVDS_CUSTOM_MSG_BLOB = 28
    NVDS_ROI_META = 29
    NVDS_FRAME_META_NVDSANALYTICS = 32  # these two since release 8.0
    NVDS_OBJ_META_NVDSANALYTICS = 33
    NVDS_RESERVED_META = 4095
    NVDS_GST_CUSTOM_META = 4096
    NVDS_START_USER_META = NVDS_START_USER_META
    NVDS_FORCE32_META = 0x7FFFFFFF


class GstNvDsMetaType(IntEnum):
    """Types of metadata of buffers."""

    NVDS_GST_INVALID_META = -1
    NVDS_BATCH_GST_META = 4097
    NVDS_DECODER_GST_META = 4098
    NVDS_DEWARPER_GST_META = 4099
    NVDS_RESERVED_GST_META = 8192
    NVDS_GST_META_FORCE32 = 0x7FFFFFFF


class GList:
    """A node of a list; a removed one keeps its neighbours, so that a loop goes on.

    A list and a batch hold no circle of references: images go when the last buffer does.
    """

    __slots__ = ("__weakref__", "_prev", "data", "next")

    def __init__(self, data: Any = None, prev: GList | None = None) -> None:
        self.data, self.prev = data, prev
        self.next: GList | None = None

    @property
    def prev(self) -> GList | None:
        """The node before this one."""
        return None if self._prev is None else self._prev()

    @prev.setter
    def prev(self, node: GList | None) -> None:
        self._prev = None if node is None else ref(node)


class MetaList:
    """A doubly linked list with its end at hand."""

    __slots__ = ("_count", "_last", "first")

    def __init__(self) -> None:
        self.first: GList | None = None
        self._last: GList | None = None
        self._count = 0

    def append(self, data: object) -> None:
        """Add at the end."""
        node = GList(data, self._last)
        if self._last is None:
            self.first = node
        else:
            self._last.next = node
        self._last = node
        self._count += 1

    def remove(self, data: object) -> bool:
        """Take one item out; False if it is not there."""
        node = self.first
        while node is not None and node.data is not data:
            node = node.next
        if node is None:
            return False
        if node.prev is None:
            self.first = node.next
        else:
            node.prev.next = node.next
        if node.next is None:
            self._last = node.prev
        else:
            node.next.prev = node.prev
        self._count -= 1
        return True

    def clear(self) -> None:
        """Take all items out."""
        self.first = self._last = None
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        node = self.first
        while node is not None:
            yield node.data
            node = node.next

    def __len__(self) -> int:
        return self._count


class NvDsMeta(Struct):
    """Metadata of a buffer, as GStreamer's elements of the original keep them.

    Attributes:
        meta_data: the batch's metadata.
        meta_type: one of `GstNvDsMetaType`.
    """

    meta: Any = None
    meta_data: Any = None
    user_data: Any = None
    meta_type: int = GstNvDsMetaType.NVDS_GST_INVALID_META


class NvDsBaseMeta(Struct):
    """Owner and type of a piece of metadata."""

    meta_type: int = NvDsMetaType.NVDS_INVALID_META
    uContext: Any = None
    copy_func: Any = None
    release_func: Any = None
    _batch: ref[NvDsBatchMeta] | None = None

    @property
    def batch_meta(self) -> Any:
        """The batch it belongs to; None once the batch is gone."""
        return None if self._batch is None else self._batch()

    @batch_meta.setter
    def batch_meta(self, batch: Any) -> None:
        self._batch = None if batch is None else ref(batch)


class MetaField:
    """A field that applications read as the first node of a list; None if it is empty."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        if struct is None:
            return self
        meta_list = struct.__dict__.get(self._name)
        return None if meta_list is None else meta_list.first

    def __set__(self, struct: Struct, value: object) -> None:
        raise AttributeError(f"{self._name} cannot be set; the functions nvds_add_… add to it")


def items(struct: Struct, name: str) -> MetaList:
    """Return the list behind a field such as `obj_meta_list`, made if need be."""
    meta_list = struct.__dict__.get(name)
    if meta_list is None:
        meta_list = struct.__dict__[name] = MetaList()
    return meta_list


class NvDsUserMeta(Struct):
    """Anything that an application attaches."""

    base_meta = Nested(NvDsBaseMeta)
    user_meta_data: Any = None

    def __del__(self) -> None:
        base = self.__dict__.get("base_meta")
        if base is not None and base.release_func is not None:
            base.release_func(self, None)


class NvDsLabelInfo(Struct):
    """One attribute of a classifier's result."""

    base_meta = Nested(NvDsBaseMeta)
    num_classes = 0
    result_label = ""
    pResult_label = 0
    result_class_id = 0
    label_id = 0
    result_prob = 0.0


class NvDsClassifierMeta(Struct):
    """The result of a classifier on an object."""

    base_meta = Nested(NvDsBaseMeta)
    unique_component_id = 0
    classifier_type = ""
    label_info_list = MetaField()

    @property
    def num_labels(self) -> int:
        """Number of attributes."""
        return len(items(self, "label_info_list"))


class NvBbox_Coords(Struct):
    """A box in pixels, as a detector or a tracker gave it."""

    left = 0.0
    top = 0.0
    width = 0.0
    height = 0.0


class NvDsComp_BboxInfo(Struct):
    """The box of one component."""

    org_bbox_coords = Nested(NvBbox_Coords)


class NvDsObjectMeta(Struct):
    """An object of a frame."""

    base_meta = Nested(NvDsBaseMeta)
    parent: NvDsObjectMeta | None = None
    unique_component_id = 0
    class_id = 0
    object_id = UNTRACKED_OBJECT_ID
    detector_bbox_info = Nested(NvDsComp_BboxInfo)
    tracker_bbox_info = Nested(NvDsComp_BboxInfo)
    confidence = 0.0
    tracker_confidence = 0.0
    rect_params = Nested(NvOSD_RectParams)
    mask_params = Nested(NvOSD_MaskParams)
    text_params = Nested(NvOSD_TextParams)
    obj_label = ""
    classifier_meta_list = MetaField()
    obj_user_meta_list = MetaField()

    def __init__(self) -> None:
        self.misc_obj_info = [0] * 4
        self.reserved = [0] * 4


class NvDsDisplayMeta(Struct):
    """Figures and texts that an application draws on a frame."""

    base_meta = Nested(NvDsBaseMeta)
    num_rects = 0
    num_labels = 0
    num_lines = 0
    num_arrows = 0
    num_circles = 0
    rect_params = Elements(NvOSD_RectParams)
    text_params = Elements(NvOSD_TextParams)
    line_params = Elements(NvOSD_LineParams)
    arrow_params = Elements(NvOSD_ArrowParams)
    circle_params = Elements(NvOSD_CircleParams)

    def __init__(self) -> None:
        self.misc_osd_data = [0] * 4
        self.reserved = [0] * 4


class NvDsFrameMeta(Struct):
    """A frame of a batch; times in nanoseconds, sizes in pixels."""

    base_meta = Nested(NvDsBaseMeta)
    pad_index = 0
    batch_id = 0
    frame_num = 0
    buf_pts = 0
    ntp_timestamp = 0
    source_id = 0
    num_surfaces_per_frame = 1
    source_frame_width = 0
    source_frame_height = 0
    pipeline_width = 0
    pipeline_height = 0
    surface_type = 0
    surface_index = 0
    bInferDone = 0
    obj_meta_list = MetaField()
    display_meta_list = MetaField()
    frame_user_meta_list = MetaField()

    def __init__(self) -> None:
        self.misc_frame_info = [0] * 4
        self.reserved = [0] * 4

    @property
    def num_obj_meta(self) -> int:
        """Number of objects."""
        return len(items(self, "obj_meta_list"))


class NvDsMetaPool(Struct):
    """A pool of metadata; elements are made as they are asked for, so its lists are empty."""

    type = 0
    meta_type: int = NvDsMetaType.NVDS_INVALID_META
    max_elements_in_pool = 0
    element_size = 0
    empty_list: GList | None = None
    full_list: GList | None = None
    num_empty_elements = 0
    num_full_elements = 0


class NvDsBatchMeta(Struct):
    """A batch of frames, with their images.

    Attributes:
        surfaces: the image of each frame, by `batch_id`.
        ended: sources that ended since the batch before.
        images: the images as C code maps them, by their format.
        owner: the batch whose metadata these are, where another has the images.
    """

    base_meta = Nested(NvDsBaseMeta)
    max_frames_in_batch = 0
    frame_meta_pool = Nested(NvDsMetaPool)
    obj_meta_pool = Nested(NvDsMetaPool)
    classifier_meta_pool = Nested(NvDsMetaPool)
    display_meta_pool = Nested(NvDsMetaPool)
    user_meta_pool = Nested(NvDsMetaPool)
    label_info_meta_pool = Nested(NvDsMetaPool)
    frame_meta_list = MetaField()
    batch_user_meta_list = MetaField()

    def __init__(self) -> None:
        self.misc_batch_info = [0] * 4
        self.reserved = [0] * 4
        self.meta_mutex = RLock()
        self.surfaces: list[Any] = []
        self.ended: list[int] = []
        self.images: dict[str, Any] = {}
        self.owner: NvDsBatchMeta | None = None

    @property
    def num_frames_in_batch(self) -> int:
        """Number of frames."""
        return len(items(self, "frame_meta_list"))
