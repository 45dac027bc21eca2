"""Payloads in Protobuf, read by Protobuf's own decoder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.media.messages.event import EventObject, MessageEvent
from headrace.media.messages.event_record import EventRecord, record_payloads
from headrace.media.messages.payload import payloads
from headrace.media.messages.protobuf import ProtoObject, frame_message

pool_of = pytest.importorskip("google.protobuf.descriptor_pool")
TIME = datetime(2026, 3, 4, 5, 6, 7, 250_000, UTC)


def _frame_class() -> Any:
    """The original's messages, the parts of them that are made."""
    from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2

    pool = pool_of.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="nv.proto", package="nv", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    text, number, message = 9, 2, 11
    repeated = {"objects", "info"}

    def add(name: str, *fields: tuple[str, int, int, str]) -> Any:
        made = file.message_type.add(name=name)
        for field, place, kind, of in fields:
            label = 3 if field in repeated else 1
            made.field.add(name=field, number=place, type=kind, type_name=of or None, label=label)
        return made

    corners = ("leftX", "topY", "rightX", "bottomY")
    add("Bbox", *((c, i, number, "") for i, c in enumerate(corners, 1)))
    made = add(
        "Object", ("id", 1, text, ""), ("bbox", 2, message, ".nv.Bbox"), ("type", 3, text, ""),
        ("confidence", 4, number, ""), ("info", 5, message, ".nv.Object.InfoEntry"),
    )  # fmt: skip
    entry = made.nested_type.add(name="InfoEntry")
    entry.options.map_entry = True
    for place, name in ((1, "key"), (2, "value")):
        entry.field.add(name=name, number=place, type=text, label=1)
    add(
        "Frame", ("version", 1, text, ""), ("id", 2, text, ""),
        ("timestamp", 3, message, ".google.protobuf.Timestamp"), ("sensorId", 4, text, ""),
        ("objects", 5, message, ".nv.Object"),
    )  # fmt: skip
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("nv.Frame"))


FRAME = _frame_class()


@given(
    frame=st.integers(0, 2**40),
    sensor=st.text(),
    time=st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1)),
    objects=st.lists(
        st.tuples(
            st.text(), st.lists(st.floats(-1e4, 1e4, width=16), min_size=4, max_size=4),
            st.text(), st.floats(0, 1, width=16), st.dictionaries(st.text(), st.text()),
        )
    ),
)  # fmt: skip
def test_every_field_comes_back(
    frame: int, sensor: str, time: datetime, objects: list[tuple[Any, ...]]
) -> None:
    made = [ProtoObject(i, tuple(box), kind, score, info) for i, box, kind, score, info in objects]
    read = FRAME.FromString(frame_message(frame, time.replace(tzinfo=UTC), sensor, made))
    assert (read.version, read.id, read.sensorId) == ("4.0", str(frame), sensor)
    assert read.timestamp.ToDatetime() == time
    assert len(read.objects) == len(made)
    for one, wanted in zip(read.objects, made, strict=True):
        left, top, width, height = wanted.box
        corners = [one.bbox.leftX, one.bbox.topY, one.bbox.rightX, one.bbox.bottomY]
        assert corners == pytest.approx([left, top, left + width, top + height])
        assert (one.id, one.type, one.confidence) == (wanted.id, wanted.kind, wanted.confidence)
        assert dict(one.info) == wanted.info


def test_an_event_of_frames() -> None:
    objects = (
        EventObject(0, "car", 0.5, (1, 2, 3, 4), 7, attributes=(("color", "red"),)),
        EventObject(1, "person", 0.25, (0, 0, 8, 8)),
    )
    event = MessageEvent("frame", "yard", 3, 12, 0, objects, time=TIME)
    (message,) = payloads(event, "protobuf", {"sensor3": {"id": "gate"}})
    read = FRAME.FromString(message)
    assert (read.id, read.sensorId, read.timestamp.nanos) == ("12", "gate", 250_000_000)
    assert [o.id for o in read.objects] == ["7", str(2**64 - 1)]
    assert dict(read.objects[0].info) == {"color": "red"}


def test_events_of_an_application() -> None:
    car = EventRecord(
        0, 0, (1, 2, 3, 4), 9, 5, 0.5, "2026-03-04T05:06:07.250Z", sensor_name="gate",
        attributes={"make": "Saab", "type": "sedan"},
    )  # fmt: skip
    (message,) = record_payloads([car, car], "protobuf", {})
    read = FRAME.FromString(message)
    assert read.sensorId == "gate"
    assert read.timestamp.ToDatetime(UTC) == TIME
    assert [o.type for o in read.objects] == ["Vehicle"] * 2
    assert dict(read.objects[0].info)["make"] == "Saab"
    assert record_payloads([], "protobuf", {}) == []
