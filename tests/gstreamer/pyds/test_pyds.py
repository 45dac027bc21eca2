"""Structures and functions of `pyds`, as applications use them."""

from __future__ import annotations

import ctypes
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def pyds(gst: Any) -> Any:
    from headrace.gstreamer import pyds

    return pyds


def frame_with(pyds: Any, count: int) -> tuple[Any, Any, list[Any]]:
    batch = pyds.NvDsBatchMeta()
    frame = pyds.nvds_acquire_frame_meta_from_pool(batch)
    pyds.nvds_add_frame_meta_to_batch(batch, frame)
    objects = []
    for number in range(count):
        obj = pyds.nvds_acquire_obj_meta_from_pool(batch)
        obj.class_id = number
        pyds.nvds_add_obj_meta_to_frame(frame, obj, None)
        objects.append(obj)
    return batch, frame, objects


def test_lists_are_walked_and_counted(pyds: Any) -> None:
    batch, frame, objects = frame_with(pyds, 3)
    assert batch.num_frames_in_batch == 1
    assert pyds.NvDsFrameMeta.cast(batch.frame_meta_list.data) is frame
    assert frame.num_obj_meta == 3
    node, seen = frame.obj_meta_list, []
    while node is not None:
        seen.append(pyds.NvDsObjectMeta.cast(node.data))
        node = node.next
    assert seen == objects
    assert frame.obj_meta_list.next.prev is frame.obj_meta_list
    assert frame.display_meta_list is None
    assert objects[0].base_meta.batch_meta is batch
    assert objects[0].base_meta.meta_type == pyds.NVDS_OBJ_META == 3
    assert objects[0].object_id == pyds.UNTRACKED_OBJECT_ID == 2**64 - 1


@pytest.mark.parametrize("gone", [(0,), (1,), (2,), (0, 1, 2)])
def test_objects_are_removed_while_the_list_is_walked(pyds: Any, gone: tuple[int, ...]) -> None:
    _, frame, objects = frame_with(pyds, 3)
    node, seen = frame.obj_meta_list, []
    while node is not None:
        seen.append(node.data.class_id)
        if node.data.class_id in gone:
            pyds.nvds_remove_obj_meta_from_frame(frame, node.data)
        node = node.next
    assert seen == [0, 1, 2]
    left = [obj for obj in objects if obj.class_id not in gone]
    assert frame.num_obj_meta == len(left)
    assert (frame.obj_meta_list and frame.obj_meta_list.data) is (left[0] if left else None)


def test_a_child_of_a_removed_object_has_no_parent(pyds: Any) -> None:
    batch, frame, (parent,) = frame_with(pyds, 1)
    child = pyds.nvds_acquire_obj_meta_from_pool(batch)
    pyds.nvds_add_obj_meta_to_frame(frame, child, parent)
    assert child.parent is parent
    pyds.nvds_remove_obj_meta_from_frame(frame, parent)
    assert child.parent is None


def test_texts_read_as_addresses_and_are_written_as_texts(pyds: Any) -> None:
    text = pyds.NvOSD_TextParams()
    assert text.display_text == 0
    assert pyds.get_string(text.display_text) is None
    text.display_text = "naïve"
    assert pyds.get_string(text.display_text) == "naïve"
    assert ctypes.string_at(text.display_text) == "naïve".encode()
    text.display_text = "other"
    assert pyds.get_string(text.display_text) == "other"
    with pytest.raises(TypeError):
        text.display_text = 5
    copy = pyds.strdup(text.display_text)
    assert pyds.get_string(copy) == "other"
    pyds.free_buffer(copy)


def test_structures_inside_are_shared_and_assignments_copy(pyds: Any) -> None:
    obj, other = pyds.NvDsObjectMeta(), pyds.NvDsObjectMeta()
    obj.rect_params.border_color.set(0.1, 0.2, 0.3, 0.4)
    obj.rect_params.left = 5
    other.rect_params = obj.rect_params
    assert (other.rect_params.left, other.rect_params.border_color.green) == (5, 0.2)
    other.rect_params.left = 7
    other.rect_params.border_color.green = 0.9
    assert (obj.rect_params.left, obj.rect_params.border_color.green) == (5, 0.2)
    assert obj.rect_params.border_color is obj.rect_params.border_color


def test_display_metadata_have_sixteen_of_each(pyds: Any) -> None:
    _, frame, _ = frame_with(pyds, 0)
    display = pyds.NvDsDisplayMeta()
    display.num_labels = 2
    display.text_params[1].x_offset = 9
    assert display.text_params[1].x_offset == 9
    assert len(display.line_params) == 16
    with pytest.raises(IndexError):
        display.rect_params[16]
    pyds.nvds_add_display_meta_to_frame(frame, display)
    assert frame.display_meta_list.data is display
    pyds.nvds_clear_display_meta_list(frame, frame.display_meta_list)
    assert frame.display_meta_list is None


def test_masks_and_buffers(pyds: Any) -> None:
    mask = pyds.NvOSD_MaskParams()
    mask.width, mask.height = 4, 3
    mask.alloc_mask_array()[:] = np.arange(12)
    assert mask.size == 48
    assert mask.get_mask_array().tolist() == list(range(12))
    address = pyds.get_ptr(mask.get_mask_array())
    floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
    assert np.ctypeslib.as_array(floats, (12,)).tolist() == list(range(12))
    copy = pyds.memdup(address, 48)
    assert ctypes.string_at(copy, 48) == mask.get_mask_array().tobytes()
    pyds.free_buffer(copy)


def test_metadata_of_the_application(pyds: Any) -> None:
    batch, frame, (obj,) = frame_with(pyds, 1)
    for add, owner, name in (
        (pyds.nvds_add_user_meta_to_batch, batch, "batch_user_meta_list"),
        (pyds.nvds_add_user_meta_to_frame, frame, "frame_user_meta_list"),
        (pyds.nvds_add_user_meta_to_obj, obj, "obj_user_meta_list"),
    ):
        user = pyds.nvds_acquire_user_meta_from_pool(batch)
        user.user_meta_data = {"any": "thing"}
        user.base_meta.meta_type = pyds.nvds_get_user_meta_type("MINE")
        add(owner, user)
        assert getattr(owner, name).data.user_meta_data == {"any": "thing"}
    assert pyds.nvds_get_user_meta_type("MINE") == pyds.nvds_get_user_meta_type("MINE")
    assert pyds.nvds_get_user_meta_type("MINE") != pyds.nvds_get_user_meta_type("OTHER")


def test_a_buffer_without_metadata(pyds: Any, gst: Any) -> None:
    buffer = gst.Buffer.new_allocate(None, 8, None)
    assert pyds.gst_buffer_get_nvds_batch_meta(hash(buffer)) is None
    with pytest.raises(RuntimeError, match="no batch metadata"):
        pyds.get_nvds_buf_surface(hash(buffer), 0)


def test_objects_are_encoded_as_jpeg(pyds: Any, gst: Any, tmp_path: Path) -> None:
    from PIL import Image

    from headrace.gstreamer.elements.surface import Surface
    from headrace.gstreamer.pyds.bridge import bridge

    batch, frame, (obj,) = frame_with(pyds, 1)
    pixels = np.zeros((40, 60, 4), np.uint8)
    pixels[10:30, 20:50] = (200, 30, 60, 255)
    batch.surfaces.append(Surface(None, pixels))
    buffer = gst.Buffer.new_allocate(None, 8, None)
    bridge().attach(hash(buffer), batch)
    rect = obj.rect_params
    rect.left, rect.top, rect.width, rect.height = 20, 10, 30, 20
    context = pyds.nvds_obj_enc_create_context(0)
    args = pyds.NvDsObjEncUsrArgs()
    args.saveImg = args.attachUsrMeta = True
    args.fileNameImg = str(tmp_path / "object.jpg")
    assert pyds.nvds_obj_enc_process(context, args, hash(buffer), obj, frame)
    pyds.nvds_obj_enc_finish(context)
    with Image.open(tmp_path / "object.jpg") as image:
        assert image.size == (30, 20)
        assert np.abs(np.asarray(image)[10, 15].astype(int) - (200, 30, 60)).max() < 8
    user = obj.obj_user_meta_list.data
    assert user.base_meta.meta_type == pyds.NVDS_CROP_IMAGE_META
    data = pyds.NvDsObjEncOutParams.cast(user.user_meta_data).outBuffer()
    assert data.tobytes() == (tmp_path / "object.jpg").read_bytes()

    args.saveImg, args.isFrame, args.scaleImg = False, 1, True
    args.scaledWidth, args.scaledHeight = 15, 10
    assert pyds.nvds_obj_enc_process(context, args, hash(buffer), None, frame)
    whole = frame.frame_user_meta_list.data.user_meta_data.outBuffer()
    with Image.open(io.BytesIO(whole.tobytes())) as image:
        assert image.size == (15, 10)

    rect.left, args.isFrame = 100, 0
    assert not pyds.nvds_obj_enc_process(context, args, hash(buffer), obj, frame)
    pyds.nvds_obj_enc_destroy_context(context)
    assert not pyds.nvds_obj_enc_process(context, args, hash(buffer), obj, frame)


def test_layers_name_their_type_as_the_original_does(pyds: Any) -> None:
    types = pyds.NvDsInferDataType
    assert [(t.name, int(t)) for t in types] == [
        ("FLOAT", 0), ("HALF", 1), ("INT8", 2), ("INT32", 3), ("INT64", 4), ("UINT8", 5)
    ]  # fmt: skip
    assert pyds.HALF is types.HALF
    assert {pyds.NvDsInferLayerInfo().dataType} == {types.FLOAT}
