"""nvtracker: the same object has the same number in every frame of its source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headrace._core.errors import HeadraceError
from headrace.config.app.tracker import is_original_library, sample_tracker
from headrace.gstreamer.elements.bindings import BaseTransform, Gst, structure_of
from headrace.gstreamer.elements.element import NVMM, InPlace, through
from headrace.gstreamer.elements.past_frames import PastFrames, Rect, Tracked, recorded
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, UINT_MAX, Property
from headrace.gstreamer.elements.tree import (
    frames_of,
    image_of,
    is_tracked,
    set_mask,
    style_text,
    to_frame_meta,
)
from headrace.gstreamer.pyds.events import TRACKER_UPDATE
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_obj_meta_from_pool,
    nvds_acquire_user_meta_from_pool,
    nvds_add_obj_meta_to_frame,
    nvds_add_user_meta_to_batch,
    nvds_add_user_meta_to_obj,
    nvds_remove_obj_meta_from_frame,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsObjectMeta,
    items,
)
from headrace.gstreamer.pyds.struct import text_at
from headrace.gstreamer.pyds.tracking import (
    NvDsObjReid,
    NvDsTargetMiscDataBatch,
    NvDsTargetMiscDataStream,
)
from headrace.meta import UNTRACKED_OBJECT_ID, ClassStyle, FrameMeta, Objects
from headrace.meta.track_geometry import TrackGeometry
from headrace.pipeline.track.open import open_tracker
from headrace.pipeline.track.tracker import LiveTracker, Tracker

PREDICTED = -0.1
"""Confidence of an object that the tracker predicts. Source: the original's convention."""
_STYLE = ClassStyle(font_size=10)
_RECORDS = (
    NvDsMetaType.NVDS_TRACKER_PAST_FRAME_META,
    NvDsMetaType.NVDS_TRACKER_TERMINATED_LIST_META,
    NvDsMetaType.NVDS_TRACKER_SHADOW_LIST_META,
)
"""Types of metadata, in the order of `headrace.custom.nvmot.records.MISC_KINDS`."""

_SPACE = {
    "visibility": NvDsMetaType.NVDS_OBJ_VISIBILITY,
    "foot": NvDsMetaType.NVDS_OBJ_IMAGE_FOOT_LOCATION,
    "world_foot": NvDsMetaType.NVDS_OBJ_WORLD_FOOT_LOCATION,
    "hull": NvDsMetaType.NVDS_OBJ_IMAGE_CONVEX_HULL,
}
"""Types of metadata of objects, by fields of `TrackGeometry`; bindings have none for 3D boxes."""

_SIZE = "size of frames and boxes for a library of the user; others look at frames as they are"
_ALONE = "accepted; sources are followed one by one"

PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "compute-hw", "qos")} | {
    "tracker-width": Property("uint", 960, _SIZE),
    "tracker-height": Property("uint", 544, _SIZE),
    "ll-lib-file": Property("str", None, "a library of the user runs in a worker process"),
    "ll-config-file": Property("str", None, "configuration; its sections choose the tracker"),
    "display-tracking-id": Property("bool", True, "texts end with the number"),
    "enable-batch-process": Property("bool", True, _ALONE),
    "enable-past-frame": Property("bool", False, "accepted; past frames always come"),
    "tracking-id-reset-mode": Property("uint", 0, NO_EFFECT, 0, 3),
    "tracking-surface-type": Property("uint", 0, NO_EFFECT),
    "input-tensor-meta": Property("bool", False, NO_EFFECT),
    "tensor-meta-gie-id": Property("uint", 0, NO_EFFECT),
    "user-meta-pool-size": Property("uint", 32, "accepted; metadata are made as needed", 1),
    "sub-batches": Property("str", "", _ALONE),
    "sub-batch-err-recovery-trial-cnt": Property("int", 0, _ALONE, -1),
    "operate-on-class-ids": Property("str", "", "track objects of these classes only: 0:2"),
}


class NvTracker(InPlace):
    """Gives objects their numbers, and predicts them where no model ran."""

    __gtype_name__ = "GstNvTracker"
    ABOUT = ("NvTracker plugin", "NvTracker", "Tracks objects")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._tracker: Tracker | None = None
        self._told = 0  # of its notices
        self._seen: dict[int, NvDsObjectMeta] = {}  # last object of each class
        self._streams: set[int] = set()
        self._past = PastFrames()

    def do_start(self) -> bool:
        """Make the tracker that the configuration asks for; IOU without one."""
        file, library = self.values["ll-config-file"], self.values["ll-lib-file"]
        classes = [int(c) for c in self.values["operate-on-class-ids"].split(":") if c]
        path, own = Path(file or ""), Path(library or "")
        known = path.is_file()
        other = bool(library) and not is_original_library(library)
        try:
            if other and own.is_file():
                self._tracker = open_tracker(
                    "nvmot", operate_on_class_ids=classes or None, library=str(own),
                    config=str(path) if file else "", reid_output=True,
                    tracker_width=self.values["tracker-width"],
                    tracker_height=self.values["tracker-height"],
                )  # fmt: skip
            else:
                self._tracker = open_tracker(
                    path if known else sample_tracker(path), operate_on_class_ids=classes or None
                )
        except Exception as error:  # PyGObject would print it and go on
            self.post_error(error)
            return False
        self._told = 0
        self._tell()
        name = self._tracker.name
        if other and not own.is_file():
            self.post_warning(f"ll-lib-file={library} is not there: the tracker {name} runs")
        if file and not known:
            what = (
                f"the tracker {name} runs"
                if name != "nvmot"
                else "Headrace gives the library its name"
            )
            self.post_warning(f"ll-config-file={file} is not there: {what}")
        return True

    def do_sink_event(self, event: Gst.Event) -> bool:
        """Change keys by the file that the original's event names; other events go on."""
        structure = structure_of(event)
        if structure is None or structure.get_name() != TRACKER_UPDATE:
            return bool(BaseTransform.do_sink_event(self, event))
        path = Path(structure.get_string("config_path") or "")
        try:
            assert isinstance(self._tracker, LiveTracker)
            self.post_notices(self._tracker.change(path))
        except HeadraceError as error:
            self.post_warning(str(error))
        return True

    def _tell(self) -> None:
        """Post the new notices of the tracker."""
        assert self._tracker is not None
        notices = self._tracker.notices[self._told :]
        if notices:
            self._told += len(notices)
            self.post_notices(notices)

    def do_stop(self) -> bool:
        """Forget all tracks."""
        if self._tracker is not None:
            self._tracker.close()
        self._seen.clear()
        self._streams.clear()
        self._past = PastFrames()
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Track the objects of each frame."""
        batch = self.batch_of(buffer)
        assert self._tracker is not None
        kinds: dict[int, list[NvDsTargetMiscDataStream]] = {}
        for frame in frames_of(batch):
            stream = int(frame.source_id) | int(frame.surface_index) << 32  # views of a dewarper
            self._streams.add(stream)
            image = image_of(batch, frame)
            if stream != frame.source_id:
                image = replace(image, source_id=stream)
            meta, before = to_frame_meta(frame, image)
            meta.inferred = bool(frame.bInferDone)
            try:
                self._tracker.update(image, meta)
            except Exception as error:  # of a library of the user that cannot start
                self.post_error(error)
                return Gst.FlowReturn.ERROR
            with batch.meta_mutex:
                untracked = self._apply(batch, frame, meta, before)
            tracked = [_tracked(obj) for obj in items(frame, "obj_meta_list") if is_tracked(obj)]
            past = self._past.update(stream, int(frame.frame_num), tracked, untracked)
            streams = {0: past} if past is not None else {}
            own = getattr(self._tracker, "records", {}).get(stream)
            if own is not None:
                labels = {kind: obj.obj_label for kind, obj in self._seen.items()}
                given = recorded(own.record_ids.tolist(), own.records.tolist(), labels, stream)
                streams = streams | given
            for kind, part in streams.items():
                kinds.setdefault(kind, []).append(part)
        self._tell()
        for kind, parts in kinds.items():
            user = nvds_acquire_user_meta_from_pool(batch)
            user.base_meta.meta_type = _RECORDS[kind]
            user.user_meta_data = NvDsTargetMiscDataBatch(parts)
            with batch.meta_mutex:
                nvds_add_user_meta_to_batch(batch, user)
        for stream in [one for one in self._streams if one & UINT_MAX in batch.ended]:
            self._streams.remove(stream)
            self._tracker.end_of_stream(stream)
            self._past.forget(stream)
        return Gst.FlowReturn.OK

    def _apply(
        self,
        batch: NvDsBatchMeta,
        frame: NvDsFrameMeta,
        meta: FrameMeta,
        before: list[NvDsObjectMeta],
    ) -> list[Rect]:
        """Bring the tracker's results into the tree; returns the boxes that it took out."""
        objects, untracked = meta.objects, []
        only = bool(self.values["operate-on-class-ids"])
        for index, obj in enumerate(before):
            number = int(objects.object_ids[index])
            if number == UNTRACKED_OBJECT_ID:
                if not only and obj.parent is None:
                    nvds_remove_obj_meta_from_frame(frame, obj)
                    untracked.append(_rect(obj))
                continue
            obj.object_id = number
            if objects.tracker_confidences is not None:
                obj.tracker_confidence = float(objects.tracker_confidences[index])
            self._place(obj, objects.rects[index].tolist(), text_at(obj.text_params.display_text))
            if index in objects.reids:
                user = nvds_acquire_user_meta_from_pool(batch)
                user.base_meta.meta_type = NvDsMetaType.NVDS_TRACKER_OBJ_REID_META
                user.user_meta_data = NvDsObjReid(objects.reids[index])
                nvds_add_user_meta_to_obj(obj, user)
            self._seen[obj.class_id] = obj
            _add_space(batch, obj, objects, index)
        for index in range(len(before), len(objects)):
            obj = nvds_acquire_obj_meta_from_pool(batch)
            obj.class_id = int(objects.class_ids[index])
            obj.object_id, obj.confidence = int(objects.object_ids[index]), PREDICTED
            obj.unique_component_id = int(objects.component_ids[index])
            model = self._seen.get(obj.class_id)
            if model is not None:
                obj.obj_label = model.obj_label
                obj.rect_params = model.rect_params
            self._place(obj, objects.rects[index].tolist(), obj.obj_label)
            nvds_add_obj_meta_to_frame(frame, obj, None)
            _add_space(batch, obj, objects, index)
        return untracked

    def _place(self, obj: NvDsObjectMeta, rect: list[float], text: str | None) -> None:
        for target in (obj.tracker_bbox_info.org_bbox_coords, obj.rect_params):
            target.left, target.top, target.width, target.height = rect
        if self.values["display-tracking-id"]:
            text = f"{text or ''} {obj.object_id}".strip()
        # twenty pixels above the object, where nvinfer's text is ten above
        style_text(obj.text_params, text or "", rect[0], rect[1] - 10, _STYLE)


def _add_space(batch: NvDsBatchMeta, obj: NvDsObjectMeta, objects: Objects, index: int) -> None:
    """Add the mask and the places in space that a library of the user gives."""
    geometry = [one for one in objects.user.get(index, ()) if isinstance(one, TrackGeometry)]
    for one in geometry:
        for name, kind in _SPACE.items():
            if (value := getattr(one, name)) is not None:
                user = nvds_acquire_user_meta_from_pool(batch)
                user.base_meta.meta_type, user.user_meta_data = kind, value
                nvds_add_user_meta_to_obj(obj, user)
    if objects.masks is not None and objects.masks[index].size:
        component = int(objects.component_ids[index])
        set_mask(obj, objects.masks[index], objects.mask_thresholds.get(component, 0.0))


def _rect(obj: NvDsObjectMeta) -> Rect:
    rect = obj.rect_params
    return float(rect.left), float(rect.top), float(rect.width), float(rect.height)


def _tracked(obj: NvDsObjectMeta) -> Tracked:
    confidence = max(float(obj.tracker_confidence), 0.0)
    return Tracked(int(obj.object_id), int(obj.class_id), obj.obj_label, _rect(obj), confidence)
