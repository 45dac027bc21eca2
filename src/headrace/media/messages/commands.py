"""Commands of messages to a pipeline: start and stop a recording of a sensor.

The form is that of the original's cloud messages. Source: its `deepstream_c2d_msg`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace.media.messages.converter import read_converter_config

_START, _STOP = "start-recording", "stop-recording"
_MOST_BYTES = 64 << 10
_LONGEST_S = 86400.0


@dataclass(frozen=True, slots=True)
class RecordCommand:
    """A start or a stop of a recording.

    Attributes:
        sensor: its id, as the message has it.
        start: False to stop.
        back_s: seconds ahead of now at which the recording begins; None: as it is set up.
        length_s: seconds from its start on; None: as it is set up.
    """

    sensor: str
    start: bool = True
    back_s: float | None = None
    length_s: float | None = None


def record_command(message: bytes, now: datetime | None = None) -> RecordCommand:
    """Read a message: JSON with `command`, `start`, `end` and `sensor.id`.

    Args:
        message: as it came.
        now: the time of day; None is that of this machine.

    Raises:
        ValueError: it is no such message; the text says what must be.
    """
    if len(message) > _MOST_BYTES:
        raise ValueError(f"{len(message)} bytes are more than {_MOST_BYTES}")
    try:
        content = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(content, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - of the message, not of a program
    command = content.get("command", _START)
    if command not in (_START, _STOP):
        raise ValueError(f"its command is neither {_START} nor {_STOP}")
    sensor = content.get("sensor")
    name = sensor.get("id") if isinstance(sensor, dict) else None
    if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
        raise ValueError("it has no sensor.id")
    if command == _STOP:
        return RecordCommand(str(name), start=False)
    now = now or datetime.now(UTC)
    start, end = (_time(content, key) for key in ("start", "end"))
    back_s = None if start is None else _seconds((now - start).total_seconds())
    length_s = None if end is None else _seconds((end - (start or now)).total_seconds())
    if length_s == 0:
        raise ValueError("its end is not behind its start")
    return RecordCommand(str(name), True, back_s, length_s)


def _seconds(value: float) -> float:
    return min(max(0.0, value), _LONGEST_S)


def _time(content: Mapping[str, Any], key: str) -> datetime | None:
    text = content.get(key)
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its {key} is no time as 2026-05-01T10:00:00.000Z") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def sensor_numbers(path: Path) -> dict[str, int]:
    """Read a sensor-list-file: the `id` of each `[sensorN]`, with N.

    Raises:
        ConfigError: it cannot be read, or names no sensor.
    """
    numbers = {
        entries["id"]: int(name.removeprefix("sensor"))
        for name, entries in read_converter_config(path).items()
        if name.startswith("sensor") and name[6:].isdecimal() and len(name) < 16
        and "id" in entries and entries.get("enable", "1") != "0"
    }  # fmt: skip
    if not numbers:
        raise ConfigError(
            "the file names no sensor", where=str(path), expected="[sensor0] with enable=1 and id="
        )
    return numbers
