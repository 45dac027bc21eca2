"""Functions of the module: lists, pools, memory, images."""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from headrace.gstreamer.pyds.analytics import FIXED_TYPES
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import (
    NVDS_START_USER_META,
    GList,
    NvDsBatchMeta,
    NvDsClassifierMeta,
    NvDsDisplayMeta,
    NvDsFrameMeta,
    NvDsLabelInfo,
    NvDsMetaType,
    NvDsObjectMeta,
    NvDsUserMeta,
    items,
)
from headrace.gstreamer.pyds.struct import (
    Struct,
    Text,
    allocate,
    duplicate,
    free,
    function,
    text_at,
)

M = TypeVar("M", bound=Struct)


def gst_buffer_get_nvds_batch_meta(address: int) -> NvDsBatchMeta | None:
    """Return the metadata of a buffer, by `hash(buffer)`; None if it has none."""
    batch_meta: NvDsBatchMeta | None = bridge().get(address)
    return batch_meta


def nvds_acquire_meta_lock(batch: NvDsBatchMeta) -> None:
    """Keep other threads from changing the metadata."""
    batch.meta_mutex.acquire()


def nvds_release_meta_lock(batch: NvDsBatchMeta) -> None:
    """Let other threads change the metadata again."""
    batch.meta_mutex.release()


def _acquire(kind: type[M], meta_type: NvDsMetaType, batch: NvDsBatchMeta) -> M:
    meta = kind()
    base = vars(kind)["base_meta"].__get__(meta, kind)
    base.batch_meta, base.meta_type = batch, meta_type
    return meta


def nvds_acquire_frame_meta_from_pool(batch: NvDsBatchMeta) -> NvDsFrameMeta:
    """Make metadata of a frame; `nvds_add_frame_meta_to_batch` adds it."""
    return _acquire(NvDsFrameMeta, NvDsMetaType.NVDS_FRAME_META, batch)


def nvds_acquire_obj_meta_from_pool(batch: NvDsBatchMeta) -> NvDsObjectMeta:
    """Make metadata of an object; `nvds_add_obj_meta_to_frame` adds it."""
    return _acquire(NvDsObjectMeta, NvDsMetaType.NVDS_OBJ_META, batch)


def nvds_acquire_classifier_meta_from_pool(batch: NvDsBatchMeta) -> NvDsClassifierMeta:
    """Make the result of a classifier."""
    return _acquire(NvDsClassifierMeta, NvDsMetaType.NVDS_CLASSIFIER_META, batch)


def nvds_acquire_label_info_meta_from_pool(batch: NvDsBatchMeta) -> NvDsLabelInfo:
    """Make an attribute of a classifier's result."""
    return _acquire(NvDsLabelInfo, NvDsMetaType.NVDS_LABEL_INFO_META, batch)


def nvds_acquire_display_meta_from_pool(batch: NvDsBatchMeta) -> NvDsDisplayMeta:
    """Make figures and texts to be drawn."""
    return _acquire(NvDsDisplayMeta, NvDsMetaType.NVDS_DISPLAY_META, batch)


def nvds_acquire_user_meta_from_pool(batch: NvDsBatchMeta) -> NvDsUserMeta:
    """Make metadata of an application's own."""
    return _acquire(NvDsUserMeta, NvDsMetaType.NVDS_USER_META, batch)


def nvds_add_frame_meta_to_batch(batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> None:
    """Add a frame to a batch."""
    frame.base_meta.batch_meta = batch
    items(batch, "frame_meta_list").append(frame)


def nvds_add_obj_meta_to_frame(
    frame: NvDsFrameMeta, obj: NvDsObjectMeta, parent: NvDsObjectMeta | None
) -> None:
    """Add an object to a frame, found inside of `parent` if that is given."""
    obj.parent = parent
    items(frame, "obj_meta_list").append(obj)


def nvds_add_classifier_meta_to_object(obj: NvDsObjectMeta, meta: NvDsClassifierMeta) -> None:
    """Add a classifier's result to an object."""
    items(obj, "classifier_meta_list").append(meta)


def nvds_add_label_info_meta_to_classifier(meta: NvDsClassifierMeta, info: NvDsLabelInfo) -> None:
    """Add an attribute to a classifier's result."""
    items(meta, "label_info_list").append(info)


def nvds_add_display_meta_to_frame(frame: NvDsFrameMeta, meta: NvDsDisplayMeta) -> None:
    """Add figures and texts to a frame."""
    items(frame, "display_meta_list").append(meta)


def nvds_add_user_meta_to_batch(batch: NvDsBatchMeta, meta: NvDsUserMeta) -> None:
    """Attach metadata of an application's own to a batch."""
    items(batch, "batch_user_meta_list").append(meta)


def nvds_add_user_meta_to_frame(frame: NvDsFrameMeta, meta: NvDsUserMeta) -> None:
    """Attach metadata of an application's own to a frame."""
    items(frame, "frame_user_meta_list").append(meta)


def nvds_add_user_meta_to_obj(obj: NvDsObjectMeta, meta: NvDsUserMeta) -> None:
    """Attach metadata of an application's own to an object."""
    items(obj, "obj_user_meta_list").append(meta)


def nvds_remove_frame_meta_from_batch(batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> None:
    """Take a frame out of a batch."""
    items(batch, "frame_meta_list").remove(frame)


def nvds_remove_obj_meta_from_frame(frame: NvDsFrameMeta, obj: NvDsObjectMeta) -> None:
    """Take an object out of a frame; children of it have no parent then."""
    objects = items(frame, "obj_meta_list")
    if objects.remove(obj):
        for other in objects:
            if other.parent is obj:
                other.parent = None


def nvds_remove_classifier_meta_from_obj(obj: NvDsObjectMeta, meta: NvDsClassifierMeta) -> None:
    """Take a classifier's result out of an object."""
    items(obj, "classifier_meta_list").remove(meta)


def nvds_remove_label_info_meta_from_classifier(
    meta: NvDsClassifierMeta, info: NvDsLabelInfo
) -> None:
    """Take an attribute out of a classifier's result."""
    items(meta, "label_info_list").remove(info)


def nvds_remove_display_meta_from_frame(frame: NvDsFrameMeta, meta: NvDsDisplayMeta) -> None:
    """Take figures and texts out of a frame."""
    items(frame, "display_meta_list").remove(meta)


def nvds_remove_user_meta_from_batch(batch: NvDsBatchMeta, meta: NvDsUserMeta) -> None:
    """Take metadata of an application's own out of a batch."""
    items(batch, "batch_user_meta_list").remove(meta)


def nvds_remove_user_meta_from_frame(frame: NvDsFrameMeta, meta: NvDsUserMeta) -> None:
    """Take metadata of an application's own out of a frame."""
    items(frame, "frame_user_meta_list").remove(meta)


def nvds_remove_user_meta_from_object(obj: NvDsObjectMeta, meta: NvDsUserMeta) -> None:
    """Take metadata of an application's own out of an object."""
    items(obj, "obj_user_meta_list").remove(meta)


def nvds_clear_frame_meta_list(batch: NvDsBatchMeta, nodes: GList | None) -> None:
    """Take all frames out of a batch."""
    items(batch, "frame_meta_list").clear()


def nvds_clear_obj_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None:
    """Take all objects out of a frame."""
    items(frame, "obj_meta_list").clear()


def nvds_clear_display_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None:
    """Take all figures and texts out of a frame."""
    items(frame, "display_meta_list").clear()


def nvds_clear_batch_user_meta_list(batch: NvDsBatchMeta, nodes: GList | None) -> None:
    """Take all metadata of an application's own out of a batch."""
    items(batch, "batch_user_meta_list").clear()


def nvds_clear_frame_user_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None:
    """Take all metadata of an application's own out of a frame."""
    items(frame, "frame_user_meta_list").clear()


def nvds_clear_obj_user_meta_list(obj: NvDsObjectMeta, nodes: GList | None) -> None:
    """Take all metadata of an application's own out of an object."""
    items(obj, "obj_user_meta_list").clear()


def nvds_get_nth_frame_meta(nodes: GList | None, index: int) -> NvDsFrameMeta | None:
    """Return a frame by its place in the list; None beyond its end."""
    for _ in range(index):
        nodes = None if nodes is None else nodes.next
    return None if nodes is None else nodes.data


def nvds_get_user_meta_type(name: str) -> int:
    """Return the number of a type of an application's own, the same for each name, also in C."""
    if name in FIXED_TYPES:
        return FIXED_TYPES[name]
    quark = ctypes.CDLL("libglib-2.0.so.0").g_quark_from_string
    return NVDS_START_USER_META + int(
        function(quark, ctypes.c_uint32, ctypes.c_char_p)(name.encode())
    )


def get_string(address: int) -> str | None:
    """Read the text at an address; None at 0."""
    return text_at(address)


def alloc_buffer(size: int) -> int:
    """Return the address of `size` zeroed bytes; `free_buffer` gives them back."""
    return allocate(size)


alloc_char_buffer = alloc_buffer


def free_buffer(address: int) -> None:
    """Give back memory of `alloc_buffer`."""
    free(address)


free_gbuffer = free_buffer


def strdup(address: int) -> int:
    """Copy the text at an address; returns the address of the copy."""
    return duplicate(ctypes.string_at(address)) if address else 0


def strdup2str(address: int) -> str | None:
    """Read the text at an address."""
    return text_at(address)


def memdup(address: int, size: int) -> int:
    """Copy bytes; returns the address of the copy."""
    copy = allocate(size)
    ctypes.memmove(copy, address, size)
    return copy


def get_ptr(value: Any) -> int:
    """Return the address of an array or a buffer; an address is returned as it is."""
    if isinstance(value, np.ndarray):
        return int(value.__array_interface__["data"][0])
    return int(value)


def image_pixels(caller: str, address: int, batch_id: int) -> npt.NDArray[np.uint8]:
    """Return the image of a frame as RGBA; writes change the image.

    Args:
        caller: for the message.
        address: `hash(buffer)`.
        batch_id: of the frame's metadata.

    Returns:
        (height, width, 4) uint8, a view.

    Raises:
        RuntimeError: the buffer has no such frame.
    """
    batch = gst_buffer_get_nvds_batch_meta(address)
    if batch is None:
        raise RuntimeError(f"{caller}: the buffer has no batch metadata")
    if not 0 <= batch_id < len(batch.surfaces):
        raise RuntimeError(f"{caller}: batch_id {batch_id} of {len(batch.surfaces)} frames")
    pixels: npt.NDArray[np.uint8] = batch.surfaces[batch_id].rgba()
    return pixels


def get_nvds_buf_surface(address: int, batch_id: int) -> npt.NDArray[np.uint8]:
    """Return the image of a frame as RGBA; writes change the image.

    Args:
        address: `hash(buffer)`.
        batch_id: of the frame's metadata.

    Returns:
        (height, width, 4) uint8, a view.

    Raises:
        RuntimeError: the buffer has no such frame.
    """
    return image_pixels("get_nvds_buf_surface", address, batch_id)


def unmap_nvds_buf_surface(address: int, batch_id: int) -> None:
    """Do nothing: images lie in main memory."""


def nvds_measure_buffer_latency(address: int) -> int:
    """Return 0: latencies are not measured."""
    return 0


def configure_source_for_ntp_sync(address: int) -> None:
    """Let an `rtspsrc` note the sender's time on its buffers.

    Frames have it as `ntp_timestamp` where `attach-sys-ts` of `nvstreammux` is off.

    Args:
        address: `hash(element)`; elements of other types stay as they are.
    """
    library = ctypes.CDLL("libgstreamer-1.0.so.0")
    put = function(
        library.gst_util_set_object_arg, None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p
    )
    put(address, b"add-reference-timestamp-meta", b"true")


class CustomDataStruct(Struct):
    """The structure of the sample for data of an application's own."""

    structId = 0
    message = Text()
    sampleInt = 0


def alloc_custom_struct(meta: NvDsUserMeta | None = None) -> CustomDataStruct:
    """Make the sample's structure; `meta` is the one that it will be attached to."""
    return CustomDataStruct()


def _cast(data: Any) -> Any:
    return data


glist_get_nvds_batch_meta = glist_get_nvds_frame_meta = glist_get_nvds_object_meta = _cast
glist_get_nvds_user_meta = glist_get_nvds_classifier_meta = glist_get_nvds_display_meta = _cast
glist_get_nvds_label_info = glist_get_nvds_tensor_meta = _cast
