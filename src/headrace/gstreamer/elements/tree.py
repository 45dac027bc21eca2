"""Metadata as applications see it (a tree of structures), and as stages of inference use it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.types import Array
from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta.images import add_images
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.outputs import add_outputs
from headrace.gstreamer.elements.surface import Surface
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_classifier_meta_from_pool,
    nvds_acquire_label_info_meta_from_pool,
    nvds_acquire_obj_meta_from_pool,
    nvds_add_classifier_meta_to_object,
    nvds_add_label_info_meta_to_classifier,
    nvds_add_obj_meta_to_frame,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsClassifierMeta,
    NvDsFrameMeta,
    NvDsObjectMeta,
    items,
)
from headrace.gstreamer.pyds.struct import text_at
from headrace.infer.batch import frame_meta
from headrace.media.frame import Frame
from headrace.meta import (
    UNTRACKED_OBJECT_ID,
    ClassifierMeta,
    ClassStyle,
    Detections,
    FrameMeta,
    Objects,
    Space,
)
from headrace.meta.objects import DEFAULT_STYLE

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.osd import NvOSD_RectParams, NvOSD_TextParams


# A frame's metadata as stages use it, with its objects in the tree by their index there.
Made = tuple[FrameMeta, list[NvDsObjectMeta]]


def frames_of(batch: NvDsBatchMeta) -> list[NvDsFrameMeta]:
    """List the frames of a batch."""
    return list(items(batch, "frame_meta_list"))


def image_of(batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> Frame:
    """Return the image of a frame, with its number, source and time."""
    surface: Surface = batch.surfaces[frame.batch_id]
    return surface.frame(
        pts_ns=int(frame.buf_pts), frame=int(frame.frame_num), source=f"source {frame.source_id}",
        source_id=int(frame.source_id),
    )  # fmt: skip


def with_surfaces(batch: NvDsBatchMeta, surfaces: list[Surface]) -> NvDsBatchMeta:
    """Return a batch with other images; it shares the metadata, and keeps their owner."""
    new_batch = copy.copy(batch)
    new_batch.surfaces, new_batch.owner, new_batch.images = surfaces, batch, {}
    return new_batch


def batch_buffer(batch: NvDsBatchMeta, format: str) -> Gst.Buffer:
    """Make the buffer of a batch: no pixels, but metadata, and the images for C code that maps it.

    Args:
        batch: its metadata and images.
        format: of the images, as the caps of the stream say; C code gets them so.
    """
    buffer = Gst.Buffer.new()
    add_images(hash(buffer), batch, format)
    bridge().attach(hash(buffer), batch)
    return buffer


def to_metas(batch: NvDsBatchMeta) -> tuple[list[NvDsFrameMeta], list[Frame], list[Made]]:
    """Return the frames of a batch, their images and their metadata for stages."""
    frames = frames_of(batch)
    images = [image_of(batch, frame) for frame in frames]
    return frames, images, list(map(to_frame_meta, frames, images))


def to_frame_meta(frame: NvDsFrameMeta, image: Frame) -> Made:
    """Make metadata for a stage of the objects of a frame, in their order.

    Returns:
        The metadata, and the objects by their index in it.
    """
    meta = frame_meta(image)
    objects: list[NvDsObjectMeta] = list(items(frame, "obj_meta_list"))
    indices = {id(obj): index for index, obj in enumerate(objects)}
    start = 0
    for end in range(1, len(objects) + 1):  # those of one model and parent go in together
        first = objects[start]
        if end < len(objects) and (
            objects[end].unique_component_id == first.unique_component_id
            and objects[end].parent is first.parent
        ):
            continue
        part = objects[start:end]
        rects = [o.rect_params for o in part]
        detections = Detections.unchecked(
            np.array([(r.left, r.top, r.width, r.height) for r in rects], np.float32),
            np.array([o.confidence for o in part], np.float32),
            np.array([o.class_id for o in part], np.int32),
            space=Space.FRAME,
        )
        parent = -1 if first.parent is None else indices.get(id(first.parent), -1)
        meta.objects.append(detections, int(first.unique_component_id), parent=parent)
        start = end
    if objects:
        meta.objects.object_ids[:] = [o.object_id for o in objects]
        for index, obj in enumerate(objects):
            meta.objects.texts[index] = text_at(obj.text_params.display_text) or obj.obj_label
    return meta, objects


def add_results(
    batch: NvDsBatchMeta, frame: NvDsFrameMeta, meta: FrameMeta, before: list[NvDsObjectMeta]
) -> None:
    """Add the results of a model to the tree: new objects, classes and texts of known ones.

    Args:
        batch: of the frame.
        frame: in the tree.
        meta: as `to_frame_meta` made it, after the model.
        before: objects of the tree by their index in `meta`.
    """
    objects = meta.objects
    known = list(before)
    for index in range(len(before), len(objects)):
        known.append(_new_object(batch, objects, index, meta))
        parent = int(objects.parents[index])
        nvds_add_obj_meta_to_frame(frame, known[index], known[parent] if parent >= 0 else None)
    for index, results in objects.classifiers.items():
        for result in results:
            nvds_add_classifier_meta_to_object(known[index], classifier_meta(batch, result))
        known[index].text_params.display_text = objects.display_text(index)
    add_outputs(batch, frame, meta, known)


def _new_object(
    batch: NvDsBatchMeta, objects: Objects, index: int, meta: FrameMeta
) -> NvDsObjectMeta:
    obj = nvds_acquire_obj_meta_from_pool(batch)
    component, class_id = int(objects.component_ids[index]), int(objects.class_ids[index])
    style = objects.styles.get(component, {}).get(class_id, DEFAULT_STYLE)
    obj.unique_component_id, obj.class_id = component, class_id
    obj.confidence = float(objects.confidences[index])
    obj.obj_label = objects[index].label
    left, top, width, height = objects.rects[index].tolist()
    rect, box = obj.rect_params, obj.detector_bbox_info.org_bbox_coords
    for target in (rect, box):
        target.left, target.top, target.width, target.height = left, top, width, height
    _style_rect(rect, style)
    style_text(obj.text_params, objects.display_text(index), left, top, style)
    if objects.masks is not None and objects.masks[index].size:
        set_mask(obj, objects.masks[index], objects.mask_thresholds.get(component, 0.0))
    elif objects.keypoints is not None and len(objects.keypoints[index]):
        # As parsers of poses leave them; in pixels of the frame, which the sizes say too.
        set_mask(obj, objects.keypoints[index], 0.0)
        obj.mask_params.width, obj.mask_params.height = meta.width, meta.height
    return obj


def set_mask(obj: NvDsObjectMeta, values: Array, threshold: float) -> None:
    """Give an object a mask over its box."""
    mask = obj.mask_params
    mask.height, mask.width = values.shape
    mask.data, mask.size, mask.threshold = values, values.nbytes, threshold


def _style_rect(rect: NvOSD_RectParams, style: ClassStyle) -> None:
    rect.border_width = style.border_width
    rect.border_color.set(*style.border_color)
    if style.bg_color is not None:
        rect.has_bg_color = 1
        rect.bg_color.set(*style.bg_color)


def style_text(
    params: NvOSD_TextParams, text: str, left: float, top: float, style: ClassStyle = DEFAULT_STYLE
) -> None:
    """Set a text and its look; its box is ten pixels above the object. Source: spec B.7."""
    params.display_text = text
    params.x_offset, params.y_offset = max(0, int(left)), max(0, int(top - 10))
    font = params.font_params
    font.font_name, font.font_size = style.font, style.font_size
    font.font_color.set(*style.font_color)
    if style.text_bg_color is not None:
        params.set_bg_clr = 1
        params.text_bg_clr.set(*style.text_bg_color)


def classifier_meta(batch: NvDsBatchMeta, result: ClassifierMeta) -> NvDsClassifierMeta:
    """Make the metadata of a classifier's result."""
    meta = nvds_acquire_classifier_meta_from_pool(batch)
    meta.unique_component_id, meta.classifier_type = result.component_id, result.classifier_type
    for info in result.labels:
        label = nvds_acquire_label_info_meta_from_pool(batch)
        label.result_label, label.result_class_id = info.label, info.value
        label.label_id, label.result_prob = info.attribute, info.confidence
        nvds_add_label_info_meta_to_classifier(meta, label)
    return meta


def is_tracked(obj: NvDsObjectMeta) -> bool:
    """True if a tracker gave the object a number."""
    return bool(obj.object_id != UNTRACKED_OBJECT_ID)


assert pyds.UNTRACKED_OBJECT_ID == UNTRACKED_OBJECT_ID
