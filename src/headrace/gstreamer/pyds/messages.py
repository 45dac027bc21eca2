"""Event messages: metadata that `nvmsgconv` turns into payloads."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from headrace.gstreamer.pyds.meta import NvDsUserMeta
from headrace.gstreamer.pyds.struct import Buffer, Nested, Struct, Text


class NvDsEventType(IntEnum):
    """Types of events."""

    NVDS_EVENT_ENTRY = 0
    NVDS_EVENT_EXIT = 1
    NVDS_EVENT_MOVING = 2
    NVDS_EVENT_STOPPED = 3
    NVDS_EVENT_EMPTY = 4
    NVDS_EVENT_PARKED = 5
    NVDS_EVENT_RESET = 6
    NVDS_EVENT_RESERVED = 0x100
    NVDS_EVENT_CUSTOM = 0x101
    NVDS_EVENT_FORCE32 = 0x7FFFFFFF


class NvDsObjectType(IntEnum):
    """Types of objects."""

    NVDS_OBJECT_TYPE_VEHICLE = 0
    NVDS_OBJECT_TYPE_PERSON = 1
    NVDS_OBJECT_TYPE_FACE = 2
    NVDS_OBJECT_TYPE_BAG = 3
    NVDS_OBJECT_TYPE_BICYCLE = 4
    NVDS_OBJECT_TYPE_ROADSIGN = 5
    NVDS_OBJECT_TYPE_VEHICLE_EXT = 6
    NVDS_OBJECT_TYPE_PERSON_EXT = 7
    NVDS_OBJECT_TYPE_FACE_EXT = 8
    NVDS_OBJECT_TYPE_RESERVED = 0x100
    NVDS_OBJECT_TYPE_CUSTOM = 0x101
    NVDS_OBJECT_TYPE_UNKNOWN = 0x102
    NVDS_OBEJCT_TYPE_FORCE32 = 0x7FFFFFFF  # spelt so in the original


class NvDsPayloadType(IntEnum):
    """Schemas of payloads."""

    NVDS_PAYLOAD_DEEPSTREAM = 0
    NVDS_PAYLOAD_DEEPSTREAM_MINIMAL = 1
    NVDS_PAYLOAD_RESERVED = 0x100
    NVDS_PAYLOAD_CUSTOM = 0x101
    NVDS_PAYLOAD_FORCE32 = 0x7FFFFFFF


class NvDsRect(Struct):
    """A box in pixels."""

    top = 0.0
    left = 0.0
    width = 0.0
    height = 0.0


class NvDsGeoLocation(Struct):
    """A place on the globe: degrees and metres."""

    lat = 0.0
    lon = 0.0
    alt = 0.0


class NvDsCoordinate(Struct):
    """A point in space."""

    x = 0.0
    y = 0.0
    z = 0.0


class NvDsObjectSignature(Struct):
    """A vector of an object's features: a sequence of floats, and its length."""

    signature: Any = None
    size = 0


class NvDsVehicleObject(Struct):
    """Attributes of a vehicle."""

    type = Text()
    make = Text()
    model = Text()
    color = Text()
    region = Text()
    license = Text()


class NvDsPersonObject(Struct):
    """Attributes of a person."""

    gender = Text()
    hair = Text()
    cap = Text()
    apparel = Text()
    age = 0


class NvDsFaceObject(Struct):
    """Attributes of a face."""

    gender = Text()
    hair = Text()
    cap = Text()
    glasses = Text()
    facialhair = Text()
    name = Text()
    eyecolor = Text()
    age = 0


class NvDsVehicleObjectExt(NvDsVehicleObject):
    """A vehicle with its outline, a list of polygons."""

    mask: Any = None


class NvDsPersonObjectExt(NvDsPersonObject):
    """A person with their outline, a list of polygons."""

    mask: Any = None


class NvDsFaceObjectWithExt(NvDsFaceObject):
    """A face with its outline, a list of polygons."""

    mask: Any = None


class NvDsEventMsgMeta(Struct):
    """An event: metadata of the type `NVDS_EVENT_MSG_META` hold one."""

    type: int = NvDsEventType.NVDS_EVENT_ENTRY
    objType: int = NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE
    bbox = Nested(NvDsRect)
    location = Nested(NvDsGeoLocation)
    coordinate = Nested(NvDsCoordinate)
    objSignature = Nested(NvDsObjectSignature)
    objClassId = 0
    sensorId = 0
    moduleId = 0
    placeId = 0
    componentId = 0
    frameId = 0
    confidence = 0.0
    trackingId = 0
    ts = Buffer()
    objectId = Text()
    sensorStr = Text()
    otherAttrs = Text()
    videoPath = Text()
    extMsg: Any = None
    extMsgSize = 0


class NvDsEvent(Struct):
    """An event and its metadata."""

    eventType: int = NvDsEventType.NVDS_EVENT_ENTRY
    metadata: NvDsEventMsgMeta | None = None


class NvDsPayload(Struct):
    """A payload, made by `nvmsgconv` for `nvmsgbroker`; `payload` is the address of its text."""

    payload = Text()
    payloadSize = 0
    componentId = 0


def alloc_nvds_event_msg_meta(meta: NvDsUserMeta | None = None) -> NvDsEventMsgMeta:
    """Make an event; `meta` is the one that it will be attached to, which older bindings lack."""
    return NvDsEventMsgMeta()


def alloc_nvds_vehicle_object() -> NvDsVehicleObject:
    """Make the attributes of a vehicle."""
    return NvDsVehicleObject()


def alloc_nvds_person_object() -> NvDsPersonObject:
    """Make the attributes of a person."""
    return NvDsPersonObject()


def alloc_nvds_face_object() -> NvDsFaceObject:
    """Make the attributes of a face."""
    return NvDsFaceObject()


def alloc_nvds_event() -> NvDsEvent:
    """Make an event without metadata."""
    return NvDsEvent()


def alloc_nvds_payload() -> NvDsPayload:
    """Make an empty payload."""
    return NvDsPayload()


def generate_ts_rfc3339(buffer: int, size: int) -> None:
    """Write the time of now in UTC, with milliseconds, to an address.

    Args:
        buffer: the address of at least `size` bytes.
        size: of the buffer; a longer text is cut and ends with 0.
    """
    now_ns = time.time_ns()
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
    raw = f"{text}.{now_ns // 10**6 % 1000:03d}Z".encode()[: max(0, size - 1)] + b"\0"
    if buffer and size > 0:
        ctypes.memmove(buffer, raw, len(raw))


_Callback = Callable[[NvDsUserMeta, object], object]


def user_copyfunc(meta: NvDsUserMeta, func: _Callback) -> None:
    """Keep a function that copies metadata; Headrace shares metadata and calls none."""
    meta.base_meta.copy_func = func


def user_releasefunc(meta: NvDsUserMeta, func: _Callback) -> None:
    """Call a function with metadata and None when their last buffer goes."""
    meta.base_meta.release_func = func


set_user_copyfunc, set_user_releasefunc = user_copyfunc, user_releasefunc


def register_user_copyfunc(func: _Callback) -> None:
    """Do nothing, as the original: `user_copyfunc` is its successor."""


def register_user_releasefunc(func: _Callback) -> None:
    """Do nothing, as the original: `user_releasefunc` is its successor."""


def unset_callback_funcs() -> None:
    """Do nothing: functions go with their metadata."""


def _cast(data: Any) -> Any:
    return data


glist_get_nvds_event_msg_meta = glist_get_nvds_vehicle_object = _cast
glist_get_nvds_person_object = _cast
