"""Payloads in Protobuf: a frame with its objects, type 2 of the original's message converter.

Numbers of fields: the original's `schema.proto` (package nv), and the wire format of Protobuf 3.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

_VARINT, _BYTES, _FLOAT = 0, 2, 5  # wire types


class ProtoObject(NamedTuple):
    """An object of a frame.

    Attributes:
        id: of its track.
        box: left, top, width, height in frame pixels.
        kind: its label.
        info: attributes by name.
    """

    id: str
    box: tuple[float, float, float, float]
    kind: str
    confidence: float
    info: Mapping[str, str] = {}


def frame_message(
    frame: int, time: datetime | str, sensor: str, objects: Sequence[ProtoObject]
) -> bytes:
    """Encode a message `Frame`.

    Args:
        frame: its number.
        time: of the frame; a text as ISO 8601 has it, without a time where it is none.
        sensor: its id.
        objects: of the frame.
    """
    parts = [_text(1, "4.0"), _text(2, str(frame)), _time(time), _text(4, sensor)]
    return b"".join([*parts, *(_message(5, _object(one)) for one in objects)])


def _object(one: ProtoObject) -> bytes:
    left, top, width, height = one.box
    corners = (left, top, left + width, top + height)
    box = b"".join(_float(number, value) for number, value in enumerate(corners, 1))
    entries = (
        _message(5, _text(1, name) + _text(2, value)) for name, value in sorted(one.info.items())
    )
    kind = _text(3, one.kind) + _float(4, one.confidence)
    return b"".join([_text(1, one.id), _message(2, box), kind, *entries])


def _time(time: datetime | str) -> bytes:
    """A `google.protobuf.Timestamp`."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError:
            return b""
    moment = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    since = moment - datetime.fromtimestamp(0, UTC)
    seconds, nanos = since.days * 86400 + since.seconds, since.microseconds * 1000
    return _message(3, _number(1, seconds) + _number(2, nanos))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _number(number: int, value: int) -> bytes:
    """A field of whole numbers; 0 is left out, as of all plain fields."""
    return _tag(number, _VARINT) + _varint(value) if value else b""


def _float(number: int, value: float) -> bytes:
    packed = struct.pack("<f", value)
    return _tag(number, _FLOAT) + packed if packed != bytes(4) else b""


def _text(number: int, text: str) -> bytes:
    data = text.encode(errors="replace")
    return _message(number, data) if data else b""


def _message(number: int, data: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(data)) + data
