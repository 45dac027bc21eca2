"""Metadata of batches, frames and objects as operators see them, over `pyds`.

Attributes that end in `_items` are iterators: they can be run through once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeVar

from headrace.gstreamer.pyds import functions as pool
from headrace.gstreamer.pyds.messages import NvDsEventMsgMeta, NvDsEventType, NvDsObjectType
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsDisplayMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsObjectMeta,
    NvDsUserMeta,
)
from headrace.gstreamer.pyds.osd import MAX_ELEMENTS_IN_DISPLAY_META
from headrace.gstreamer.pyds.preprocess import GstNvDsPreProcessBatchMeta, NvDsRoiMeta
from headrace.gstreamer.servicemaker.osd import Arrow, Circle, Line, Mask, Rect, Text
from headrace.gstreamer.servicemaker.results import (
    AnalyticsFrameMeta,
    AnalyticsObjInfo,
    ClassifierMetadata,
    SegmentationUserMetadata,
    TensorOutputUserMetadata,
)
from headrace.gstreamer.servicemaker.view import Alias, MetaView, ViewField, ViewItems

V = TypeVar("V", bound=MetaView)


class UserMetadata(MetaView):
    """Metadata of an application or an element; each `as_…` gives None for another type."""

    KIND = NvDsUserMeta

    @property
    def meta_type(self) -> int:
        """Number of the type."""
        return int(self.meta.base_meta.meta_type)

    @property
    def user_data(self) -> Any:
        """The data."""
        return self.meta.user_meta_data

    @user_data.setter
    def user_data(self, data: object) -> None:
        self.meta.user_meta_data = data

    def _as(self, kind: type[V]) -> V | None:
        data = self.meta.user_meta_data
        return kind.of(data) if isinstance(data, kind.KIND) else None

    def as_tensor_output(self) -> TensorOutputUserMetadata | None:
        """Return raw outputs of a model."""
        return self._as(TensorOutputUserMetadata)

    def as_segmentation(self) -> SegmentationUserMetadata | None:
        """Return a map of classes."""
        segmentation = self._as(SegmentationUserMetadata)
        if segmentation is not None:
            segmentation.meta.unique_id = getattr(segmentation.meta.priv_data, "component_id", 0)
        return segmentation

    def as_nvdsanalytics_frame(self) -> AnalyticsFrameMeta | None:
        """Return the counts of a frame."""
        return self._as(AnalyticsFrameMeta)

    def as_nvdsanalytics_obj(self) -> AnalyticsObjInfo | None:
        """Return the rules that an object fulfils."""
        return self._as(AnalyticsObjInfo)

    def as_preprocess_batch(self) -> PreprocessBatchUserMetadata | None:
        """Return regions and the tensor of `nvdspreprocess`."""
        return self._as(PreprocessBatchUserMetadata)


class ObjectMetadata(MetaView):
    """An object of a frame; its rectangle is in pixels of the multiplexer's images."""

    KIND = NvDsObjectMeta
    class_id, object_id = Alias("class_id"), Alias("object_id")
    confidence, tracker_confidence = Alias("confidence"), Alias("tracker_confidence")
    unique_component_id, label = Alias("unique_component_id"), Alias("obj_label")
    rect_params = ViewField("rect_params", Rect)
    text_params = ViewField("text_params", Text)
    mask_params = ViewField("mask_params", Mask)

    classifier_items = ViewItems("classifier_meta_list", ClassifierMetadata)
    """Results of classifiers on it."""
    tensor_items = ViewItems("obj_user_meta_list", UserMetadata, TensorOutputUserMetadata)
    """Raw outputs of models on it."""
    nvdsanalytics_obj_items = ViewItems("obj_user_meta_list", UserMetadata, AnalyticsObjInfo)
    """Results of `nvdsanalytics` on it."""
    user_items = ViewItems("obj_user_meta_list", UserMetadata)
    """All user metadata."""

    def append(self, meta: UserMetadata) -> None:
        """Add user metadata."""
        pool.nvds_add_user_meta_to_obj(self.meta, meta.meta)


class DisplayMetadata(MetaView):
    """Figures and texts for a frame, at most sixteen of each kind."""

    KIND = NvDsDisplayMeta

    def _add(self, params: str, count: str, figure: MetaView) -> bool:
        index = getattr(self.meta, count)
        if index >= MAX_ELEMENTS_IN_DISPLAY_META:
            return False
        getattr(self.meta, params)[index].copy_from(figure.meta)
        setattr(self.meta, count, index + 1)
        return True

    def add_text(self, text: Text) -> bool:
        """Add a copy of a text; False if there are sixteen."""
        return self._add("text_params", "num_labels", text)

    def add_rect(self, rect: Rect) -> bool:
        """Add a copy of a rectangle; False if there are sixteen."""
        return self._add("rect_params", "num_rects", rect)

    def add_line(self, line: Line) -> bool:
        """Add a copy of a line; False if there are sixteen."""
        return self._add("line_params", "num_lines", line)

    def add_arrow(self, arrow: Arrow) -> bool:
        """Add a copy of an arrow; False if there are sixteen."""
        return self._add("arrow_params", "num_arrows", arrow)

    def add_circle(self, circle: Circle) -> bool:
        """Add a copy of a circle; False if there are sixteen."""
        return self._add("circle_params", "num_circles", circle)


class FrameMetadata(MetaView):
    """A frame of a batch; times in nanoseconds, sizes in pixels."""

    KIND = NvDsFrameMeta
    pad_index, batch_id, source_id = Alias("pad_index"), Alias("batch_id"), Alias("source_id")
    frame_number, buffer_pts = Alias("frame_num"), Alias("buf_pts")
    ntp_timestamp = Alias("ntp_timestamp")
    source_width, source_height = Alias("source_frame_width"), Alias("source_frame_height")
    pipeline_width, pipeline_height = Alias("pipeline_width"), Alias("pipeline_height")

    object_items = ViewItems("obj_meta_list", ObjectMetadata)
    """Objects of the frame."""
    display_items = ViewItems("display_meta_list", DisplayMetadata)
    """Figures and texts that are drawn."""
    tensor_items = ViewItems("frame_user_meta_list", UserMetadata, TensorOutputUserMetadata)
    """Raw outputs of models on the frame."""
    segmentation_items = ViewItems("frame_user_meta_list", UserMetadata, SegmentationUserMetadata)
    """Maps of classes."""
    nvdsanalytics_frame_items = ViewItems("frame_user_meta_list", UserMetadata, AnalyticsFrameMeta)
    """Results of `nvdsanalytics`."""
    user_items = ViewItems("frame_user_meta_list", UserMetadata)
    """All user metadata."""

    def append(self, meta: DisplayMetadata | ObjectMetadata | UserMetadata) -> None:
        """Add an object, figures or user metadata."""
        if isinstance(meta, ObjectMetadata):
            pool.nvds_add_obj_meta_to_frame(self.meta, meta.meta, None)
        elif isinstance(meta, DisplayMetadata):
            pool.nvds_add_display_meta_to_frame(self.meta, meta.meta)
        else:
            pool.nvds_add_user_meta_to_frame(self.meta, meta.meta)


_OBJECT_TYPES = {
    "person": NvDsObjectType.NVDS_OBJECT_TYPE_PERSON,
    "face": NvDsObjectType.NVDS_OBJECT_TYPE_FACE,
    "bag": NvDsObjectType.NVDS_OBJECT_TYPE_BAG,
    "bicycle": NvDsObjectType.NVDS_OBJECT_TYPE_BICYCLE,
    "roadsign": NvDsObjectType.NVDS_OBJECT_TYPE_ROADSIGN,
    "road_sign": NvDsObjectType.NVDS_OBJECT_TYPE_ROADSIGN,
    "car": NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE,
    "vehicle": NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE,
}


class EventMessageUserMetadata(UserMetadata):
    """An event that `nvmsgconv` turns into a payload."""

    def generate(
        self,
        object_meta: ObjectMetadata,
        frame_meta: FrameMetadata,
        sensor: str = "N/A",
        uri: str = "N/A",
        labels: Sequence[str] = (),
    ) -> None:
        """Fill the event with an object of a frame.

        Args:
            object_meta: the object.
            frame_meta: its frame.
            sensor: name of the camera.
            uri: address of the source.
            labels: of the classes; an object whose class has none keeps its own label.
        """
        event: NvDsEventMsgMeta = self.meta.user_meta_data
        obj, frame, box = object_meta.meta, frame_meta.meta, object_meta.meta.rect_params
        label = labels[obj.class_id] if obj.class_id < len(labels) else obj.obj_label
        unknown = NvDsObjectType.NVDS_OBJECT_TYPE_UNKNOWN
        event.type = NvDsEventType.NVDS_EVENT_MOVING
        event.objType = _OBJECT_TYPES.get(label.lower(), unknown)
        event.objClassId, event.trackingId = obj.class_id, obj.object_id
        event.sensorId, event.frameId = frame.source_id, frame.frame_num
        event.confidence, event.objectId = obj.confidence, label
        event.sensorStr, event.videoPath = sensor, uri
        for side in ("left", "top", "width", "height"):
            setattr(event.bbox, side, getattr(box, side))
        now_ns = frame.ntp_timestamp or time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
        event.ts = f"{stamp}.{now_ns // 10**6 % 1000:03d}Z"


class RoiMetadata(MetaView):
    """A region or object of which a prepared tensor has a row."""

    KIND = NvDsRoiMeta
    roi = ViewField("roi", Rect)
    rect_params = ViewField("roi", Rect)
    frame_meta = ViewField("frame_meta", FrameMetadata)
    object_meta = ViewField("object_meta", ObjectMetadata)

    classifier_items = ViewItems("classifier_meta_list", ClassifierMetadata)
    """Results of classifiers on it."""
    tensor_items = ViewItems("roi_user_meta_list", UserMetadata, TensorOutputUserMetadata)
    """Raw outputs of models on it."""


class PreprocessBatchUserMetadata(MetaView):
    """Regions and the tensor that `nvdspreprocess` made of a batch."""

    KIND = GstNvDsPreProcessBatchMeta
    target_unique_ids = Alias("target_unique_ids")

    @property
    def rois(self) -> list[RoiMetadata]:
        """The regions, a row of the tensor each."""
        return [RoiMetadata.of(one) for one in self.meta.roi_vector]


class BatchMetadata(MetaView):
    """A batch of frames."""

    KIND = NvDsBatchMeta

    frame_items = ViewItems("frame_meta_list", FrameMetadata)
    """Frames of the batch."""

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return int(self.meta.num_frames_in_batch)

    @property
    def max_frames(self) -> int:
        """Most frames of a batch."""
        return int(self.meta.max_frames_in_batch)

    preprocess_batch_items = ViewItems(
        "batch_user_meta_list", UserMetadata, PreprocessBatchUserMetadata
    )
    """Results of `nvdspreprocess`."""
    user_items = ViewItems("batch_user_meta_list", UserMetadata)
    """All user metadata of the batch."""

    def acquire_object_meta(self) -> ObjectMetadata:
        """Make an object; `FrameMetadata.append` adds it."""
        return ObjectMetadata.of(pool.nvds_acquire_obj_meta_from_pool(self.meta))

    def acquire_display_meta(self) -> DisplayMetadata:
        """Make room for figures; `FrameMetadata.append` adds them."""
        return DisplayMetadata.of(pool.nvds_acquire_display_meta_from_pool(self.meta))

    def acquire_user_meta(self) -> UserMetadata:
        """Make user metadata; `append` of a batch, a frame or an object adds it."""
        return UserMetadata.of(pool.nvds_acquire_user_meta_from_pool(self.meta))

    def acquire_event_message_meta(self) -> EventMessageUserMetadata:
        """Make an event; `FrameMetadata.append` adds it."""
        user = pool.nvds_acquire_user_meta_from_pool(self.meta)
        user.base_meta.meta_type = NvDsMetaType.NVDS_EVENT_MSG_META
        user.user_meta_data = NvDsEventMsgMeta()
        return EventMessageUserMetadata.of(user)

    def append(self, meta: UserMetadata) -> None:
        """Add user metadata to the batch."""
        pool.nvds_add_user_meta_to_batch(self.meta, meta.meta)
