"""Pipes that a worker prints into, copied to the standard output and error of the application.

A worker gets pipes of its own. With the application's descriptors it could read what others print
there, change the files that they are, or make them fail.
"""

from __future__ import annotations

import os
import re
import select
import threading
import weakref
from contextlib import suppress
from functools import partial
from time import monotonic

from headrace._core.threads import say_failure, start_thread

_PIECE = 1 << 16
# All but tabs and ends of lines, and those of Unicode in UTF-8: they steer a terminal.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
_END_S = 1.0
_NAME = "headrace-prints"
_all: weakref.WeakSet[Prints] = weakref.WeakSet()


class Prints:
    """Copies the pipes of one worker until it and all processes that it started have ended.

    Attributes:
        ends: the worker's standard output and error, until `start`.
    """

    def __init__(self) -> None:
        self._copies: dict[int, int] = {}  # pipe -> where it goes
        self.ends: list[int] = []
        self._thread: threading.Thread | None = None
        try:
            for fd in (1, 2):
                here, there = os.pipe()
                self.ends.append(there)
                self._copies[here] = -1
                self._copies[here] = _duplicate(fd)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Begin to copy; the worker has its ends.

        Raises:
            HeadraceError: the system gives no further thread.
        """
        for fd in self.ends:
            os.close(fd)
        self.ends = []
        copies, self._copies = self._copies, {}
        try:
            self._thread = start_thread(
                partial(_copy, copies), name=_NAME, failed=partial(say_failure, _NAME)
            )
        except BaseException:
            self._copies = copies
            self.close()
            raise
        _all.add(self)

    def finish(self, seconds: float = _END_S) -> None:
        """Wait until all is copied that processes printed which have ended; at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Let go of all descriptors, if it was not started."""
        for fd in (*self.ends, *self._copies, *self._copies.values()):
            with suppress(OSError):
                os.close(fd)
        self.ends, self._copies = [], {}


def finish_all() -> None:
    """Wait for the last lines of workers, once they have ended."""
    until = monotonic() + _END_S
    for prints in list(_all):
        prints.finish(max(0.0, until - monotonic()))


def _duplicate(fd: int) -> int:
    try:
        return os.dup(fd)
    except OSError:  # the application has closed it
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _copy(copies: dict[int, int]) -> None:
    """Copy until every pipe ends, and close all."""
    poll = select.poll()
    for pipe in copies:
        poll.register(pipe, select.POLLIN)
    try:
        while copies:
            for pipe, _ in poll.poll():
                data = os.read(pipe, _PIECE)
                if data:
                    _write(copies[pipe], _CONTROL.sub(_shown, data))
                    continue
                poll.unregister(pipe)
                os.close(pipe)
                os.close(copies.pop(pipe))
    finally:
        for fds in copies.items():
            for fd in fds:
                os.close(fd)


def _shown(control: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % control[0][-1]


def _write(fd: int, data: bytes) -> None:
    """Write all of it, or drop it: a worker's prints end neither the worker nor the application."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BlockingIOError:
        ready = select.poll()
        ready.register(fd, select.POLLOUT)
        ready.poll()
        _write(fd, data)
    except OSError:
        pass
