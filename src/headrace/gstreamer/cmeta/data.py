"""Data of user metadata between Python and C: an address for each object of Python's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_uint, c_void_p
from dataclasses import dataclass
from threading import RLock

import numpy as np

from headrace.gstreamer.cmeta import native
from headrace.gstreamer.cmeta.layout import struct_rows, structure
from headrace.gstreamer.cmeta.views import (
    Bound,
    CStruct,
    Value,
    bind,
    detach,
    is_view,
    new_view,
    release_texts,
)
from headrace.gstreamer.pyds.analytics import NvDsAnalyticsFrameMeta, NvDsAnalyticsObjInfo
from headrace.gstreamer.pyds.inference import (
    HostPointer,
    NvDsInferSegmentationMeta,
    NvDsInferTensorMeta,
)
from headrace.gstreamer.pyds.messages import (
    NvDsEventMsgMeta,
    NvDsObjectType,
    NvDsPayload,
    NvDsPersonObject,
    NvDsVehicleObject,
)
from headrace.gstreamer.pyds.meta import NvDsMetaType, NvDsUserMeta
from headrace.gstreamer.pyds.struct import Struct

_TOKEN_BYTES = 16  # what C gets of an object that has no structure there
# Of C, and read as a class of pyds where no object of Python's lies behind the address.
_KINDS: dict[int, type[Struct]] = {
    NvDsMetaType.NVDS_EVENT_MSG_META: NvDsEventMsgMeta,
    NvDsMetaType.NVDS_PAYLOAD_META: NvDsPayload,
}
_EXTENSIONS: dict[int, type[Struct]] = {
    NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE: NvDsVehicleObject,
    NvDsObjectType.NVDS_OBJECT_TYPE_PERSON: NvDsPersonObject,
}


class CLayer(ctypes.Structure):
    """A layer of a tensor meta, as nvdsinfer.h has it."""

    _fields_ = [
        ("dataType", ctypes.c_int32), ("numDims", ctypes.c_uint32), ("d", ctypes.c_uint32 * 8),
        ("numElements", ctypes.c_uint32), ("bindingIndex", ctypes.c_int32),
        ("layerName", ctypes.c_char_p), ("buffer", ctypes.c_void_p), ("isInput", ctypes.c_int32),
    ]  # fmt: skip


@dataclass
class _Entry:
    """An object of Python's that C refers to `count` times; `parts` keep its memory."""

    value: Value
    parts: list[Value]
    count: int = 1
    copy: Callable[..., Value] | None = None
    release: Callable[..., Value] | None = None


_entries: dict[int, _Entry] = {}
_lock = RLock()


def address_of(value: Value) -> int:
    """Return the address that stands for an object in C; one more reference to it."""
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value)
    if is_view(value):
        return ctypes.addressof(value._c)
    memory, parts = _structure_of(value)
    address = memory.address if isinstance(memory, AnalyticsData) else ctypes.addressof(memory)
    with _lock:
        _entries[address] = _Entry(value, [memory, *parts])
    return address


def _structure_of(value: Value) -> tuple[CStruct | AnalyticsData, list[Value]]:
    """Lay an object out as C has it; the second part must live as long."""
    if isinstance(value, NvDsInferTensorMeta):
        return _tensors(value)
    if isinstance(value, NvDsInferSegmentationMeta):
        return _class_map(value)
    if isinstance(value, NvDsAnalyticsFrameMeta | NvDsAnalyticsObjInfo):
        return AnalyticsData(value), []
    name = type(value).__name__
    if isinstance(value, Struct) and name in struct_rows():
        c, resolver = structure(name)(), Resolver()
        bind(value, c, lambda: resolver)
        return c, [resolver]
    return ctypes.create_string_buffer(_TOKEN_BYTES), []


def _tensors(meta: NvDsInferTensorMeta) -> tuple[CStruct, list[Value]]:
    layers = [meta.output_layers_info(i) for i in range(meta.num_output_layers)]
    array = (CLayer * max(1, len(layers)))()
    pointers = (ctypes.c_void_p * max(1, len(layers)))()
    for i, (c, layer) in enumerate(zip(array, layers, strict=False)):
        c.dataType, c.bindingIndex = layer.dataType, layer.bindingIndex
        c.numDims, c.numElements = layer.dims.numDims, layer.dims.numElements
        c.d[:] = [int(size) for size in layer.dims.d]
        c.layerName, c.buffer = layer.layerName.encode(), layer.buffer
        pointers[i] = layer.buffer
    c = structure("NvDsInferTensorMeta")()
    c.unique_id, c.num_output_layers, c.gpu_id = meta.unique_id, len(layers), meta.gpu_id
    c.output_layers_info = ctypes.addressof(array)
    c.out_buf_ptrs_host = c.out_buf_ptrs_dev = ctypes.addressof(pointers)
    info = meta.network_info
    c.network_info[:] = [info.width, info.height, info.channels]
    c.maintain_aspect_ratio = int(meta.maintain_aspect_ratio)
    c.symmetric_padding = int(meta.symmetric_padding)
    return c, [array, pointers]


def _class_map(meta: NvDsInferSegmentationMeta) -> tuple[CStruct, list[Value]]:
    c, parts = structure("NvDsInferSegmentationMeta")(), []
    c.classes, c.width, c.height = int(meta.classes), int(meta.width), int(meta.height)
    for name, kind in (("class_map", np.int32), ("class_probabilities_map", np.float32)):
        if (values := getattr(meta, name)) is not None:
            parts.append(HostPointer.to(np.asarray(values, kind)))
            setattr(c, name, int(parts[-1]))
    return c, parts


class AnalyticsData:
    """Results of analytics in containers of C++, which live as long as this.

    Attributes:
        address: of `NvDsAnalyticsFrameMeta` or `NvDsAnalyticsObjInfo`.
    """

    def __init__(self, value: NvDsAnalyticsFrameMeta | NvDsAnalyticsObjInfo) -> None:
        self._kind = "frame" if isinstance(value, NvDsAnalyticsFrameMeta) else "object"
        if isinstance(value, NvDsAnalyticsFrameMeta):
            new = native.call("headrace_new_frame_analytics", c_uint, result=c_void_p)
            self.address = int(new(int(value.unique_id)))
            note = native.call(
                "headrace_note_analytics", c_void_p, c_int, c_char_p, c_int, ctypes.c_uint64
            )
            for field, name in enumerate(
                ("ocStatus", "objInROIcnt", "objLCCurrCnt", "objLCCumCnt")
            ):
                for rule, count in getattr(value, name).items():
                    note(self.address, field, rule.encode(errors="replace"), 0, int(count))
            for class_id, count in value.objCnt.items():
                note(self.address, 4, b"", int(class_id), int(count))
            return
        make = native.call(
            "headrace_new_object_analytics", c_uint, c_char_p, c_char_p, result=c_void_p
        )
        self.address = int(
            make(
                int(value.unique_id),
                value.dirStatus.encode(errors="replace"),
                value.objStatus.encode(errors="replace"),
            )
        )
        add = native.call("headrace_add_analytics", c_void_p, c_int, c_char_p)
        for field, name in enumerate(("roiStatus", "ocStatus", "lcStatus")):
            for rule in getattr(value, name):
                add(self.address, field, rule.encode(errors="replace"))

    def __del__(self) -> None:
        native.call(f"headrace_free_{self._kind}_analytics", c_void_p)(self.address)


def set_functions(address: int, copy: Value, release: Value) -> None:
    """Note the functions of Python's that copy and release an object."""
    if address in _entries:
        _entries[address].copy, _entries[address].release = copy, release


def functions_of(address: int) -> tuple[Value, Value] | None:
    """Return how Python copies and releases an object; None for data of C."""
    entry = _entries.get(address)
    return None if entry is None else (entry.copy, entry.release)


def value_at(address: int, meta_type: int = -1) -> Value:
    """Return an object of Python's by its address, a view on data of C, else the address."""
    if (entry := _entries.get(address)) is not None:
        return entry.value
    kind = _KINDS.get(meta_type)
    return address if kind is None or not address else view_at(kind, address)


def view_at(kind: type[Struct], address: int) -> Value:
    """Make a view on memory of C."""
    c = structure(kind.__name__).from_address(address)
    return new_view(kind, c, lambda: RESOLVER)


class Resolver:
    """Pointers inside of data: the attributes of an event's object.

    Attributes:
        made: addresses of the values that fields point to.
    """

    batch = None

    def __init__(self) -> None:
        self.made: list[int] = []

    def address_of(self, view: Bound, name: str, value: Value) -> int:
        """Return the address of a value that a field shall point to."""
        address = address_of(value)
        if address in _entries:
            self.made.append(address)
        return address

    def value_at(self, view: Bound, name: str, address: int) -> Value:
        """Return the value that a field points to."""
        if name == "extMsg" and address not in _entries:
            kind = _EXTENSIONS.get(int(view.objType))
            return address if kind is None else view_at(kind, address)
        return value_at(address)


RESOLVER = Resolver()
_User = structure("NvDsUserMeta")


def _copy_user(user: int, _: object) -> int:
    data = _User.from_address(user).user_meta_data
    with _lock:
        entry = _entries.get(data or 0)
        if entry is None:
            return 0
        if entry.copy is None:
            entry.count += 1
            return int(data or 0)
        holder = NvDsUserMeta()
        holder.user_meta_data = entry.value
        address = address_of(entry.copy(holder, None))
        set_functions(address, entry.copy, entry.release)
        return address


def _drop(address: int) -> None:
    """Let an object go that C refers to no more, and those that its fields point to."""
    entry = _entries.pop(address, None)
    if entry is None:
        return
    made = [a for part in entry.parts if isinstance(part, Resolver) for a in part.made]
    if is_view(entry.value):
        c = entry.value._c
        release_texts(type(detach(entry.value)), c)
    for inner in made:
        _drop(inner)


def _release_user(user: int, _: object) -> None:
    data = _User.from_address(user).user_meta_data
    with _lock:
        entry = _entries.get(data or 0)
        if entry is None:
            return
        entry.count -= 1
        if entry.count:
            return
        _drop(data or 0)
    if entry.release is not None:
        holder = NvDsUserMeta()
        holder.user_meta_data = entry.value
        entry.release(holder, None)


_CALLBACKS = native.CopyFunction(_copy_user), native.ReleaseFunction(_release_user)
COPY, RELEASE = (ctypes.cast(call, ctypes.c_void_p).value or 0 for call in _CALLBACKS)


class CFunction:
    """A function of C that copies or releases user metadata, as Python calls it.

    Attributes:
        address: of the function.
    """

    def __init__(self, address: int, copies: bool) -> None:
        kind = native.CopyFunction if copies else native.ReleaseFunction
        self.address, self._call = address, kind(address)

    def __call__(self, user: Bound, _: object = None) -> Value:
        """Call it with a user meta; a copy's address is returned."""
        if is_view(user):
            return self._call(ctypes.addressof(user._c), None)
        c = _User()
        data = user.user_meta_data
        c.user_meta_data = ctypes.addressof(data._c) if is_view(data) else data
        c.base_meta.meta_type = int(user.base_meta.meta_type)
        return self._call(ctypes.addressof(c), None)
