"""Streams over a socket: live, ended by the peer, or gone silent."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from noria.media import open_source
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
    assert told[0].message == "reading stopped: nothing came for 1 s"
    assert told[0].where == url


def test_closing_while_reading(clip: Path) -> None:
    source = open_source(str(clip))
    for frame in source:
        source.close()
        last = frame
    assert last.frame == 0
    assert last.planes[0].mean() > 0
    source.close()
    assert list(source) == []
