"""Connections of the server: bounded in number, and in the time that the other side may take."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
_SILENT = logging.Logger("headrace.live", logging.CRITICAL)  # noqa: LOG001 - of no program
REQUEST_S = 10.0  # from the begin of a request to its end
ANSWER_S = 30.0  # for which an answer may wait to be read


class BoundedProtocol(H11Protocol):
    """Serves one connection, and closes it where the other side keeps it waiting.

    Above `MOST` connections, the one that has owed a request longest makes room for a new one, so
    that connections which are begun and never used keep nobody out.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.logger, self.access_log = _SILENT, False  # uvicorn's loggers are the program's
        self._since = 0.0
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def owes(self) -> bool:
        """True while a request, or its end, is waited for."""
        state: object = self.conn.their_state
        return state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and wait for a request."""
        super().connection_made(transport)
        # asyncio sets it for sockets that name their protocol, uvicorn's do not: the end of an
        # answer would wait 40 ms for the acknowledgement of its begin
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._since = self.loop.time()
        self._start("request", REQUEST_S)
        if len(self.connections) > MOST:
            owing = [c for c in self.connections if isinstance(c, BoundedProtocol) and c.owes]
            oldest = min(owing, key=lambda c: c._since)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if not self.owes:
            self._stop("request")
        elif "request" not in self._timers:
            self._start("request", REQUEST_S)

    def pause_writing(self) -> None:
        """Wait for the other side to read its answer."""
        super().pause_writing()
        self._start("answer", ANSWER_S)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._stop("answer")

    def connection_lost(self, error: Exception | None) -> None:
        """End the waiting."""
        self._stop("request")
        self._stop("answer")
        super().connection_lost(error)

    def _start(self, name: str, seconds: float) -> None:
        self._timers[name] = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()
