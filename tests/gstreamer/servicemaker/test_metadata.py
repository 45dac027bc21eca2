"""Views of metadata: names, copies, limits, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "headrace.gstreamer.servicemaker", reason="GStreamer is not installed", exc_type=ImportError
)
from headrace.gstreamer import pyds, servicemaker
from headrace.gstreamer.pyds import functions as pool
from headrace.gstreamer.pyds.inference import NvDsInferLayerInfo, NvDsInferTensorMeta
from headrace.gstreamer.pyds.struct import text_at
from headrace.gstreamer.servicemaker import BatchMetadata, DisplayMetadata, Tensor, as_tensor, osd


@pytest.fixture
def batch() -> BatchMetadata:
    """A batch with one frame of two objects."""
    meta = pyds.NvDsBatchMeta()
    frame = pool.nvds_acquire_frame_meta_from_pool(meta)
    frame.frame_num, frame.source_id, frame.ntp_timestamp = 7, 3, 1_700_000_000_250_000_000
    pool.nvds_add_frame_meta_to_batch(meta, frame)
    for number, label in enumerate(("car", "person")):
        obj = pool.nvds_acquire_obj_meta_from_pool(meta)
        obj.class_id, obj.object_id, obj.obj_label, obj.confidence = number, 40 + number, label, 0.5
        obj.rect_params.left, obj.rect_params.width = 10.0 * number, 30.0
        pool.nvds_add_obj_meta_to_frame(frame, obj, None)
    return BatchMetadata.of(meta)


def test_frames_and_objects_are_read_and_changed(batch: BatchMetadata) -> None:
    (frame,) = batch.frame_items
    assert (batch.n_frames, frame.frame_number, frame.source_id) == (1, 7, 3)
    objects = frame.object_items
    first, second = objects
    assert list(objects) == [], "an iterator, as the original's"
    assert [first.label, second.label] == ["car", "person"]
    first.rect_params.left = 5.5
    first.rect_params.border_color = osd.Color(1.0, 0.0, 0.0, 1.0)
    first.class_id, first.label = 9, "truck"
    again = next(frame.object_items)
    assert again == first
    assert (again.meta.rect_params.left, again.meta.class_id, again.meta.obj_label) == (
        5.5, 9, "truck",
    )  # fmt: skip
    assert again.meta.rect_params.border_color.red == 1.0
    assert second.rect_params.left == 10.0


def test_new_objects_and_figures_reach_the_frame(batch: BatchMetadata) -> None:
    (frame,) = batch.frame_items
    made = batch.acquire_object_meta()
    made.class_id, made.confidence = 4, 0.25
    frame.append(made)
    assert [one.class_id for one in frame.object_items] == [0, 1, 4]
    text = osd.Text()
    text.display_text, text.font.name = "größer".encode(), osd.FontFamily.Serif
    text.font.color, text.set_bg_color = osd.Color(0.5, 0.25, 0.125, 1.0), True
    display = batch.acquire_display_meta()
    assert display.add_text(text)
    text.display_text = "changed after the copy"
    frame.append(display)
    (shown,) = frame.display_items
    first = shown.meta.text_params[0]
    assert text_at(first.display_text) == "größer"
    assert text_at(first.font_params.font_name) == "Serif"
    assert first.font_params.font_color.green == 0.25
    assert shown.meta.num_labels == 1


@pytest.mark.parametrize(
    ("add", "figure"),
    [
        (DisplayMetadata.add_rect, osd.Rect), (DisplayMetadata.add_line, osd.Line),
        (DisplayMetadata.add_circle, osd.Circle), (DisplayMetadata.add_arrow, osd.Arrow),
        (DisplayMetadata.add_text, osd.Text),
    ],
)  # fmt: skip
def test_sixteen_figures_of_a_kind_fit(batch: BatchMetadata, add: Any, figure: Any) -> None:
    display = batch.acquire_display_meta()
    assert [add(display, figure()) for _ in range(17)] == [True] * 16 + [False]


def test_an_event_has_all_of_its_object(batch: BatchMetadata) -> None:
    (frame,) = batch.frame_items
    _, person = frame.object_items
    event = batch.acquire_event_message_meta()
    event.generate(person, frame, "gate", "file:///a.mp4", ["vehicle"])
    frame.append(event)
    data = event.meta.user_meta_data
    assert (text_at(data.sensorStr), text_at(data.videoPath)) == ("gate", "file:///a.mp4")
    assert text_at(data.objectId) == "person", "class 1 has no label in the list"
    assert data.objType == pyds.NvDsObjectType.NVDS_OBJECT_TYPE_PERSON
    assert (data.trackingId, data.frameId, data.bbox.left, data.bbox.width) == (41, 7, 10.0, 30.0)
    assert text_at(data.ts) == "2023-11-14T22:13:20.250Z"
    assert [user.meta_type for user in frame.user_items] == [pyds.NvDsMetaType.NVDS_EVENT_MSG_META]


def test_outputs_are_tensors_by_name(batch: BatchMetadata) -> None:
    (frame,) = batch.frame_items
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    user = batch.acquire_user_meta()
    user.user_data = NvDsInferTensorMeta([NvDsInferLayerInfo("scores", 0, values)])
    frame.append(user)
    (found,) = frame.tensor_items
    output = found.as_tensor_output()
    assert found.as_segmentation() is None
    assert output is not None
    layers = output.get_layers()
    assert bool(layers["scores"]), "applications ask so whether a layer is there"
    np.testing.assert_array_equal(np.from_dlpack(layers["scores"]), values)
    assert layers["scores"].shape == (2, 3, 4)


def test_tensors_of_read_only_memory_are_copied() -> None:
    values = np.arange(6, dtype=np.uint8)
    values.flags.writeable = False
    np.testing.assert_array_equal(np.from_dlpack(Tensor(values)), values)
    clone = as_tensor(values).clone()
    clone.values[0] = 9
    assert values[0] == 0


def test_a_missing_name_says_where_the_names_are() -> None:
    with pytest.raises(AttributeError, match=r"no 'Nonsense'.*docs/gstreamer\.md"):
        servicemaker.Nonsense  # noqa: B018
