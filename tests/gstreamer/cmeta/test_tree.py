"""Trees in C of batches of Python's: the same objects, on memory that C code reads and writes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta import data, native
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.cmeta.tree import tree_of
from headrace.gstreamer.cmeta.views import is_view
from headrace.gstreamer.pyds.meta import items

VOID = ctypes.c_void_p
Batch, Frame = structure("NvDsBatchMeta"), structure("NvDsFrameMeta")
Object, User = structure("NvDsObjectMeta"), structure("NvDsUserMeta")


class Node(ctypes.Structure):
    _fields_ = [("data", VOID), ("next", VOID), ("prev", VOID)]


def nodes(address: int | None) -> list[int]:
    """What the nodes of a list of GLib's point to."""
    found = []
    while address:
        node = Node.from_address(address)
        found.append(node.data)
        address = node.next
    return found


@pytest.fixture
def batch(gst: Any) -> pyds.NvDsBatchMeta:
    """The batch of `new_batch`, for tests that do not end its life."""
    return new_batch()


def new_batch() -> pyds.NvDsBatchMeta:
    """A batch of one frame with two objects, the second a child of the first."""
    made = pyds.nvds_create_batch_meta(1)
    frame = pyds.nvds_acquire_frame_meta_from_pool(made)
    frame.frame_num, frame.buf_pts = 7, 1 << 40
    pyds.nvds_add_frame_meta_to_batch(made, frame)
    parent = None
    for class_id, label in enumerate(("car", "plate")):
        obj = pyds.nvds_acquire_obj_meta_from_pool(made)
        obj.class_id, obj.obj_label, obj.confidence = class_id, label, 0.5
        obj.rect_params.left, obj.rect_params.border_width = 10.5, 3
        obj.rect_params.border_color.set(1, 0, 0.5, 1)
        obj.text_params.display_text = f"{label} 1"
        obj.text_params.x_offset, obj.text_params.y_offset = 3, -4
        obj.text_params.font_params.font_name = "Serif"
        pyds.nvds_add_obj_meta_to_frame(frame, obj, parent)
        parent = obj
    return made


def frame_in_c(batch: Any) -> Any:
    (address,) = nodes(Batch.from_address(tree_of(batch)).frame_meta_list)
    return Frame.from_address(address)


def test_c_sees_what_python_wrote(batch: Any) -> None:
    frame = frame_in_c(batch)
    assert (frame.frame_num, frame.buf_pts, frame.num_obj_meta) == (7, 1 << 40, 2)
    second, first = (Object.from_address(a) for a in nodes(frame.obj_meta_list))  # newest first
    assert (first.obj_label, second.obj_label) == (b"car", b"plate")
    assert second.parent == ctypes.addressof(first)
    assert not first.parent
    assert first.object_id == pyds.UNTRACKED_OBJECT_ID
    assert first.rect_params.left == 10.5
    assert [getattr(first.rect_params.border_color, c) for c in ("red", "green", "blue")] == [
        1,
        0,
        0.5,
    ]
    assert ctypes.string_at(first.text_params.display_text) == b"car 1"
    assert ctypes.string_at(first.text_params.font_params.font_name) == b"Serif"
    assert (first.text_params.x_offset, first.text_params.y_offset) == (3, 0)  # not negative
    assert first.base_meta.batch_meta == tree_of(batch)
    assert first.base_meta.meta_type == pyds.NvDsMetaType.NVDS_OBJ_META


def test_pointers_stay_and_python_keeps_its_objects(batch: Any) -> None:
    frame = batch.frame_meta_list.data
    objects = list(items(frame, "obj_meta_list"))
    address = tree_of(batch)
    assert tree_of(batch) == address
    assert batch.frame_meta_list.data is frame
    assert list(items(frame, "obj_meta_list")) == objects
    assert all(map(is_view, objects))
    assert objects[1].parent is objects[0]
    assert objects[0].base_meta.batch_meta is batch


def test_python_sees_what_c_wrote(batch: Any) -> None:
    frame = frame_in_c(batch)
    first = Object.from_address(nodes(frame.obj_meta_list)[1])
    obj = next(iter(items(batch.frame_meta_list.data, "obj_meta_list")))
    first.class_id, first.obj_label, first.rect_params.left = 9, b"bus", 4.25
    assert (obj.class_id, obj.obj_label, obj.rect_params.left) == (9, "bus", 4.25)
    obj.rect_params.left, obj.text_params.display_text = 8.5, "mine"
    assert first.rect_params.left == 8.5
    assert ctypes.string_at(first.text_params.display_text) == b"mine"


def test_objects_go_in_and_out_from_both_sides(batch: Any) -> None:
    frame, view = frame_in_c(batch), batch.frame_meta_list.data
    new = native.call("nvds_acquire_obj_meta_from_pool", VOID, result=VOID)(tree_of(batch))
    Object.from_address(new).obj_label = b"from C"
    native.call("nvds_add_obj_meta_to_frame", VOID, VOID, VOID)(ctypes.addressof(frame), new, None)
    assert [o.obj_label for o in items(view, "obj_meta_list")] == ["car", "plate", "from C"]
    mine = pyds.nvds_acquire_obj_meta_from_pool(batch)
    mine.obj_label = "from Python"
    pyds.nvds_add_obj_meta_to_frame(view, mine, None)
    assert (frame.num_obj_meta, view.num_obj_meta) == (4, 4)
    assert Object.from_address(nodes(frame.obj_meta_list)[0]).obj_label == b"from Python"
    pyds.nvds_remove_obj_meta_from_frame(view, mine)
    assert (frame.num_obj_meta, mine.obj_label, is_view(mine)) == (3, "from Python", False)
    car = next(iter(items(view, "obj_meta_list")))
    native.call("nvds_remove_obj_meta_from_frame", VOID, VOID)(
        ctypes.addressof(frame), ctypes.addressof(car._c)
    )
    assert [o.obj_label for o in items(view, "obj_meta_list")] == ["plate", "from C"]
    assert next(iter(items(view, "obj_meta_list"))).parent is None


def test_user_metadata_of_c_is_copied_and_released_by_its_functions(gst: Any) -> None:
    batch = new_batch()
    calls: list[str] = []

    def copy(user: int, _: object) -> int:
        calls.append("copy")
        return (User.from_address(user).user_meta_data or 0) + 1

    def release(user: int, _: object) -> None:
        calls.append(f"release {User.from_address(user).user_meta_data:#x}")

    functions = native.CopyFunction(copy), native.ReleaseFunction(release)
    frame = frame_in_c(batch)
    new = native.call("nvds_acquire_user_meta_from_pool", VOID, result=VOID)(tree_of(batch))
    user = User.from_address(new)
    user.user_meta_data, user.base_meta.meta_type = 0x1000, 8200
    user.base_meta.copy_func, user.base_meta.release_func = (
        ctypes.cast(f, VOID).value for f in functions
    )
    native.call("nvds_add_user_meta_to_frame", VOID, VOID)(ctypes.addressof(frame), new)
    (seen,) = items(batch.frame_meta_list.data, "frame_user_meta_list")
    assert (seen.user_meta_data, seen.base_meta.meta_type) == (0x1000, 8200)
    other = pyds.nvds_batch_meta_copy_func(batch)
    (copied,) = items(other.frame_meta_list.data, "frame_user_meta_list")
    assert (copied.user_meta_data, calls) == (0x1001, ["copy"])
    del other, copied, seen
    assert calls == ["copy", "release 0x1001"]
    del batch
    assert calls == ["copy", "release 0x1001", "release 0x1000"]


def test_user_metadata_of_python_goes_to_c_and_back(batch: Any) -> None:
    event = pyds.alloc_nvds_event_msg_meta()
    event.ts, event.sensorId, event.trackingId = "2026-01-01T00:00:00Z", 5, 77
    event.objType = pyds.NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE
    event.extMsg = car = pyds.alloc_nvds_vehicle_object()
    car.color = "blue"
    mine = object()
    frame = batch.frame_meta_list.data
    for kind, value in ((pyds.NvDsMetaType.NVDS_EVENT_MSG_META, event), (8300, mine)):
        user = pyds.nvds_acquire_user_meta_from_pool(batch)
        user.base_meta.meta_type, user.user_meta_data = kind, value
        pyds.nvds_add_user_meta_to_frame(frame, user)
    addresses = nodes(frame_in_c(batch).frame_user_meta_list)
    second, first = (User.from_address(address) for address in addresses)
    in_c = structure("NvDsEventMsgMeta").from_address(first.user_meta_data)
    assert (ctypes.string_at(in_c.ts), in_c.sensorId, in_c.trackingId) == (
        b"2026-01-01T00:00:00Z",
        5,
        77,
    )
    vehicle = structure("NvDsVehicleObject").from_address(in_c.extMsg)
    assert ctypes.string_at(vehicle.color) == b"blue"
    assert [u.user_meta_data for u in items(frame, "frame_user_meta_list")] == [event, mine]
    assert second.user_meta_data in data._entries
    copy = native.call("nvds_batch_meta_copy_func", VOID, VOID, result=VOID)(tree_of(batch), None)
    (copied,) = nodes(Batch.from_address(copy).frame_meta_list)
    there = {User.from_address(a).user_meta_data for a in
             nodes(Frame.from_address(copied).frame_user_meta_list)}  # fmt: skip
    assert there == {first.user_meta_data, second.user_meta_data}
    native.destroy_batch(copy)
    assert first.user_meta_data in data._entries


def test_raw_outputs_lie_in_main_memory_for_c(batch: Any) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    meta = pyds.NvDsInferTensorMeta([pyds.NvDsInferLayerInfo("scores", 1, values)])
    meta.unique_id = 4
    user = pyds.nvds_acquire_user_meta_from_pool(batch)
    user.base_meta.meta_type = pyds.NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META
    user.user_meta_data = meta
    pyds.nvds_add_user_meta_to_frame(batch.frame_meta_list.data, user)
    (address,) = nodes(frame_in_c(batch).frame_user_meta_list)
    c = structure("NvDsInferTensorMeta").from_address(User.from_address(address).user_meta_data)
    assert (c.unique_id, c.num_output_layers) == (4, 1)
    layer = data.CLayer.from_address(c.output_layers_info)
    assert (layer.layerName, layer.numDims, list(layer.d)[:2]) == (b"scores", 2, [2, 3])
    host = VOID.from_address(c.out_buf_ptrs_host).value
    assert list((ctypes.c_float * 6).from_address(host or 0)) == [0, 1, 2, 3, 4, 5]


def test_what_is_held_outlives_the_batch(gst: Any) -> None:
    batch = new_batch()
    tree_of(batch)
    frame = batch.frame_meta_list.data
    car, plate = items(frame, "obj_meta_list")
    del batch
    assert not is_view(frame)
    assert [o.obj_label for o in items(frame, "obj_meta_list")] == ["car", "plate"]
    assert plate.parent is car
    assert pyds.get_string(car.text_params.display_text) == "car 1"
    assert data._entries == {}


def test_a_copy_in_python_has_the_fields_of_c(batch: Any) -> None:
    address = nodes(frame_in_c(batch).obj_meta_list)[1]
    Object.from_address(address).obj_label = b"bus"
    copy = pyds.nvds_batch_meta_copy_func(batch)
    car, plate = items(copy.frame_meta_list.data, "obj_meta_list")
    assert (car.obj_label, plate.parent is car, is_view(car)) == ("bus", True, False)
    assert pyds.get_string(plate.text_params.display_text) == "plate 1"


def test_objects_move_to_another_batch(gst: Any) -> None:
    batch = new_batch()
    tree_of(batch)
    whole = pyds.nvds_create_batch_meta(1)
    one = pyds.nvds_acquire_frame_meta_from_pool(whole)
    for obj in items(batch.frame_meta_list.data, "obj_meta_list"):
        items(one, "obj_meta_list").append(obj)
    pyds.nvds_add_frame_meta_to_batch(whole, one)
    del batch, obj
    second, first = (Object.from_address(a) for a in nodes(frame_in_c(whole).obj_meta_list))
    assert (first.obj_label, second.obj_label) == (b"car", b"plate")
    assert second.parent == ctypes.addressof(first)


def test_masks_and_classifiers_travel(batch: Any) -> None:
    car = next(iter(items(batch.frame_meta_list.data, "obj_meta_list")))
    mask = car.mask_params
    mask.data = np.full((2, 3), 0.75, np.float32)
    mask.size, mask.width, mask.height = 24, 3, 2
    meta = pyds.nvds_acquire_classifier_meta_from_pool(batch)
    meta.unique_component_id = 2
    label = pyds.nvds_acquire_label_info_meta_from_pool(batch)
    label.result_label, label.result_prob = "red", 0.25
    pyds.nvds_add_label_info_meta_to_classifier(meta, label)
    pyds.nvds_add_classifier_meta_to_object(car, meta)
    c = Object.from_address(nodes(frame_in_c(batch).obj_meta_list)[1])
    assert list((ctypes.c_float * 6).from_address(c.mask_params.data)) == [0.75] * 6
    (address,) = nodes(c.classifier_meta_list)
    classifier = structure("NvDsClassifierMeta").from_address(address)
    assert (classifier.num_labels, classifier.unique_component_id) == (1, 2)
    (address,) = nodes(classifier.label_info_list)
    assert structure("NvDsLabelInfo").from_address(address).result_label == b"red"
    assert car.mask_params.data.tolist() == [0.75] * 6
