"""Streams over a socket: live, ended by the peer, or gone silent."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import pytest

from headrace import Pipeline
from headrace.errors import MediaError
from headrace.media import ReconnectPolicy, open_source
from headrace.media.sinks.jsonl import JsonLinesSink
from headrace.media.sources.stream import StreamSource
from tests.media.conftest import write_clip


@contextlib.contextmanager
def serve(data: bytes, *, hang: bool) -> Iterator[str]:
    """Send `data` to whoever connects, then close the connection or keep it open in silence."""
    done = threading.Event()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def work() -> None:
            with contextlib.suppress(OSError):
                peer, _ = server.accept()
                with peer:
                    peer.sendall(data)
                    if hang:
                        done.wait(20)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        done.set()
        thread.join(5)


@pytest.fixture
def stream(tmp_path: Path) -> bytes:
    return write_clip(tmp_path / "s.ts", 150).read_bytes()


def test_live_stream(stream: bytes) -> None:
    with serve(stream, hang=False) as url, open_source(url, timeout_s=5, reconnect=None) as source:
        assert source.live
        assert source.frames is None
        assert source.name == url
        times = [frame.pts_ns for frame in source]
    assert len(times) == 150
    assert all(b - a == 40_000_000 for a, b in itertools.pairwise(times))
    assert source.notices == []


def test_a_stream_that_goes_silent_ends_with_a_notice(stream: bytes) -> None:
    with serve(stream, hang=True) as url, open_source(url, timeout_s=1, reconnect=None) as source:
        frames = list(source)
    assert len(frames) >= 140
    told = [n for n in source.notices if n.level == "warning"]
    assert told[0].sentence == "reading stopped: nothing came for 1 s"
    assert told[0].where == url


def test_a_stream_has_the_name_that_it_was_added_with(stream: bytes, tmp_path: Path) -> None:
    lines = tmp_path / "o.jsonl"
    pipeline = Pipeline([], [], [JsonLinesSink("o.jsonl", lines)], keep_open=True)
    with serve(stream, hang=True) as url:
        pipeline.on_event("source", lambda e: e.name == "added" or pipeline.stop())
        pipeline.add_source(f"{url}?token=a", name="door", timeout_s=1, reconnect=None)
        before = time.time_ns()
        pipeline.run()
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {row["source"] for row in rows} == {"door"}
    assert all(before <= row["wall_ns"] <= time.time_ns() for row in rows)
    assert {n.where for n in pipeline.notices if n.level == "warning"} == {"door"}


@pytest.mark.slow
def test_ffmpeg_comes_back_from_a_silent_peer_by_itself(
    stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks nobody meanwhile: PyAV's own time-out takes Python's lock at each of its waits."""
    opened, av_open = [], av.open
    monkeypatch.setattr(av, "open", lambda *a, **k: opened.append(av_open(*a, **k)) or opened[-1])
    others = set(threading.enumerate())
    with serve(stream, hang=True) as url:
        with open_source(url, timeout_s=0.2, reconnect=None) as source:
            assert [container.read_timeout for container in opened] == [None]
            (reader,) = (
                t for t in set(threading.enumerate()) - others if t.name == "headrace-feed"
            )
            assert len(list(source)) >= 140
        reader.join(3)  # the peer keeps the connection open
        assert not reader.is_alive()


def test_closing_while_reading(clip: Path) -> None:
    source = open_source(str(clip))
    for frame in source:
        source.close()
        last = frame
    assert last.frame == 0
    assert last.planes[0].mean() > 0
    source.close()
    assert list(source) == []


class Recording:
    """A container as FFmpeg opens it for RTSP, that ends or fails after some packets."""

    def __init__(self, clip: Path, length_s: float, packets: int, error: Exception | None) -> None:
        self._container = av.open(str(clip))
        self._packets, self._error = packets, error
        self.format = SimpleNamespace(name="rtsp")
        self.duration = round(length_s * 1e6)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def demux(self) -> Iterator[Any]:
        yield from itertools.islice(self._container.demux(), self._packets)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    ("length_s", "packets", "error", "words"),
    [
        (6.0, 999, None, ""),
        (7.5, 999, None, ""),  # lengths are rough
        (60.0, 999, None, "at frame 150: the other side ended it after 6.0 of 60.0 s"),
        (6.0, 75, None, " of 6.0 s"),
        (6.0, 75, ConnectionResetError(104, "Connection reset by peer"), "reset by peer"),
    ],
)
@pytest.mark.sampled
def test_a_recording_that_breaks_off_is_an_error(
    tmp_path: Path, length_s: float, packets: int, error: Exception | None, words: str
) -> None:
    clip = write_clip(tmp_path / "s.ts", 150)
    opened: list[Recording] = []

    def connect(_: object) -> Recording:
        opened.append(Recording(clip, length_s, packets, error))
        return opened[-1]

    policy = ReconnectPolicy(0.01, 0.01, attempts=3)
    with StreamSource(connect, "rtsp://cam/1", live=True, reconnect=policy) as source:
        count = 0
        with pytest.raises(MediaError) if words else contextlib.nullcontext() as caught:
            for _ in source:
                count += 1
    assert len(opened) == 1  # it would begin anew
    assert count >= min(packets, 150) - 5
    if caught is not None:
        assert "the recording broke off" in str(caught.value)
        assert words in str(caught.value)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_is_no_stream(scheme: str) -> None:
    with pytest.raises(MediaError, match="headrace batch") as caught:
        open_source(f"{scheme}://key:secret@videos/a.mp4")
    assert "secret" not in str(caught.value)
