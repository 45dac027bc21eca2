"""Messages start and stop recordings of a pipeline that runs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from headrace.config.pipeline_spec import ConsumerSpec
from headrace.errors import ConfigError
from headrace.media import open_sink, open_source
from headrace.pipeline import Pipeline
from headrace.pipeline import consumer as consumers
from headrace.pipeline.consumer import Consumer


class Given:
    """Gives messages that a test puts in."""

    def __init__(self) -> None:
        self.waiting: list[bytes | Exception] = []
        self.closed = 0

    def receive(self) -> Sequence[bytes]:
        if not self.waiting:
            time.sleep(0.005)
            return ()
        one = self.waiting.pop(0)
        if isinstance(one, Exception):
            raise one
        return [one]

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Given:
    receiver = Given()
    monkeypatch.setattr(consumers, "receiver_for", lambda url, options: receiver)
    monkeypatch.chdir(tmp_path)
    return receiver


def video(path: Path, frames: int = 100) -> Path:
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options={"g": "5", "bf": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            image = np.full((48, 64, 3), number * 2, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
        container.mux(stream.encode(None))
    return path


def command(sensor: str, **more: str) -> bytes:
    return json.dumps({"sensor": {"id": sensor}, **more}).encode()


def recorded(
    tmp_path: Path, given: Given, orders: dict[int, bytes], **spec: Any
) -> tuple[list[int], Pipeline]:
    """Run 100 frames; a message comes and is taken before the frame of its number.

    Returns the lengths of the files in frames, and the pipeline.
    """
    sink = open_sink(f"smart-record:{tmp_path}/rec?before=0&after=10&cache=4")

    def waits(batch: Any) -> None:
        number = batch.metas[0].frame
        if number in orders:
            given.waiting.append(orders[number])
            end = time.monotonic() + 5
            while given.waiting and time.monotonic() < end:
                time.sleep(0.005)
            time.sleep(0.05)

    source = open_source(str(video(tmp_path / "a.mp4")))
    pipeline = Pipeline([source], [waits], [sink], queue_size=1)
    pipeline.attach(Consumer(ConsumerSpec(uri="mqtt://h/t", **spec)))
    pipeline.run()
    lengths = []
    for file in sorted((tmp_path / "rec").iterdir()):
        with av.open(str(file)) as container:
            lengths.append(len(list(container.decode(video=0))))
    return lengths, pipeline


def test_messages_start_and_stop_recordings(tmp_path: Path, given: Given) -> None:
    orders = {
        20: command("0"), 40: command("0", command="stop-recording"),
        60: command("0", command="start-recording"),
    }  # fmt: skip
    lengths, pipeline = recorded(tmp_path, given, orders)
    assert len(lengths) == 2
    assert 14 <= lengths[0] <= 30
    assert 34 <= lengths[1] <= 46  # to the end of the video
    assert given.closed
    assert not [n for n in pipeline.notices if n.level == "warning"]
    log = (tmp_path / "smart_record.log").read_text().splitlines()
    assert [row.split(":")[0] for row in log] == ["0", "1"]


def test_a_second_start_changes_nothing(tmp_path: Path, given: Given) -> None:
    lengths, _ = recorded(tmp_path, given, {20: command("0"), 40: command("0")})
    assert len(lengths) == 1


def test_sensors_by_name(tmp_path: Path, given: Given) -> None:
    sensors = tmp_path / "sensors.txt"
    sensors.write_text("[sensor0]\nenable=1\nid=gate\n")
    orders = {20: command("0"), 50: command("gate")}
    lengths, pipeline = recorded(tmp_path, given, orders, sensors=sensors)
    assert len(lengths) == 1
    assert 44 <= lengths[0] <= 56
    assert [n.code for n in pipeline.report.notices if n.level == "warning"] == ["message-unread"]


def test_what_means_nothing_is_a_notice_and_the_run_goes_on(tmp_path: Path, given: Given) -> None:
    orders = {10: b"nonsense", 30: command("9"), 50: command("0")}
    lengths, pipeline = recorded(tmp_path, given, orders)
    assert len(lengths) == 1
    texts = [n.sentence for n in pipeline.report.notices if n.code == "message-unread"]
    assert len(texts) == 2


def test_a_connection_that_is_lost_comes_back(
    tmp_path: Path, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_BACKOFF", consumers.Backoff(0.001, 0.002))
    given.waiting.append(ConnectionError("away"))
    lengths, pipeline = recorded(tmp_path, given, {50: command("0")})
    assert len(lengths) == 1
    assert any("away" in n.sentence for n in pipeline.report.notices)


@pytest.mark.parametrize(
    "uri", ["http://h/t", "mqtt://me:secret@h/t", "kafka-nonsense", "events+file:///x"]
)
def test_urls_of_specs(uri: str) -> None:
    with pytest.raises(ConfigError):
        ConsumerSpec(uri=uri)
