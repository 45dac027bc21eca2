"""Commands of messages: what they ask for, and what is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.media.messages.commands import RecordCommand, record_command, sensor_numbers

NOW = datetime(2026, 5, 1, 10, 0, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ({"command": "start-recording", "start": "2026-05-01T10:00:05.000Z",
          "end": "2026-05-01T10:00:45.500Z", "sensor": {"id": "gate"}},
         RecordCommand("gate", True, 15.0, 40.5)),
        ({"sensor": {"id": "7"}}, RecordCommand("7")),
        ({"sensor": {"id": 7}, "start": "2026-05-01T10:01:00Z"}, RecordCommand("7", True, 0.0)),
        ({"command": "stop-recording", "sensor": {"id": "a"}}, RecordCommand("a", False)),
        ({"sensor": {"id": "a"}, "end": "2026-05-01T12:00:30+02:00"},
         RecordCommand("a", True, None, 10.0)),
    ],
)  # fmt: skip
def test_what_a_message_asks_for(message: dict[str, object], command: RecordCommand) -> None:
    assert record_command(json.dumps(message).encode(), NOW) == command


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (b"hello", "not JSON"),
        (b"[]", "no object"),
        (b"[" * 40_000, "not JSON"),
        (b'{"a":1}' + b" " * 70_000, "more than"),
        (b'{"command":"dance","sensor":{"id":"a"}}', "neither start-recording"),
        (b'{"command":"start-recording"}', "no sensor.id"),
        (b'{"sensor":{"id":true}}', "no sensor.id"),
        (b'{"sensor":{"id":"a"},"start":"yesterday"}', "its start is no time"),
        (b'{"sensor":{"id":"a"},"start":5}', "its start is no time"),
        (
            b'{"sensor":{"id":"a"},"start":"2026-05-01T10:00:05Z","end":"2026-05-01T10:00:04Z"}',
            "not behind its start",
        ),
    ],
)
def test_what_is_no_command(message: bytes, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        record_command(message, NOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.sampled_from(
        ["command", "sensor", "id", "start", "end"]), part),
)  # fmt: skip


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_message_breaks_the_reader(message: bytes) -> None:
    try:
        command = record_command(message)
    except ValueError:
        return
    assert command.sensor
    assert command.back_s is None or 0 <= command.back_s <= 86400


def test_names_of_sensors(tmp_path: Path) -> None:
    path = tmp_path / "sensors.txt"
    path.write_text(
        "[sensor0]\nenable=1\nid=gate\n[sensor3]\nid=yard\n[sensor4]\nenable=0\nid=off\n"
    )
    assert sensor_numbers(path) == {"gate": 0, "yard": 3}
    path.write_text("[place0]\nid=a\n")
    with pytest.raises(ConfigError, match="names no sensor"):
        sensor_numbers(path)
