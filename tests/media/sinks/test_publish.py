"""Streams out: to a real RTSP server that dies and comes back, and as MPEG-TS over UDP."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import av
import pytest

from headrace.errors import MediaError
from headrace.media import ReconnectPolicy, open_sink
from headrace.media.sinks import publish
from headrace.media.sinks.publish import PublishSink
from tests.media.conftest import MakeMeta, gray_frame
from tests.media.sources.test_stream_rtsp import Server, available, wait_until
from tests.pipeline.fakes import FakeSource
from tests.ports import free_port

FAST = ReconnectPolicy(first_s=0.1, max_s=0.3, jitter=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if not available():
        pytest.skip("needs python3-gi, gir1.2-gst-rtsp-server-1.0 and GStreamer's good plugins")
    one = Server()
    one.start("--record", str(tmp_path / "in.ts"))
    yield one
    one.kill()


def images(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def send(sink: Any, make_meta: MakeMeta, numbers: range, pause_s: float = 0.02) -> float:
    """The longest time that one frame took."""
    longest = 0.0
    for i in numbers:
        frame = gray_frame(i, pts_ns=i * 20_000_000)
        start = time.perf_counter()
        sink.write(frame, make_meta(frame))
        longest = max(longest, time.perf_counter() - start)
        time.sleep(pause_s)
    return longest


def test_over_udp(make_meta: MakeMeta) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    listener.bind(("127.0.0.1", 0))
    with open_sink(f"udp://127.0.0.1:{listener.getsockname()[1]}", fps=50) as sink:
        send(sink, make_meta, range(50), 0)
    assert isinstance(sink, PublishSink)
    assert (sink.sent, sink.dropped) == (50, 0)
    listener.setblocking(False)
    data = b""
    while True:
        try:
            packet = listener.recv(65536)
        except BlockingIOError:
            break
        assert len(packet) % 188 == 0
        data += packet
    listener.close()
    assert data[::188] == b"G" * (len(data) // 188)
    decoder = av.CodecContext.create("h264", "r")

    with av.open(io.BytesIO(data), format="mpegts") as container:
        assert sum(len(decoder.decode(p)) for p in container.demux(video=0)) >= 49


def test_nothing_is_dropped_while_it_opens(
    make_meta: MakeMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = av.open

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.1)
        return opens(*arguments, **options)

    monkeypatch.setattr(av, "open", slowly)
    monkeypatch.setattr(publish, "_PATIENCE_S", 5.0)  # the machine may be busy
    with open_sink("udp://127.0.0.1:9", fps=50) as sink:
        send(sink, make_meta, range(20), 0)
    assert isinstance(sink, PublishSink)
    assert (sink.sent, sink.dropped) == (20, 0)


def test_a_video_keeps_its_pace(make_meta: MakeMeta) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    start = time.perf_counter()
    with open_sink(f"udp://127.0.0.1:{listener.getsockname()[1]}", fps=50) as sink:
        send(sink, make_meta, range(70), 0)
        assert sink.frames == 70
        while sink.sent < 62:
            time.sleep(0.01)
        assert time.perf_counter() - start > 0.2  # the first second goes ahead
    listener.close()


def test_a_video_keeps_its_pace_while_nobody_is_there(make_meta: MakeMeta) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"rtsp://127.0.0.1:{free.getsockname()[1]}/in"
    sink = PublishSink(url, Path(url), fps=50, reconnect=FAST)
    start = time.perf_counter()
    send(sink, make_meta, range(65), 0)
    assert time.perf_counter() - start > 0.2  # else an outage of seconds costs minutes of video
    with pytest.raises(MediaError, match="was sent"):
        sink.close()


def test_a_camera_whose_clock_jumps(make_meta: MakeMeta) -> None:
    """Frames of a live source are due when they come, whatever their times say."""
    with open_sink("udp://127.0.0.1:9", fps=50) as sink:
        assert isinstance(sink, PublishSink)
        sink.begin(cast("Any", FakeSource(1, live=True)))
        for i in range(40):
            frame = gray_frame(i, pts_ns=i * 20_000_000 + (i > 10) * 60_000_000_000)
            sink.write(frame, make_meta(frame))
            time.sleep(0.01)
    assert (sink.sent, sink.dropped) == (40, 0)


@pytest.mark.slow
def test_to_a_server_that_dies_and_comes_back(
    server: Server, tmp_path: Path, make_meta: MakeMeta
) -> None:
    url = server.url("ann:secret", "in")
    sink = PublishSink(url, Path(url), fps=50, reconnect=FAST)
    assert "secret" not in f"{sink.name}{sink.path}{sink!r}"
    send(sink, make_meta, range(60))
    wait_until(lambda: sink.sent > 30)
    server.kill()
    away = send(sink, make_meta, range(60, 140))
    assert away < 0.4  # the pipeline never waits longer for the other side
    lost = sink.sent
    assert any("is not back yet" in n.sentence for n in sink.notices)
    server.start("--record", str(tmp_path / "again.ts"))
    more = threading.Event()
    numbers = iter(range(140, 10_000))
    while not (sink.reconnects and sink.sent > lost + 40) and not more.wait(0.02):
        send(sink, make_meta, range(next(numbers), next(numbers)))
    sink.close()
    server.kill()
    assert sink.dropped > 20
    assert sink.sent + sink.dropped <= sink.frames
    assert images(tmp_path / "in.ts") > 20
    assert images(tmp_path / "again.ts") > 20
    assert not any("secret" in n.sentence + str(n.where) for n in sink.notices)


def test_a_server_that_is_never_there(make_meta: MakeMeta) -> None:
    port = free_port()
    url = f"rtsp://127.0.0.1:{port}/in"
    sink = PublishSink(url, Path(url), reconnect=FAST)
    assert send(sink, make_meta, range(30), 0.01) < 0.4
    with pytest.raises(MediaError, match="none of the 30 frames was sent: connection refused"):
        sink.close()
    assert (sink.sent, sink.dropped, sink.kept) == (0, 30, 0)


@pytest.mark.parametrize("url", ["udp://host", "udp://host:x", "rtsp://host", "rtsp:///path"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(MediaError, match="is no address to send to"):
        open_sink(url)


def test_a_path_before_the_address() -> None:
    url = "/home/ann/rtsp:/ann:secret@host/path"
    sink = PublishSink(url, Path(url))
    assert sink.name == "rtsp://host/path"
