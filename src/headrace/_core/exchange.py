"""Bounds of an exchange with a server: bytes that it may answer, seconds, and an end from outside.

The clients of brokers and HTTP bound neither: a server that drips, or answers without end, would
hold their caller for ever, or fill the memory. Their connections are sockets of this module.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from time import monotonic
from typing import Any
from weakref import WeakSet

ANSWER_BYTES = 64 << 10
ANSWER_S = 5.0
_SLOWEST = 64 << 10  # bytes a second that a line takes at least
_MOST_AT_ONCE = 64 << 10


class Exchange:
    """Bounds the answers of a server: `ANSWER_BYTES` and some seconds for each exchange.

    Used from one thread; `stop` from any.

    Args:
        answer_s: seconds that an answer may take; None means `ANSWER_S`.
    """

    def __init__(self, answer_s: float | None = None) -> None:
        self._answer_s = ANSWER_S if answer_s is None else answer_s
        self._room, self._end = 0, 0.0
        self._stopped = threading.Event()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._tls: ssl.SSLContext | None = None

    def begin(self, sent_bytes: int = 0, *, returned: bool = False) -> None:
        """Begin an exchange.

        Args:
            sent_bytes: of the messages, which take time on the way.
            returned: the server may send them back.
        """
        self._room = ANSWER_BYTES + (sent_bytes if returned else 0)
        self._end = monotonic() + self._answer_s + sent_bytes / _SLOWEST

    def left_s(self, longest_s: float = float("inf")) -> float:
        """Seconds that are left, at most so many.

        Raises:
            OSError: none are, or nobody waits any more.
        """
        if self._stopped.is_set():
            raise ConnectionError("the end of the run came before the answer")
        left_s = self._end - monotonic()
        if left_s <= 0:
            raise TimeoutError("the server did not answer in time")
        return min(left_s, longest_s)

    def stop(self) -> None:
        """Wake the thread that waits for a server, at once and for good; safe from any thread."""
        self._stopped.set()
        for link in list(self._sockets):
            with suppress(OSError, ValueError):
                # of the connection below TLS, whose own objects belong to the other thread
                socket.socket.shutdown(link, socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Close the connections that a client has left open."""
        for link in list(self._sockets):
            with suppress(OSError):
                link.close()

    def bounded(self, link: socket.socket) -> socket.socket:
        """The connection of a plain socket, bounded; `link` is used up."""
        timeout = link.gettimeout()
        bounded = _bounded(socket.socket, self)(fileno=link.detach())
        bounded.settimeout(timeout)
        return self._known(bounded)

    def tls_context(self) -> ssl.SSLContext:
        """Settings of TLS with verified servers and bounded sockets."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.sslsocket_class = _bounded(ssl.SSLSocket, self)
        return self._tls

    def _known(self, link: socket.socket) -> socket.socket:
        self._sockets.add(link)
        if self._stopped.is_set():
            self.stop()
        return link

    def _wait(self, link: socket.socket) -> None:
        """Let a blocking call of a socket wait no longer than is left."""
        if link.gettimeout() != 0:
            link.settimeout(self.left_s(self._answer_s))
        else:
            self.left_s()

    def _ask(self, count: int) -> int:
        """Bytes that may be read at once.

        Raises:
            OSError: the server has said more than an answer has.
        """
        if self._room <= 0:
            raise ConnectionError(f"the server answers with more than {ANSWER_BYTES >> 10} kB")
        return min(count, self._room, _MOST_AT_ONCE)

    def _got(self, count: int) -> None:
        self._room -= count


def _bounded(base: type[Any], exchange: Exchange) -> type[Any]:
    """A class of sockets that read within an exchange."""

    class Bounded(base):  # type: ignore[misc]
        def do_handshake(self, *arguments: Any) -> None:
            exchange._known(self)
            super().do_handshake(*arguments)

        def recv(self, bufsize: int, flags: int = 0) -> bytes:
            count = exchange._ask(bufsize)
            exchange._wait(self)
            data: bytes = super().recv(count, flags)
            exchange._got(len(data))
            return data

        def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
            count = exchange._ask(nbytes or memoryview(buffer).nbytes)
            exchange._wait(self)
            got: int = super().recv_into(buffer, count, flags)
            exchange._got(got)
            return got

    return Bounded
