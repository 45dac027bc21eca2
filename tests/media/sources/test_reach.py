"""A stream's server leads to no address that was not named, unless its user says so."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace._core import _native
from headrace.errors import MediaError
from headrace.media import open_source
from headrace.media.sources.reach import ConnectionRule


class RtspServer:
    """Answers each request with what a test says; notes who connects, and what is asked."""

    def __init__(self, answer: Callable[[str, int], str]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answer, self.asked, self.links = answer, list[str](), 0
        self.port = self._listener.getsockname()[1]
        self.url = f"rtsp://127.0.0.1:{self.port}/live"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                self.links += 1
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            data = b""
            while piece := link.recv(4096):
                data += piece
                while b"\r\n\r\n" in data:
                    head, _, data = data.partition(b"\r\n\r\n")
                    lines = head.decode().splitlines()
                    number = next(line for line in lines if line.startswith("CSeq")).split()[1]
                    method = lines[0].split()[0]
                    self.asked.append(method)
                    status = self._answer(method, self.links)
                    link.sendall(f"RTSP/1.0 {status}CSeq: {number}\r\n\r\n".encode())

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def inner() -> Iterator[RtspServer]:
    """A server that nobody names."""
    server = RtspServer(lambda method, links: "404 Not Found\r\n")
    yield server
    server.close()


def _to(place: str) -> str:
    return f"302 Found\r\nLocation: {place}\r\n"


def _public_answers(method: str) -> str:
    return "200 OK\r\nPublic: OPTIONS, DESCRIBE\r\n" if method == "OPTIONS" else ""


@pytest.mark.parametrize("at", ["OPTIONS", "DESCRIBE", "the second connection"])
@pytest.mark.parametrize("reach", ["same", "public"])
def test_a_redirect_to_an_address_that_was_not_named_is_not_followed(
    inner: RtspServer, at: str, reach: Any
) -> None:
    def answer(method: str, links: int) -> str:
        if method == at or (links > 1 and method == "OPTIONS"):
            return _to(inner.url)
        return _public_answers(method) or _to(server.url)

    server = RtspServer(answer)
    with pytest.raises(MediaError, match=f"leads to 127.0.0.1:{inner.port}, an address") as raised:
        open_source(server.url, timeout_s=5, playlist_reach=reach)
    assert raised.value.code == "playlist-refused"
    assert server.asked
    assert inner.links == 0
    server.close()


def test_any_reach_follows_it(inner: RtspServer) -> None:
    server = RtspServer(lambda method, links: _to(inner.url))
    with pytest.raises(MediaError, match="cannot be opened"):
        open_source(server.url, timeout_s=5, playlist_reach="any")
    assert inner.asked == ["OPTIONS"]
    server.close()


@pytest.mark.parametrize("scheme", ["rtsps", "http", "file", "tcp"])
def test_a_redirect_to_another_protocol_reaches_nothing(inner: RtspServer, scheme: str) -> None:
    server = RtspServer(lambda method, links: _to(f"{scheme}://127.0.0.1:{inner.port}/x"))
    with pytest.raises(MediaError):
        open_source(server.url, timeout_s=5)
    assert inner.links == 0
    server.close()


def test_a_redirect_on_the_host_that_was_named_is_followed() -> None:
    def answer(method: str, links: int) -> str:
        if links == 1:
            return _to(f"rtsp://127.0.0.1:{server.port}/other")
        return _public_answers(method) or "404 Not Found\r\n"

    server = RtspServer(answer)
    with pytest.raises(MediaError, match="cannot be opened"):
        open_source(server.url, timeout_s=5)
    assert server.links == 2
    server.close()


@pytest.mark.parametrize(
    ("reach", "address", "port", "stream", "yes"),
    [
        ("public", "127.0.0.1", 554, True, True),
        ("public", "127.0.0.1", 22, True, False),
        ("public", "127.0.0.1", 5004, False, True),
        ("public", "10.0.0.1", 554, True, False),
        ("public", "8.8.8.8", 8554, True, True),
        ("same", "8.8.8.8", 554, True, False),
        ("public", "::1", 554, True, False),
    ],
)
def test_what_may_be_reached(reach: Any, address: str, port: int, stream: bool, yes: bool) -> None:
    rule = ConnectionRule("rtsp://user:secret@127.0.0.1/live", reach)
    assert rule(address, port, stream) is yes
    assert bool(rule.refused) is not yes


def test_a_rule_is_for_its_thread_and_ends_with_the_feed() -> None:
    feed: Any = SimpleNamespace(at_close=[])
    rule = ConnectionRule("rtsp://127.0.0.1/live", "same")
    rule.hold(feed)
    assert len(feed.at_close) == 1
    server = RtspServer(lambda method, links: "404 Not Found\r\n")
    with pytest.raises(MediaError):  # it has a thread of its own, and names this server
        open_source(server.url, timeout_s=5)
    assert server.links == 1
    for close in feed.at_close:
        close()
    assert _native.judge_connections(None) is False
    server.close()
