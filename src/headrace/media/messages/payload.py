"""Payloads: the JSON of an event, in Headrace's form or one of DeepStream's two schemas.

The schemas have the shape that the original gives to metadata of frames and objects
(`msg2p-newapi=1`). Source: the original's `dsmeta_payload.cpp`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from headrace.media.messages.converter import (
    ConverterConfig,
    analytics_object,
    place_object,
    section,
    sensor_object,
)
from headrace.media.messages.event import EventObject, MessageEvent, timestamp
from headrace.media.messages.protobuf import ProtoObject, frame_message
from headrace.meta import UNTRACKED_OBJECT_ID

SCHEMAS = ("headrace", "deepstream", "minimal", "protobuf", "custom")


def payloads(
    event: MessageEvent, schema: str = "headrace", config: ConverterConfig | None = None
) -> list[bytes]:
    """The messages of an event as UTF-8 JSON, or in Protobuf.

    `deepstream` makes one for each object, and one without it for an event that has none; the
    others make one for the event.

    Args:
        event: the event.
        schema: one of `SCHEMAS` but `custom`, which a library makes.
        config: names and places of the sensors, for the schemas of DeepStream.
    """
    config = config or {}
    if schema == "deepstream":
        objects = event.objects or (None,)
        return [as_json(_full(event, i, o, config)) for i, o in enumerate(objects)]
    if schema == "protobuf":
        sensor = sensor_of(event, config)
        return [frame_message(event.frame, event.time, sensor, list(map(_proto, event.objects)))]
    return [as_json(_minimal(event, config) if schema == "minimal" else _headrace(event))]


def as_json(value: object) -> bytes:
    """JSON without spaces, in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def row_text(*values: object) -> str:
    """Values with `|` between, numbers with six significant digits, as C++ streams write them."""
    return "|".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)


def corners(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a box."""
    left, top, width, height = box
    return left, top, left + width, top + height


def box_object(box: tuple[float, float, float, float]) -> dict[str, int]:
    """The `bbox` of the full schema: whole pixels, cut off."""
    names = ("topleftx", "toplefty", "bottomrightx", "bottomrighty")
    return {name: int(value) for name, value in zip(names, corners(box), strict=True)}


def _headrace(event: MessageEvent) -> dict[str, object]:
    return {
        "id": event.id,
        "time": timestamp(event.time),
        "event": event.kind,
        "source": event.source,
        "source_id": event.source_id,
        "frame": event.frame,
        "pts_ns": event.pts_ns,
        "objects": [_object(o) for o in event.objects],
        **counts_entry(event.analytics),
    }


def _object(obj: EventObject) -> dict[str, object]:
    left, top, width, height = (round(v, 3) for v in obj.box)
    return {
        "class_id": obj.class_id,
        "label": obj.label,
        "confidence": round(obj.confidence, 6),
        "left": left,
        "top": top,
        "width": width,
        "height": height,
        **({} if obj.object_id is None else {"object_id": obj.object_id}),
        **({"attributes": dict(obj.attributes)} if obj.attributes else {}),
        **({} if obj.analytics is None else obj.analytics.to_dict()),
    }


def _track(obj: EventObject) -> str:
    return str(UNTRACKED_OBJECT_ID if obj.object_id is None else obj.object_id)


def _minimal(event: MessageEvent, config: ConverterConfig) -> dict[str, object]:
    return {
        "version": "4.0",
        "id": str(event.frame),
        "@timestamp": timestamp(event.time),
        "sensorId": sensor_of(event, config),
        "objects": [_row(o) for o in event.objects],
        **counts_entry(event.analytics),
    }


def sensor_of(event: MessageEvent, config: ConverterConfig) -> str:
    """The id of the sensor of an event; without a section the source's name."""
    return str((section(config, "sensor", event.source_id) or {}).get("id", event.source))


def _proto(obj: EventObject) -> ProtoObject:
    info = {kind: label for kind, label in obj.attributes if kind}
    return ProtoObject(_track(obj), obj.box, obj.label, obj.confidence, info)


def _row(obj: EventObject) -> str:
    row = row_text(_track(obj), *corners(obj.box), obj.label)
    if not obj.attributes:
        return row
    return row_text(row, "#", *(label for _, label in obj.attributes), obj.confidence)


def _full(
    event: MessageEvent, number: int, obj: EventObject | None, config: ConverterConfig
) -> dict[str, object]:
    # one event makes several messages; each has the same id whenever it is made again
    name = uuid.uuid5(uuid.UUID(event.id), str(number))
    return {
        "messageid": str(name),
        "mdsversion": "1.0",
        "@timestamp": timestamp(event.time),
        "place": place_object(config, event.source_id),
        "sensor": sensor_object(config, event.source_id, event.source),
        "analyticsModule": analytics_object(config, event.source_id),
        **({} if obj is None else {"object": _object_of_full(obj)}),
        "event": {"id": event.id, "type": ""},
        "videoPath": "",
        **counts_entry(event.analytics),
    }


def _object_of_full(obj: EventObject) -> dict[str, object]:
    named = {kind: label for kind, label in obj.attributes if kind}
    return {
        "id": _track(obj),
        "speed": 0.0,
        "direction": 0.0,
        "orientation": 0.0,
        obj.label: {"confidence": round(obj.confidence, 6)} | named,
        "bbox": box_object(obj.box),
        "location": {},
        "coordinate": {},
    }


def counts_entry(counts: Mapping[str, object]) -> dict[str, object]:
    """Name the counts of a frame; the original has them only with a library of the user's own."""
    return {"analytics": counts} if counts else {}
