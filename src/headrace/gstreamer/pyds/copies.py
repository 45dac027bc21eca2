"""Copies of metadata: whole batches and lists of them, and batches that an application makes."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from headrace.gstreamer.pyds.functions import (
    nvds_add_display_meta_to_frame,
    nvds_add_frame_meta_to_batch,
    nvds_add_obj_meta_to_frame,
    nvds_add_user_meta_to_batch,
    nvds_add_user_meta_to_frame,
)
from headrace.gstreamer.pyds.meta import (
    GList,
    MetaList,
    NvDsBaseMeta,
    NvDsBatchMeta,
    NvDsDisplayMeta,
    NvDsFrameMeta,
    NvDsMetaPool,
    NvDsMetaType,
    NvDsObjectMeta,
    NvDsUserMeta,
    items,
)
from headrace.gstreamer.pyds.osd import Elements
from headrace.gstreamer.pyds.struct import Struct, plain_kind

S = TypeVar("S", bound=Struct)


def _copied(source: S, batch: NvDsBatchMeta) -> S:
    """A copy of a structure with its lists, in another batch; objects keep their parents."""
    if isinstance(source, NvDsUserMeta):
        return cast("S", _copied_user(source, batch))
    copy = plain_kind(source)()
    fields = source._written()
    lists = {name: v for name, v in fields.items() if isinstance(v, MetaList)}
    for name, value in fields.items():
        if name == "base_meta":
            base: NvDsBaseMeta = getattr(copy, name)
            base.meta_type, base.batch_meta = value.meta_type, batch
        elif isinstance(getattr(type(copy), name, None), Elements):
            for index, one in enumerate(list.__iter__(value)):  # those that were touched
                if one is not None:
                    getattr(copy, name)[index].copy_from(one)
        elif name not in lists:
            part = Struct()
            vars(part)[name] = list(value) if isinstance(value, list) else value
            copy.copy_from(part)
    for name, values in lists.items():
        parts = items(copy, name)
        for one in values:
            parts.append(_copied(one, batch))
    return copy


def _copied_user(source: NvDsUserMeta, batch: NvDsBatchMeta) -> NvDsUserMeta:
    """A copy of an application's own metadata: by its function, else the same data."""
    copy, base = NvDsUserMeta(), source.base_meta
    own: NvDsBaseMeta = copy.base_meta
    own.batch_meta, own.meta_type, own.uContext = batch, base.meta_type, base.uContext
    copy.user_meta_data = source.user_meta_data
    if base.copy_func is not None:
        copy.user_meta_data = base.copy_func(source, None)
        own.copy_func, own.release_func = base.copy_func, base.release_func
    return copy


def _nodes(first: GList | None) -> list[Any]:
    values = []
    while first is not None:
        values.append(first.data)
        first = first.next
    return values


def nvds_copy_obj_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None:
    """Add copies of objects to a frame; parents among them become parents of the copies."""
    copies: dict[int, NvDsObjectMeta] = {}
    for obj in _nodes(nodes):
        copy = _copied(obj, frame.base_meta.batch_meta)
        copies[id(obj)] = copy
        parent = None if obj.parent is None else copies.get(id(obj.parent), obj.parent)
        nvds_add_obj_meta_to_frame(frame, copy, parent)


def nvds_copy_display_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None:
    """Add copies of figures and texts to a frame."""
    for display in _nodes(nodes):
        copy: NvDsDisplayMeta = _copied(display, frame.base_meta.batch_meta)
        nvds_add_display_meta_to_frame(frame, copy)


def nvds_copy_frame_user_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None:
    """Add copies of an application's own metadata to a frame."""
    for user in _nodes(nodes):
        nvds_add_user_meta_to_frame(frame, _copied_user(user, frame.base_meta.batch_meta))


def nvds_copy_batch_user_meta_list(nodes: GList | None, batch: NvDsBatchMeta) -> None:
    """Add copies of an application's own metadata to a batch."""
    for user in _nodes(nodes):
        nvds_add_user_meta_to_batch(batch, _copied_user(user, batch))


def nvds_copy_frame_meta_list(nodes: GList | None, batch: NvDsBatchMeta) -> None:
    """Add copies of frames, with their objects, to a batch."""
    for frame in _nodes(nodes):
        copy = _copied(_without_lists(frame), batch)
        nvds_add_frame_meta_to_batch(batch, copy)
        nvds_copy_obj_meta_list(frame.obj_meta_list, copy)
        nvds_copy_display_meta_list(frame.display_meta_list, copy)
        nvds_copy_frame_user_meta_list(frame.frame_user_meta_list, copy)


def _without_lists(frame: NvDsFrameMeta) -> NvDsFrameMeta:
    plain = NvDsFrameMeta()
    fields = {k: v for k, v in frame._written().items() if not isinstance(v, MetaList)}
    vars(plain).update(fields)
    return plain


def nvds_create_batch_meta(max_batch_size: int) -> NvDsBatchMeta:
    """Make the metadata of a batch without frames."""
    batch = NvDsBatchMeta()
    batch.max_frames_in_batch = max_batch_size
    batch.base_meta.meta_type = NvDsMetaType.NVDS_BATCH_META
    batch.base_meta.batch_meta = batch
    return batch


def nvds_destroy_batch_meta(batch: NvDsBatchMeta) -> bool:
    """Take all frames and metadata out of a batch; returns True."""
    items(batch, "frame_meta_list").clear()
    items(batch, "batch_user_meta_list").clear()
    return True


def nvds_batch_meta_copy_func(batch: NvDsBatchMeta, user_data: object = None) -> NvDsBatchMeta:
    """Copy a batch with all frames, objects and metadata; the images are the same."""
    copy = nvds_create_batch_meta(batch.max_frames_in_batch)
    copy.misc_batch_info, copy.surfaces = list(batch.misc_batch_info), batch.surfaces
    nvds_copy_frame_meta_list(batch.frame_meta_list, copy)
    nvds_copy_batch_user_meta_list(batch.batch_user_meta_list, copy)
    return copy


def nvds_batch_meta_release_func(batch: NvDsBatchMeta, user_data: object = None) -> None:
    """Take all frames and metadata out of a batch."""
    nvds_destroy_batch_meta(batch)


def nvds_clear_meta_list(
    batch: NvDsBatchMeta, nodes: GList | None, pool: NvDsMetaPool | None = None
) -> None:
    """Take all items of one of a batch's own lists out of it."""
    for name in ("frame_meta_list", "batch_user_meta_list"):
        own = items(batch, name)
        if nodes is not None and own.first is nodes:
            own.clear()


def nvds_get_current_metadata_info(batch: NvDsBatchMeta) -> bool:
    """Print how many frames and objects a batch holds; returns True."""
    frames = list(items(batch, "frame_meta_list"))
    objects = sum(frame.num_obj_meta for frame in frames)
    print(f"batch: {len(frames)} of {batch.max_frames_in_batch} frames, {objects} objects")
    return True


def gst_buffer_add_nvds_meta(buffer: object, *arguments: object) -> None:
    """Refuse: `nvstreammux` makes the one metadata of a buffer.

    The original's bindings take no buffer of Python's either.

    Raises:
        TypeError: always.
    """
    raise TypeError(
        "gst_buffer_add_nvds_meta takes no buffer of Python's; "
        "nvds_add_user_meta_to_frame and nvds_add_user_meta_to_batch attach data"
    )
