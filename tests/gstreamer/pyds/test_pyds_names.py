"""Names of pyds 1.2.0: all of them are there, and do what they say."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from docs._ext.pyds_names import Row, files_of_tests, missing, rows
from headrace.gstreamer import pyds

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_name_is_there_and_tested(row: Row) -> None:
    assert missing(row) == []
    assert files_of_tests(row) != [], "write a test that uses it"


def test_every_value_stands_in_the_module_too() -> None:
    values = [(row.name, part) for row in ROWS if row.kind == "enum" for part in row.parts]
    assert len(values) == 126
    for owner, part in values:
        name = part.partition("=")[0]
        assert getattr(pyds, name) is getattr(getattr(pyds, owner), name)


def test_old_names_are_the_new_ones() -> None:
    assert pyds.NvDsPastFrameObjBatch is pyds.NvDsTargetMiscDataBatch
    assert pyds.NvDsPastFrameObjStream is pyds.NvDsTargetMiscDataStream
    assert pyds.NvDsPastFrameObjList is pyds.NvDsTargetMiscDataObject
    assert pyds.NvDsPastFrameObj is pyds.NvDsTargetMiscDataFrame


def test_old_forms_of_calls() -> None:
    assert isinstance(pyds.alloc_nvds_event_msg_meta(), pyds.NvDsEventMsgMeta)
    assert isinstance(pyds.alloc_custom_struct(), pyds.CustomDataStruct)
    pyds.register_user_copyfunc(lambda meta, data: data)
    pyds.register_user_releasefunc(lambda meta, data: None)
    pyds.set_user_copyfunc(pyds.NvDsUserMeta(), lambda meta, data: data)
    pyds.set_user_releasefunc(pyds.NvDsUserMeta(), lambda meta, data: None)
    pyds.unset_callback_funcs()


def test_allocated_structures_are_theirs() -> None:
    for call, kind in (
        (pyds.alloc_nvds_vehicle_object, pyds.NvDsVehicleObject),
        (pyds.alloc_nvds_person_object, pyds.NvDsPersonObject),
        (pyds.alloc_nvds_face_object, pyds.NvDsFaceObject),
        (pyds.alloc_nvds_event, pyds.NvDsEvent),
        (pyds.alloc_nvds_payload, pyds.NvDsPayload),
    ):
        assert type(call()) is kind


def test_casts_of_nodes_give_their_data() -> None:
    frame = pyds.NvDsFrameMeta()
    for cast in (
        pyds.glist_get_nvds_batch_meta, pyds.glist_get_nvds_frame_meta,
        pyds.glist_get_nvds_object_meta, pyds.glist_get_nvds_user_meta,
        pyds.glist_get_nvds_classifier_meta, pyds.glist_get_nvds_display_meta,
        pyds.glist_get_nvds_label_info, pyds.glist_get_nvds_tensor_meta,
        pyds.glist_get_nvds_Surface_Params, pyds.glist_get_nvds_event_msg_meta,
        pyds.glist_get_nvds_vehicle_object, pyds.glist_get_nvds_person_object,
    ):  # fmt: skip
        assert cast(frame) is frame


def test_memory_of_c() -> None:
    address = pyds.alloc_char_buffer(8)
    ctypes.memmove(address, b"parcel\0", 7)
    copies = pyds.strdup(address), pyds.memdup(address, 7)
    assert [pyds.get_string(copy) for copy in copies] == ["parcel", "parcel"]
    assert pyds.strdup2str(address) == "parcel"
    assert pyds.get_ptr(address) == address
    for copy in (address, *copies):
        pyds.free_gbuffer(copy)


def _past() -> Any:
    box = pyds.NvDsTargetMiscDataFrame()
    box.frameNum, box.age, box.tBbox.left = 7, 2, 4.5
    obj = pyds.NvDsTargetMiscDataObject([box])
    obj.uniqueId, obj.objLabel = 3, "parcel"
    return pyds.NvDsTargetMiscDataBatch([pyds.NvDsTargetMiscDataStream([obj])])


def test_past_frames_are_walked_by_their_classes() -> None:
    batch = pyds.NvDsTargetMiscDataBatch.cast(_past())
    (stream,) = pyds.NvDsTargetMiscDataBatch.list(batch)
    (obj,) = pyds.NvDsTargetMiscDataStream.list(stream)
    (frame,) = pyds.NvDsTargetMiscDataObject.list(obj)
    assert (batch.numFilled, stream.numFilled, obj.numObj, obj.uniqueId) == (1, 1, 1, 3)
    assert (frame.frameNum, frame.tBbox.left, frame.age) == (7, 4.5, 2)


def test_features_of_a_look() -> None:
    features = pyds.NvDsObjReid([0.5, 0.25])
    assert features.featureSize == 2
    np.testing.assert_array_equal(features.get_host_reid_vector(), np.float32([0.5, 0.25]))


def test_vectors_of_optical_flow() -> None:
    meta = pyds.NvDsOpticalFlowMeta()
    meta.rows, meta.cols, meta.data = 1, 2, np.arange(4).reshape(1, 2, 2)
    np.testing.assert_array_equal(pyds.get_optical_flow_vectors(meta), np.float32([0, 1, 2, 3]))
    meta.rows = 3
    with pytest.raises(ValueError, match="4 values, 12 expected"):
        pyds.get_optical_flow_vectors(meta)


def _surface(width: int = 4, height: int = 2, number: int = 2) -> Any:
    params, surface = pyds.NvBufSurfaceCreateParams(), pyds.NvBufSurface()
    params.width, params.height = width, height
    params.colorFormat = pyds.NVBUF_COLOR_FORMAT_RGBA
    assert pyds.NvBufSurfaceCreate(surface, number, params) == 0
    return surface


def _bytes(image: Any) -> bytes:
    return ctypes.string_at(image.dataPtr, image.dataSize)


def test_a_buffer_of_images_lies_in_main_memory() -> None:
    surface, copy = _surface(), _surface()
    first = surface.surfaceList
    assert (first.width, first.height, first.pitch, first.dataSize) == (4, 2, 16, 32)
    assert pyds.NvBufSurfaceMap(surface, 0, 0, pyds.NVBUF_MAP_READ_WRITE) == 0
    assert first.mappedAddr.addr[0] == first.dataPtr
    assert surface.surfaces[1].mappedAddr.addr[0] == 0
    assert pyds.NvBufSurfaceMemSet(surface, 1, 0, 9) == 0
    assert [_bytes(one) for one in surface.surfaces] == [bytes(32), b"\x09" * 32]
    assert pyds.NvBufSurfaceCopy(surface, copy) == 0
    assert _bytes(copy.surfaces[1]) == b"\x09" * 32
    assert pyds.NvBufSurfaceSyncForCpu(surface, -1, -1) == 0
    assert pyds.NvBufSurfaceSyncForDevice(surface, -1, -1) == 0
    assert pyds.NvBufSurfaceUnMap(surface, -1, -1) == 0
    assert first.mappedAddr.addr[0] == 0
    assert pyds.NvBufSurfaceDestroy(surface) == 0
    assert surface.surfaceList is None


def test_a_buffer_refuses_what_does_not_fit() -> None:
    surface = _surface()
    assert pyds.NvBufSurfaceMap(surface, 2, 0, pyds.NVBUF_MAP_READ) == -1
    assert pyds.NvBufSurfaceCopy(surface, _surface(number=1)) == -1
    assert pyds.NvBufSurfaceCopy(surface, _surface(width=8)) == -1
    params = pyds.NvBufSurfaceCreateParams()
    params.width, params.height, params.colorFormat = 4, 2, pyds.NVBUF_COLOR_FORMAT_NV12
    assert pyds.NvBufSurfaceCreate(pyds.NvBufSurface(), 1, params) == -1
    with pytest.raises(RuntimeError, match="hardware buffer 5"):
        pyds.NvBufSurfaceFromFd(5, None)
    with pytest.raises(RuntimeError, match="main memory"):
        pyds.NvBufSurfaceMapEglImage(surface, 0)


def test_buffers_take_user_metadata_instead_of_metadata_of_their_own() -> None:
    with pytest.raises(TypeError, match="nvds_add_user_meta_to_frame"):
        pyds.gst_buffer_add_nvds_meta(None, None, None, None, None)


def _batch() -> Any:
    batch = pyds.nvds_create_batch_meta(4)
    frame = pyds.nvds_acquire_frame_meta_from_pool(batch)
    frame.frame_num = 8
    pyds.nvds_add_frame_meta_to_batch(batch, frame)
    vehicle = pyds.nvds_acquire_obj_meta_from_pool(batch)
    vehicle.obj_label, vehicle.rect_params.left = "vehicle", 5.0
    vehicle.text_params.display_text = "a van"
    pyds.nvds_add_obj_meta_to_frame(frame, vehicle, None)
    plate = pyds.nvds_acquire_obj_meta_from_pool(batch)
    plate.obj_label = "plate"
    pyds.nvds_add_obj_meta_to_frame(frame, plate, vehicle)
    kind = pyds.nvds_acquire_classifier_meta_from_pool(batch)
    info = pyds.nvds_acquire_label_info_meta_from_pool(batch)
    info.result_label = "white"
    pyds.nvds_add_label_info_meta_to_classifier(kind, info)
    pyds.nvds_add_classifier_meta_to_object(vehicle, kind)
    display = pyds.nvds_acquire_display_meta_from_pool(batch)
    display.num_labels, display.text_params[0].display_text = 1, "hello"
    pyds.nvds_add_display_meta_to_frame(frame, display)
    user = pyds.nvds_acquire_user_meta_from_pool(batch)
    user.user_meta_data = [1]
    pyds.user_copyfunc(user, lambda meta, data: [*meta.user_meta_data, 2])
    pyds.nvds_add_user_meta_to_frame(frame, user)
    return batch


def test_a_copy_of_a_batch_is_its_own() -> None:
    batch = _batch()
    user = pyds.nvds_acquire_user_meta_from_pool(batch)
    user.user_meta_data = shared = object()
    pyds.nvds_add_user_meta_to_batch(batch, user)
    copy = pyds.nvds_batch_meta_copy_func(batch, None)
    frame = copy.frame_meta_list.data
    vehicle, plate = frame.obj_meta_list.data, frame.obj_meta_list.next.data
    assert frame.frame_num == 8
    assert frame.base_meta.batch_meta is copy
    assert (vehicle.obj_label, vehicle.rect_params.left) == ("vehicle", 5.0)
    assert pyds.get_string(vehicle.text_params.display_text) == "a van"
    assert plate.parent is vehicle
    assert vehicle.classifier_meta_list.data.label_info_list.data.result_label == "white"
    display = frame.display_meta_list.data
    assert pyds.get_string(display.text_params[0].display_text) == "hello"
    assert frame.frame_user_meta_list.data.user_meta_data == [1, 2]
    assert copy.batch_user_meta_list.data.user_meta_data is shared
    vehicle.rect_params.left = 6.0
    assert batch.frame_meta_list.data.obj_meta_list.data.rect_params.left == 5.0


def test_lists_are_copied_one_by_one() -> None:
    batch, other = _batch(), pyds.nvds_create_batch_meta(1)
    source = pyds.nvds_get_nth_frame_meta(batch.frame_meta_list, 0)
    pyds.nvds_copy_frame_meta_list(batch.frame_meta_list, other)
    target = other.frame_meta_list.data
    pyds.nvds_copy_obj_meta_list(source.obj_meta_list, target)
    pyds.nvds_copy_display_meta_list(source.display_meta_list, target)
    pyds.nvds_copy_frame_user_meta_list(source.frame_user_meta_list, target)
    assert target.num_obj_meta == 4
    assert target.display_meta_list.next is not None
    assert target.frame_user_meta_list.next is not None
    user = pyds.NvDsUserMeta()
    pyds.nvds_add_user_meta_to_batch(batch, user)
    pyds.nvds_copy_batch_user_meta_list(batch.batch_user_meta_list, other)
    assert other.batch_user_meta_list.data is not user


def test_lists_are_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    batch = _batch()
    assert pyds.nvds_get_current_metadata_info(batch)
    assert "1 of 4 frames, 2 objects" in capsys.readouterr().out
    frame = batch.frame_meta_list.data
    vehicle = frame.obj_meta_list.data
    pyds.nvds_add_user_meta_to_obj(vehicle, pyds.NvDsUserMeta())
    pyds.nvds_clear_obj_user_meta_list(vehicle, vehicle.obj_user_meta_list)
    pyds.nvds_clear_frame_user_meta_list(frame, frame.frame_user_meta_list)
    pyds.nvds_clear_display_meta_list(frame, frame.display_meta_list)
    pyds.nvds_clear_obj_meta_list(frame, frame.obj_meta_list)
    pyds.nvds_clear_batch_user_meta_list(batch, batch.batch_user_meta_list)
    assert (vehicle.obj_user_meta_list, frame.frame_user_meta_list) == (None, None)
    assert (frame.display_meta_list, frame.obj_meta_list) == (None, None)
    pyds.nvds_clear_meta_list(batch, batch.frame_meta_list, batch.frame_meta_pool)
    assert batch.frame_meta_list is None
    for clear in (pyds.nvds_clear_frame_meta_list,):
        clear(batch, None)
    pyds.nvds_batch_meta_release_func(batch, None)
    assert pyds.nvds_destroy_batch_meta(batch)


def test_items_are_removed_one_by_one() -> None:
    batch = _batch()
    frame = batch.frame_meta_list.data
    vehicle = frame.obj_meta_list.data
    kind, user = vehicle.classifier_meta_list.data, pyds.NvDsUserMeta()
    pyds.nvds_remove_label_info_meta_from_classifier(kind, kind.label_info_list.data)
    pyds.nvds_remove_classifier_meta_from_obj(vehicle, kind)
    pyds.nvds_remove_display_meta_from_frame(frame, frame.display_meta_list.data)
    pyds.nvds_remove_user_meta_from_frame(frame, frame.frame_user_meta_list.data)
    pyds.nvds_add_user_meta_to_obj(vehicle, user)
    pyds.nvds_remove_user_meta_from_object(vehicle, user)
    pyds.nvds_add_user_meta_to_batch(batch, user)
    pyds.nvds_remove_user_meta_from_batch(batch, user)
    assert kind.num_labels == 0
    assert (vehicle.classifier_meta_list, vehicle.obj_user_meta_list) == (None, None)
    assert (frame.display_meta_list, frame.frame_user_meta_list) == (None, None)
    assert batch.batch_user_meta_list is None
    pyds.nvds_remove_frame_meta_from_batch(batch, frame)
    assert batch.num_frames_in_batch == 0
