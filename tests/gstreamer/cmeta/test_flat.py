"""Objects packed in one piece are those that the long way writes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta.flat import record_of
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.cmeta.tree import tree_of
from headrace.gstreamer.pyds.meta import NvDsObjectMeta, items
from headrace.gstreamer.pyds.struct import text_at

C = structure("NvDsObjectMeta")


def new_object() -> Any:
    """An object with a value in every kind of field."""
    obj = NvDsObjectMeta()
    obj.class_id, obj.obj_label, obj.confidence = 3, "größer", np.float32(0.5)
    obj.rect_params.left, obj.rect_params.border_width = 10.5, 3
    obj.rect_params.border_color.set(1, 0, 0.5, 1)
    obj.text_params.display_text = "text"
    obj.text_params.font_params.font_name = "Serif"
    obj.misc_obj_info = [1, -2, 3, 4]
    return obj


def test_a_record_has_the_layout_of_c(gst: Any) -> None:
    obj = new_object()
    address = obj.text_params.display_text
    record = record_of(NvDsObjectMeta).pack(obj)
    assert record is not None
    c = C.from_buffer_copy(record)
    assert (c.class_id, c.object_id, c.confidence) == (3, pyds.UNTRACKED_OBJECT_ID, 0.5)
    assert c.obj_label == "größer".encode()
    assert (c.rect_params.left, c.rect_params.border_width) == (10.5, 3)
    assert c.rect_params.border_color.blue == 0.5
    assert c.text_params.display_text == address
    assert text_at(c.text_params.font_params.font_name) == "Serif"
    assert list(c.misc_obj_info) == [1, -2, 3, 4]
    assert obj.text_params.display_text == 0  # its memory belongs to the record
    ctypes.CDLL(None).free(ctypes.c_void_p(address))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text_params.x_offset", -4),
        ("class_id", 1.5),
        ("mask_params.data", np.ones(4, np.float32)),
        ("misc_obj_info", [1, 2]),
    ],
)
def test_what_no_record_holds_is_left_as_it_was(gst: Any, field: str, value: Any) -> None:
    obj = new_object()
    owner = obj
    *path, name = field.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, name, value)
    del owner
    assert record_of(NvDsObjectMeta).pack(obj) is None
    assert text_at(obj.text_params.display_text) == "text"


def test_a_structure_that_an_application_keeps_stays_the_same(gst: Any) -> None:
    batch = pyds.nvds_create_batch_meta(1)
    frame = pyds.nvds_acquire_frame_meta_from_pool(batch)
    pyds.nvds_add_frame_meta_to_batch(batch, frame)
    objects = [new_object() for _ in range(3)]
    for obj in objects:
        pyds.nvds_add_obj_meta_to_frame(frame, obj, None)
    kept = objects[1].rect_params
    tree_of(batch)
    kept.left = 99
    assert objects[1].rect_params.left == 99
    assert [o is known for o, known in zip(objects, items(frame, "obj_meta_list"), strict=True)]
    assert [o.obj_label for o in items(frame, "obj_meta_list")] == ["größer"] * 3
    assert [o.rect_params.left for o in objects] == [10.5, 99, 10.5]
