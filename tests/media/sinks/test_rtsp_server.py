"""Streams of an own RTSP server, to real players and to programs that are none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import av
import pytest

from headrace.errors import MediaError
from headrace.media import Sink, open_sink
from headrace.media.sinks import rtsp_server
from headrace.media.sinks.coding import Coding
from headrace.media.sinks.publish import PublishSink
from tests.media.conftest import MakeMeta, gray_frame, luma_of
from tests.ports import free_port

SETUP = "SETUP rtsp://x/a RTSP/1.0\r\nCSeq: 1\r\nTransport: {}\r\n\r\n"


@contextmanager
def streaming(make_meta: MakeMeta, path: str = "a", **options: Any) -> Iterator[tuple[Sink, int]]:
    """An output that gets 50 frames a second, gray levels in turn, and its port."""
    port, over = options.pop("port", None) or free_port(), threading.Event()
    sink = open_sink(f"rtsp-server://127.0.0.1:{port}/{path}", fps=50, **options)

    def work() -> None:
        number = 0
        while not over.is_set():
            frame = gray_frame(number % 8, pts_ns=number * 20_000_000)
            sink.write(frame, make_meta(frame))
            number += 1
            time.sleep(0.02)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        yield sink, port
    finally:
        over.set()
        writer.join()
        sink.close()


def grays(address: str, count: int, **options: str) -> tuple[str, list[float]]:
    """The codec and the brightness of the first images that FFmpeg gets."""
    with av.open(address, options={"timeout": "9000000", **options}) as container:
        found = []
        for frame in container.decode(video=0):
            found.append(float(frame.to_ndarray()[: frame.height].mean()))
            if len(found) == count:
                break
        return container.streams.video[0].codec_context.name, found


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_players_see_the_frames(make_meta: MakeMeta, codec: str) -> None:
    with streaming(make_meta, coding=Coding(codec)) as (sink, port):
        name, found = grays(f"rtsp://127.0.0.1:{port}/a", 24, rtsp_transport="tcp")
        assert name == {"h264": "h264", "h265": "hevc"}[codec]
        levels = [luma_of(number) for number in range(8)]
        nearest = [min(range(8), key=lambda n: abs(levels[n] - gray)) for gray in found]
        assert [(b - a) % 8 for a, b in pairwise(nearest)] == [1] * 23
    assert isinstance(sink, PublishSink)
    assert sink.sent > 24
    assert (sink.dropped, rtsp_server._servers) == (0, {})


def test_a_player_that_asks_for_udp_comes_by_tcp(make_meta: MakeMeta) -> None:
    with streaming(make_meta) as (_, port):
        assert len(grays(f"rtsp://127.0.0.1:{port}/a", 3)[1]) == 3


def test_outputs_of_one_address_share_it_and_no_path(make_meta: MakeMeta) -> None:
    with streaming(make_meta) as (_, port), streaming(make_meta, "b", port=port):
        for path in "ab":
            assert len(grays(f"rtsp://127.0.0.1:{port}/{path}", 2, rtsp_transport="tcp")[1]) == 2
        with pytest.raises(MediaError, match="another output streams to /a there"):
            open_sink(f"rtsp-server://127.0.0.1:{port}/a")


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(MediaError, match=f"no RTSP server can listen at 127.0.0.1:{port}"):
            open_sink(f"rtsp-server://127.0.0.1:{port}/a")


@pytest.mark.parametrize(
    "address", ["rtsp-server://", "rtsp-server://127.0.0.1:8554", "rtsp-server://127.0.0.1:x/a"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(MediaError, match="rtsp-server"):
        open_sink(address)


def asked(port: int, data: bytes) -> bytes:
    """All that the server answers until it closes or says no more."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall(data)
        link.settimeout(0.5)
        answer = b""
        try:
            while piece := link.recv(1 << 16):
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
        return answer


REQUESTS: list[tuple[str, int | None]] = [
    ("OPTIONS * RTSP/1.0\r\nCSeq: 7\r\n\r\n", 200),
    ("DESCRIBE rtsp://x/none RTSP/1.0\r\nCSeq: 1\r\n\r\n", 404),
    (SETUP.format("RTP/AVP;unicast;client_port=9000-9001"), 461),
    (SETUP.format("RTP/AVP;unicast,RTP/AVP/TCP;interleaved=300-x"), 200),
    ("PLAY rtsp://x/a RTSP/1.0\r\nCSeq: 1\r\n\r\n", 454),
    ("RECORD rtsp://x/a RTSP/1.0\r\nCSeq: 1\r\n\r\n", 501),
    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    ("OPTIONS *\r\n\r\n", None),
    ("OPTIONS * RTSP/1.0\r\nCSeq: x\r\n\r\n", None),
    ("OPTIONS \0 RTSP/1.0\r\nCSeq: 1\r\n\r\n", None),
    ("OPTIONS * RTSP/1.0\r\nContent-Length: -1\r\n\r\n", None),
    ("\xff\xfe\r\n\r\n", None),
    ("x" * 100_000, None),
]


def test_each_request_has_its_answer_and_the_stream_goes_on(make_meta: MakeMeta) -> None:
    wrong = {}
    with streaming(make_meta) as (_, port):
        for text, status in REQUESTS:
            answer = asked(port, text.encode("latin-1"))
            right = answer.startswith(b"RTSP/1.0 %d " % status) if status else answer == b""
            if not right:
                wrong[text] = answer
        assert wrong == {}
        assert len(grays(f"rtsp://127.0.0.1:{port}/a", 2, rtsp_transport="tcp")[1]) == 2


def test_a_player_that_reads_nothing_delays_no_other(make_meta: MakeMeta) -> None:
    with (
        streaming(make_meta) as (sink, port),
        socket.create_connection(("127.0.0.1", port)) as link,
    ):
        play = "PLAY rtsp://x/a RTSP/1.0\r\nCSeq: 2\r\n\r\n"
        link.sendall((SETUP.format("RTP/AVP/TCP") + play).encode())
        before = sink.frames
        assert len(grays(f"rtsp://127.0.0.1:{port}/a", 20, rtsp_transport="tcp")[1]) == 20
        assert sink.frames > before + 10
