"""Payloads: the JSON of an event, in Noria's form or one of DeepStream's two schemas."""

from __future__ import annotations

import configparser
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noria._core.errors import ConfigError
from noria.messages.event import EventObject, MessageEvent, timestamp

SCHEMAS = ("noria", "deepstream", "minimal")

ConverterConfig = Mapping[str, Mapping[str, str]]
"""Sections of a msgconv config file (`sensor0`, `place0`, `analytics0`), each with its keys."""


def read_converter_config(path: Path) -> ConverterConfig:
    """Read a config file of the original's message converter, in INI form.

    Raises:
        ConfigError: it cannot be read, or is not in INI form.
    """
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(path.read_text("utf-8"), str(path))
    except (OSError, ValueError, configparser.Error) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"cannot be read: {first}", where=str(path)) from error
    return {name.lower(): dict(parser[name]) for name in parser.sections()}


def payloads(
    event: MessageEvent, schema: str = "noria", config: ConverterConfig | None = None
) -> list[bytes]:
    """The messages of an event as UTF-8 JSON.

    `deepstream` makes one for each object, the others one for the event.

    Args:
        event: the event.
        schema: one of `SCHEMAS`.
        config: names and places of the sensors, for the schemas of DeepStream.
    """
    config = config or {}
    if schema == "deepstream":
        return [_json(_full(event, i, o, config)) for i, o in enumerate(event.objects)]
    return [_json(_minimal(event, config) if schema == "minimal" else _noria(event))]


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def _noria(event: MessageEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "time": timestamp(event.time),
        "event": event.kind,
        "source": event.source,
        "source_id": event.source_id,
        "frame": event.frame,
        "pts_ns": event.pts_ns,
        "objects": [_object(o) for o in event.objects],
    }


def _object(obj: EventObject) -> dict[str, Any]:
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
        **({} if obj.analytics is None else obj.analytics.to_dict()),
    }


def _corners(obj: EventObject) -> tuple[float, float, float, float]:
    left, top, width, height = obj.box
    return round(left, 3), round(top, 3), round(left + width, 3), round(top + height, 3)


def _track(obj: EventObject) -> str:
    return "-1" if obj.object_id is None else str(obj.object_id)


def _section(config: ConverterConfig, name: str, number: int) -> Mapping[str, str]:
    section = config.get(f"{name}{number}", {})
    return {} if section.get("enable", "1").strip() == "0" else section


def _minimal(event: MessageEvent, config: ConverterConfig) -> dict[str, Any]:
    sensor = _section(config, "sensor", event.source_id)
    rows = ("|".join(map(str, (_track(o), *_corners(o), o.label))) for o in event.objects)
    return {
        "version": "4.0",
        "id": str(event.frame),
        "@timestamp": timestamp(event.time),
        "sensorId": sensor.get("id", event.source),
        "objects": list(rows),
    }


def _numbers(text: str, names: str) -> dict[str, float]:
    """`lat;lon;alt` or `x;y;z` of a config file; 0 for parts that are absent or no number."""
    parts = text.split(";")
    found = {}
    for place, name in enumerate(names.split()):
        try:
            found[name] = float(parts[place])
        except (IndexError, ValueError):
            found[name] = 0.0
    return found


def _place(section: Mapping[str, str]) -> dict[str, Any]:
    return {
        "location": _numbers(section.get("location", ""), "lat lon alt"),
        "coordinate": _numbers(section.get("coordinate", ""), "x y z"),
    }


def _full(
    event: MessageEvent, number: int, obj: EventObject, config: ConverterConfig
) -> dict[str, Any]:
    sensor, place, analytics = (
        _section(config, name, event.source_id) for name in ("sensor", "place", "analytics")
    )
    x1, y1, x2, y2 = _corners(obj)
    # one event makes several messages; each has the same id whenever it is made again
    name = uuid.uuid5(uuid.UUID(event.id), str(number))
    return {
        "messageid": str(name),
        "mdsversion": "1.0",
        "@timestamp": timestamp(event.time),
        "place": {
            "id": place.get("id", "0"),
            "name": place.get("name", ""),
            "type": place.get("type", ""),
            **_place(place),
        },
        "sensor": {
            "id": sensor.get("id", event.source),
            "type": sensor.get("type", ""),
            "description": sensor.get("description", ""),
            **_place(sensor),
        },
        "analyticsModule": {
            "id": analytics.get("id", ""),
            "description": analytics.get("description", ""),
            "source": analytics.get("source", ""),
            "version": analytics.get("version", ""),
        },
        "object": {
            "id": _track(obj),
            "speed": 0.0,
            "direction": 0.0,
            "orientation": 0.0,
            obj.label or "object": {"confidence": round(obj.confidence, 6)},
            "bbox": {"topleftx": x1, "toplefty": y1, "bottomrightx": x2, "bottomrighty": y2},
            **_place({}),
        },
        "event": {"id": event.id, "type": "entry" if event.kind == "first" else "moving"},
        "videoPath": "",
    }
