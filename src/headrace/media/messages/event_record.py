"""Payloads of events that an application makes itself, in DeepStream's two schemas.

Source: the original's `eventmsg_payload.cpp`: names, order and types of the values.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headrace.media.messages.converter import (
    ConverterConfig,
    analytics_object,
    place_object,
    section,
    sensor_object,
)
from headrace.media.messages.event import EventObject, MessageEvent
from headrace.media.messages.payload import (
    as_json,
    box_object,
    corners,
    counts_entry,
    row_text,
)
from headrace.media.messages.protobuf import ProtoObject, frame_message

_EVENT_TYPES = ("entry", "exit", "moving", "stopped", "empty", "parked", "reset")
_OBJECT_TYPES = ("vehicle", "person", "face", "bag", "bicycle", "roadsign")
_OBJECT_NAMES = ("Vehicle", "Person", "Face", "Bag", "Bicycle", "RoadSign")
_EXTENDED, _CUSTOM, _UNKNOWN = 6, 0x101, 0x102

# attribute of the structure -> name in the full schema, in its order
_FULL: dict[str, dict[str, str]] = {
    "vehicle": {
        "type": "type", "make": "make", "model": "model", "color": "color",
        "region": "licenseState", "license": "license",
    },
    "person": {k: k for k in ("age", "gender", "hair", "cap", "apparel")},
    "face": {
        k: k
        for k in ("age", "gender", "hair", "cap", "glasses", "facialhair", "name", "eyecolor")
    },
}  # fmt: skip
# the order of the minimal schema; an empty name is a value that is always empty
_MINIMAL = {
    "vehicle": ("type", "make", "model", "color", "license", "region"),
    "person": ("gender", "age", "hair", "cap", "apparel"),
    "face": ("gender", "age", "hair", "cap", "glasses", "facialhair", "name", "", "eyecolor"),
}
_AISLE = ("aisle", ("id", "name", "level"))
_PLACES = {
    "moving": _AISLE,
    "stopped": _AISLE,
    "empty": ("parkingSpot", ("id", "type", "level")),
    "parked": ("parkingSpot", ("id", "type", "level")),
}
_ENTRANCE = ("entrance", ("name", "lane", "level"))


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event about one object.

    Attributes:
        event_type, object_type: numbers of the original's enumerations.
        box: left, top, width, height in frame pixels.
        sensor, place, module: numbers of sections of the converter's config file.
        attributes: of a vehicle, person or face, by the names of the structure; None without.
        object_name: of an object of unknown type.
        sensor_name: in the place of the section's id, in the minimal schema.
        location, coordinate: three numbers each.
        signature: a vector, empty without.
    """

    event_type: int
    object_type: int
    box: tuple[float, float, float, float]
    frame: int
    track: int
    confidence: float
    time: str
    sensor: int = 0
    place: int = 0
    module: int = 0
    attributes: Mapping[str, str | int] | None = None
    object_name: str = ""
    sensor_name: str = ""
    video_path: str = ""
    location: tuple[float, float, float] = (0.0, 0.0, 0.0)
    coordinate: tuple[float, float, float] = (0.0, 0.0, 0.0)
    signature: tuple[float, ...] = ()
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def kind(self) -> str:
        """`vehicle`, `person`, `face`, `bag`, `bicycle`, `roadsign`, or nothing."""
        number = self.object_type
        number -= _EXTENDED if _EXTENDED <= number < _EXTENDED + 3 else 0
        return _OBJECT_TYPES[number] if 0 <= number < len(_OBJECT_TYPES) else ""


def record_payloads(
    records: Sequence[EventRecord],
    schema: str,
    config: ConverterConfig,
    counts: Mapping[str, object] | None = None,
) -> list[bytes]:
    """The messages of the events of one frame as UTF-8 JSON, or in Protobuf.

    Args:
        records: the events.
        schema: `deepstream` makes a message for each, `minimal` and `protobuf` one for all.
        config: names and places of the sensors.
        counts: of the frame, as JSON Lines have them.
    """
    last = counts_entry(counts or {})
    if schema == "minimal":
        return [as_json(_minimal(records, config) | last)] if records else []
    if schema == "protobuf":
        return [_protobuf(records, config)] if records else []
    return [as_json(_full(record, config) | last) for record in records]


def record_events(records: Sequence[EventRecord], source_id: int) -> list[MessageEvent]:
    """The events of one frame in the form of `MessageEvent`, for a library that makes payloads.

    Args:
        records: the events.
        source_id: of the frame.
    """
    events = []
    for record in records:
        label = record.object_name or _name(record)
        shown = EventObject(0, label, record.confidence, record.box, record.track)
        try:
            time = datetime.fromisoformat(record.time.replace("Z", "+00:00"))
        except ValueError:
            time = datetime.now(UTC)
        events.append(
            MessageEvent(
                "frame", record.sensor_name, source_id, record.frame, 0, (shown,), time=time
            )
        )
    return events


def _protobuf(records: Sequence[EventRecord], config: ConverterConfig) -> bytes:
    first = records[0]  # all are of one frame
    objects = [ProtoObject(str(r.track), r.box, _name(r), r.confidence, _info(r)) for r in records]
    return frame_message(first.frame, first.time, _sensor(first, config), objects)


def _info(record: EventRecord) -> dict[str, str]:
    """The attributes of a vehicle, person or face, by their names in the full schema."""
    if record.attributes is None or record.kind not in _FULL:
        return {}
    return {
        name: str(record.attributes.get(key, 0 if key == "age" else ""))
        for key, name in _FULL[record.kind].items()
    }


def _sensor(record: EventRecord, config: ConverterConfig) -> str:
    sensor = section(config, "sensor", record.sensor) or {}
    return str(record.sensor_name or sensor.get("id", "" if config else "0"))


def _minimal(records: Sequence[EventRecord], config: ConverterConfig) -> dict[str, object]:
    first = records[0]  # all are of one frame
    return {
        "version": "4.0",
        "id": str(first.frame),
        "@timestamp": first.time,
        "sensorId": _sensor(first, config),
        "objects": [_row(record) for record in records],
    }


def _name(record: EventRecord) -> str:
    number = record.object_type
    if number < len(_OBJECT_NAMES) and record.kind:
        return _OBJECT_NAMES[number]
    if number == _CUSTOM:
        return "Custom"
    return (record.object_name if number == _UNKNOWN else "") or "Unknown"


def _row(record: EventRecord) -> str:
    number, kind = record.object_type, record.kind
    row = row_text(record.track, *corners(record.box), _name(record))
    if record.attributes is not None and kind in _MINIMAL:
        values = (record.attributes.get(key, "") for key in _MINIMAL[kind])
        return row_text(row, "#", *values, record.confidence)
    return f"{row}|#||||||" if kind == "person" and number < _EXTENDED else row


def _full(record: EventRecord, config: ConverterConfig) -> dict[str, object]:
    known = 0 <= record.event_type < len(_EVENT_TYPES)
    event = _EVENT_TYPES[record.event_type] if known else ""
    part = _PLACES.get(event)
    if part is None:
        part = _AISLE if record.object_type == 0 else _ENTRANCE
    return {
        "messageid": str(uuid.uuid5(uuid.UUID(record.id), "message")),
        "mdsversion": "1.0",
        "@timestamp": record.time,
        "place": place_object(config, record.place, *part),
        "sensor": sensor_object(config, record.sensor, record.sensor_name),
        "analyticsModule": analytics_object(config, record.module),
        "object": _object(record),
        "event": {"id": record.id} | ({"type": event} if event else {}),
        "videoPath": record.video_path,
    }


def _object(record: EventRecord) -> dict[str, object]:
    named: dict[str, object] = {}
    if record.kind in _FULL:
        values: Mapping[str, str | int] = record.attributes or {}
        sub: dict[str, object] = {
            name: values.get(key, 0 if key == "age" else "")
            for key, name in _FULL[record.kind].items()
        }
        sub["confidence"] = 1.0 if record.attributes is None else record.confidence
        named[record.kind] = sub
    elif record.object_type == _UNKNOWN and record.object_name:
        named[record.object_name] = {}
    return {
        "id": str(record.track),
        "speed": 0.0,
        "direction": 0.0,
        "orientation": 0.0,
        **named,
        "bbox": box_object(record.box),
        **({"signature": list(record.signature)} if record.signature else {}),
        "location": dict(zip(("lat", "lon", "alt"), record.location, strict=True)),
        "coordinate": dict(zip(("x", "y", "z"), record.coordinate, strict=True)),
        "pose": {},
    }
