"""One connection, read by its own thread, so that no other has to wait for FFmpeg."""

from __future__ import annotations

import atexit
import os
import select
import threading
import weakref
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from time import monotonic, time_ns
from typing import Any

import av

from headrace._core.errors import MediaError
from headrace._core.threads import start_thread
from headrace.media.sources.decoded import reason_of

MAX_WAITING = 8  # packets; a slow reader holds the peer back, as without a thread
GRACE_S = 0.5  # PyAV's time-out of opening comes first: it says more

Connect = Callable[["Feed"], tuple[Any, "av.VideoStream"]]
"""Opens a connection for a feed: (feed) -> (av container, its video stream)."""


class ConnectionLostError(Exception):
    """The connection failed or fell silent.

    Attributes:
        cause: in words, without any address.
        error: what to tell the user if it is about what was found there, not about the way.
    """

    def __init__(self, cause: str, error: MediaError | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.error = error


class Feed:
    """Packets of one connection.

    The thread opens, reads and closes the container; calls of FFmpeg that do not come back in time
    (a name that is not resolved, a dead device) hold up the thread, never the one who waits here.

    Args:
        connect: called in the thread.
        timeout_s: how long to wait for the peer: to be opened, and for each packet.

    Attributes:
        left: nobody wants anything from it any more.
        came_ns: when the packet that was given last had come, in ns since 1970.
        at_close: called by the thread when the container is closed.
    """

    def __init__(self, connect: Connect, timeout_s: float) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        # C code, where a condition's Python would take as long as reading. None is the end, or that
        # the feed is left; in the second queue each item is room for a packet.
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(MAX_WAITING):
            self._room.put(None)
        self._opened: tuple[Any, av.VideoStream] | None = None
        self._failure: ConnectionLostError | None = None
        self._wanted = False
        self.left, self.came_ns = False, 0
        self.at_close: list[Callable[[], object]] = []
        _feeds.add(self)
        self._thread = start_thread(
            self._run,
            name="headrace-feed",
            failed=lambda error: self._fail(ConnectionLostError(self._cause(error))),
        )

    def opened(self) -> tuple[Any, av.VideoStream] | None:
        """Wait for the container and its stream; None if the feed was left meanwhile.

        Raises:
            ConnectionLostError: it cannot be opened.
        """
        # Opening and probing have a time-out each.
        until = monotonic() + 2 * self._timeout_s + GRACE_S
        with self._changed:
            while not (self.left or self._opened):
                if self._failure is not None:
                    raise self._failure
                rest = until - monotonic()
                if rest <= 0:
                    raise self._silence()
                self._changed.wait(rest)
            return None if self.left else self._opened

    def packets(self) -> Iterator[av.Packet[av.VideoStream]]:
        """Packets until the peer ends the stream or the feed is left; the last one is empty.

        Raises:
            ConnectionLostError: the connection failed, or nothing came for too long.
        """
        with self._changed:
            self._wanted = True
            self._changed.notify_all()
        while True:
            try:
                packet = self._items.get(timeout=self._timeout_s + GRACE_S)
            except Empty:
                raise self._silence() from None
            if isinstance(packet, ConnectionLostError):
                raise packet
            if packet is None or self.left:
                return
            self._room.put(None)
            packet, self.came_ns = packet
            yield packet

    def leave(self) -> None:
        """Stop, from any thread: every waiting thread comes back at once."""
        with self._changed:
            self.left = True
            self._changed.notify_all()
        self._items.put(None)
        self._room.put(None)

    def end(self) -> None:
        """Leave, and wait until FFmpeg comes back to the thread: as long as for a packet."""
        self.leave()
        self._thread.join(self._timeout_s + GRACE_S)

    def _run(self) -> None:
        container = None
        try:
            container, stream = self._connect(self)
            with self._changed:
                self._opened = container, stream
                self._changed.notify_all()
                while not (self._wanted or self.left):
                    self._changed.wait()
            self._read(container, stream)
        except MediaError as error:
            self._fail(ConnectionLostError(f"{error:brief}", error))
        except BaseException as error:  # whatever it is, someone waits for it
            self._fail(ConnectionLostError(self._cause(error)))
        finally:
            with self._changed:
                while not self.left:  # the reader may still ask the container something
                    self._changed.wait()
            if container is not None:
                container.close()
            for close in self.at_close:
                close()

    def _read(self, container: av.container.InputContainer, stream: av.VideoStream) -> None:
        # All streams: a generator that waits for video alone could not be left while sound comes.
        for packet in container.demux():
            if self.left:
                return
            if packet.stream.index != stream.index:
                continue
            came_ns = time_ns()
            self._room.get()
            self._items.put((packet, came_ns))
        self._items.put(None)

    def _fail(self, failure: ConnectionLostError) -> None:
        with self._changed:
            self._failure = failure
            self._changed.notify_all()
        self._items.put(failure)

    def _silence(self) -> ConnectionLostError:
        return ConnectionLostError(f"nothing came for {self._timeout_s:g} s")

    def _cause(self, error: BaseException) -> str:
        own = isinstance(error, TimeoutError) and not error.errno
        if own or isinstance(error, av.error.ExitError):  # how FFmpeg calls a time-out
            return self._silence().cause
        return reason_of(error)


_feeds: weakref.WeakSet[Feed] = weakref.WeakSet()


@atexit.register
def _end_feeds() -> None:
    """Bring threads home: FFmpeg asks Python whether to go on, which crashes once it is gone."""
    feeds = list(_feeds)
    for feed in feeds:
        feed.leave()
    for feed in feeds:
        feed.end()


class PipeFile:
    """A named pipe for FFmpeg to read, which can be left while it has no writer.

    Args:
        path: the pipe.
        feed: whose thread reads it and closes it.
        timeout_s: how long to wait for a writer, and for each piece of data.

    Raises:
        MediaError: nobody opens the pipe for writing.
    """

    name = "pipe"

    def __init__(self, path: str, feed: Feed, timeout_s: float) -> None:
        self._feed = feed
        self._timeout_s = timeout_s
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        feed.at_close.append(lambda: os.close(self._fd))
        if not self._readable():
            raise MediaError(
                f"no program wrote to this pipe for {timeout_s:g} s",
                where=path,
                fix="start the program that writes to it, or wait longer (timeout_s)",
            )

    def _readable(self) -> bool:
        until = monotonic() + self._timeout_s
        while not self._feed.left and monotonic() < until:
            if select.select([self._fd], [], [], 0.1)[0]:
                return True
        return False

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end.

        Raises:
            TimeoutError: the writer is silent.
        """
        if not self._readable():
            raise TimeoutError("the writer is silent")
        return os.read(self._fd, size)
