"""Payloads of a user's library: of frames, of objects, of events, and its faults."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.config import load_pipeline
from headrace.custom.converter.library import ConverterLibrary
from headrace.errors import ConfigError, CustomLibraryError
from headrace.media.messages.event import EventObject, MessageEvent
from headrace.media.messages.library import library_for, library_payloads
from tests.custom.converter.built import library

EVENT = MessageEvent(
    "frame", "yard", 3, 12, 40_000_000,
    (EventObject(2, "car", 0.5, (1, 2, 3, 4), 7), EventObject(1, "person", 0.25, (5, 6, 7, 8))),
    time=datetime(2026, 3, 4, 5, 6, 7, 250_000, UTC),
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory)


def payloads_of(
    path: Path, schema: str, *, config: str = "", of_metadata: bool = True
) -> list[str]:
    opened = library_for(str(path), schema, config, of_metadata, "out")
    assert opened is not None
    made = library_payloads(opened, EVENT, {"sensor3": {"id": "gate"}})
    opened.close()
    return [message.decode() for message in made]


def test_the_custom_schema_gets_each_object(path: Path) -> None:
    assert payloads_of(path, "custom") == ["object 12 car 2 3.0", "object 12 person 1 7.0"]


def test_frame_schemas_get_the_frame(path: Path) -> None:
    assert payloads_of(path, "minimal") == ["frame 12 2 video"]
    assert payloads_of(path, "protobuf") == ["frame 12 2 video"]


def test_events_have_what_test5_fills_in(path: Path) -> None:
    time = "2026-03-04T05:06:07.250Z"
    rows = [f"12|car|1.0|7|0.50|gate|{time}", f"12|person|5.0|{2**64 - 1}|0.25|gate|{time}"]
    assert payloads_of(path, "custom", of_metadata=False) == [f"events {row}" for row in rows]
    assert payloads_of(path, "minimal", of_metadata=False) == [f"events {rows[0]} {rows[1]}"]


def test_a_library_may_make_nothing(path: Path) -> None:
    assert payloads_of(path, "custom", config="none") == []


@pytest.mark.parametrize(
    ("config", "wanted"),
    [("throw", "dusty lens"), ("huge", "cannot be"), ("refuse", "ctx_create returned null")],
)
def test_a_library_that_fails_is_named(path: Path, config: str, wanted: str) -> None:
    with pytest.raises(CustomLibraryError, match=wanted) as caught:
        payloads_of(path, "custom", config=config)
    assert str(path) in str(caught.value)


def test_a_crash_costs_the_messages_of_a_frame(path: Path) -> None:
    own = ConverterLibrary(path, "crash", 1, of_metadata=True)
    counts = [len(library_payloads(own, EVENT, None)) for _ in range(4)]
    own.close()
    assert counts == [1, 0, 1, 0]
    assert "converter-failed" in [n.code for n in own.notices]


def test_what_cannot_be_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no library"):
        library_for("", "custom", "", True, "out")
    with pytest.raises(ConfigError, match="not made by a library"):
        library_for(str(path), "headrace", "", True, "out")
    assert library_for("", "minimal", "", True, "out") is None


def test_the_sink_of_an_application_names_it(path: Path, tmp_path: Path) -> None:
    text = (
        "[source0]\nenable=1\ntype=2\nuri=file://a.mp4\n[sink0]\nenable=1\ntype=6\n"
        "msg-broker-proto-lib=libnvds_mqtt_proto.so\nmsg-broker-conn-str=h;1\ntopic=t\n"
        "msg-conv-payload-type=257\n"
    )
    app = tmp_path / "app.txt"
    app.write_text(text + f"msg-conv-msg2p-lib={path}\n")
    (sink,) = load_pipeline(app).sinks
    assert "schema=custom" in str(sink.text)
    assert "interface=events" in str(sink.text)
    app.write_text(text)
    spec = load_pipeline(app)
    assert spec.sinks == ()
    assert any("no msg-conv-msg2p-lib" in n.sentence for n in spec.notices)
