"""Copies of messages, and the options that choose which messages there are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headrace import open_sink
from headrace.errors import MediaError
from headrace.media.messages.copies import MessageCopies
from headrace.meta import Detections, FrameMeta, Space
from tests.media.conftest import gray_frame


def metas() -> list[FrameMeta]:
    """Three frames at 1970-01-01, 00:00:02 to 04: no object, one of model 1, one of model 2."""
    found = []
    for number, component in enumerate((None, 1, 2)):
        meta = FrameMeta("cam", 0, number, (number + 2) * 1_000_000_000, 64, 48)
        if component is not None:
            box = np.array([[1, 2, 3, 4]], np.float32)
            one = Detections(box, np.ones(1, np.float32), np.zeros(1, int), space=Space.FRAME)
            meta.objects.append(one, component, labels=["car"])
        found.append(meta)
    return found


def sent(tmp_path: Path, options: str) -> list[dict[str, object]]:
    path = tmp_path / "events.jsonl"
    spool = tmp_path / "spool"
    with open_sink(f"events+file://{path}?every=frame&spool={spool}&{options}") as sink:
        for meta in metas():
            sink.write(gray_frame(meta.frame), meta)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_frames_without_objects_are_messages_on_request(tmp_path: Path) -> None:
    assert [m["id"] for m in sent(tmp_path, "schema=minimal&empty=1")] == ["0", "1", "2"]
    assert [m["id"] for m in sent(tmp_path / "b", "schema=minimal")] == ["1", "2"]
    full = sent(tmp_path / "c", "schema=deepstream&empty=1")
    assert ["object" in message for message in full] == [False, True, True]


def test_objects_of_one_model_alone(tmp_path: Path) -> None:
    assert [m["id"] for m in sent(tmp_path, "schema=minimal&component=2")] == ["2"]


def test_the_time_of_the_stream(tmp_path: Path) -> None:
    times = [m["@timestamp"] for m in sent(tmp_path, "schema=minimal&time=stream")]
    assert times == ["1970-01-01T00:00:03.000Z", "1970-01-01T00:00:04.000Z"]


def test_every_message_has_a_copy_behind_those_that_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    MessageCopies(folder).put(b"{}")
    messages = sent(tmp_path, f"schema=minimal&copies={folder}")
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"0000000{n}.json" for n in range(3)]
    assert [json.loads(file.read_bytes()) for file in files[1:]] == messages


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MediaError, match="copies of messages cannot be written"):
        MessageCopies(tmp_path / "file" / "folder")
