"""Frames as a live stream: to an RTSP server, from one of our own, or as MPEG-TS over UDP."""

from __future__ import annotations

import io
import threading
from collections import deque
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import av

from headrace._core.errors import MediaError
from headrace._core.findings import Level
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace._core.urls import url_name
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink
from headrace.media.sinks.coding import CODEC_NAMES, Coding
from headrace.media.sinks.frame_encoder import FrameEncoder
from headrace.media.sinks.naming import PUBLISH_SCHEMES, stream_url
from headrace.media.sinks.rtsp_server import Mount
from headrace.media.sources.decoded import reason_of
from headrace.media.sources.reconnect import Losses, ReconnectPolicy
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.media.sources.base import Source

_ROOM = 8  # frames that wait for the encoder
_PATIENCE_S = 0.25  # a frame waits so long for room, once; then frames are dropped
_AHEAD_S = 1.0  # a video may be so much ahead of the clock
_TIMEOUT_S = 5.0
_END_S = 4.0  # for what waits, at the end
_GOP_S = 1.0  # who joins waits so long for an image
_OPTIONS = {"crf": "23", "preset": "veryfast", "tune": "zerolatency"}
_FORMATS: dict[str, tuple[str, dict[str, str]]] = {
    "rtsp": ("rtsp", {"rtsp_transport": "tcp", "timeout": str(round(_TIMEOUT_S * 1e6))}),
    "rtsps": ("rtsp", {"rtsp_transport": "tcp", "timeout": str(round(_TIMEOUT_S * 1e6))}),
    "udp": ("mpegts", {}),
    "rtsp-server": ("h264", {}),
}
_SERVER_PORT = 8554


class PublishSink(Sink):
    """Encodes frames in a thread of its own and sends them to the other side.

    The pipeline never waits for the other side: while it is away, or slower than the frames, frames
    are dropped and counted, and the connection is tried again with growing distance. Videos are
    held to their own pace, whether the other side is there or not; live sources have theirs.

    Args:
        name: `rtsp://HOST/PATH`, `rtsps://…` or `udp://HOST:PORT`; user and password may stand in
            it and appear nowhere. `rtsp-server://HOST:PORT/PATH` serves players itself, at this
            address of this machine.
        fps: expected frame rate.
        threads: encoder threads; None lets the encoder choose.
        coding: the codec and its settings; None is H.264.
        reconnect: how it comes back after a loss.

    Attributes:
        sent: frames that were sent.
        dropped: frames that were not.
        reconnects: how often a lost connection came back.

    Raises:
        MediaError: the address lacks its host, port or path, nothing can listen there, or the codec
            is none of streams.
    """

    kind = "publish"
    needs_pixels = True

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        fps: float | None = None,
        threads: int | None = None,
        coding: Coding | None = None,
        reconnect: ReconnectPolicy | None = None,
    ) -> None:
        self._url = stream_url(name)
        shown = url_name(self._url)
        super().__init__(shown, Path(shown))
        url = urlsplit(self._url)
        self._format, self._options = _FORMATS[url.scheme.lower()]
        try:
            self._port = url.port
            whole = bool(url.hostname and (self._port if self._format == "mpegts" else url.path))
        except ValueError:  # no number of a port
            whole = False
        if not whole:
            raise MediaError(
                "is no address to send to",
                where=shown,
                expected=", ".join(PUBLISH_SCHEMES.values()),
            )
        self._coding = coding or Coding()
        if self._coding.codec not in ("h264", "h265"):
            codec = CODEC_NAMES[self._coding.codec]
            raise MediaError(f"no stream is sent as {codec}", where=shown, expected="h264 or h265")
        self._rate = Fraction(fps or 25.0).limit_denominator(1001)
        self._threads = threads
        self._policy = reconnect or ReconnectPolicy(max_s=10.0)
        self._losses = Losses(self.notices, shown)
        self._items: deque[tuple[Frame, FrameMeta]] = deque()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._connected = self._slow = False
        self._opening = True  # for the first time: it is not away yet
        self._live = False
        self._clocks: dict[int, tuple[float, int]] = {}  # of each video: when a time was due
        self._cause = "the other side took none in time"
        self.sent = self.dropped = self.reconnects = 0
        self._thread: threading.Thread | None = None
        self._end_by = float("inf")
        self._mount = self._served(url) if url.scheme.lower() == "rtsp-server" else None

    def _served(self, url: SplitResult) -> Mount:
        """The stream of an own server."""
        host, port = url.hostname or "", self._port or _SERVER_PORT
        try:
            return Mount(host, port, url.path, self._coding.codec)
        except OSError as error:
            raise MediaError(
                f"no RTSP server can listen at {host}:{port}: {reason_of(error)}",
                where=self.name,
                fix="choose another port, or an address of this machine",
            ) from error

    def begin(self, source: Source) -> None:
        """Learn whether frames come in real time."""
        self._live = self._live or source.live

    def end(self, source_id: int) -> None:
        """Forget the pace of a video that is over."""
        self._clocks.pop(source_id, None)

    def end_by(self, deadline: float) -> None:
        """Send until then."""
        self._end_by = deadline

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if not self._live:
            start, start_ns = self._clocks.setdefault(meta.source_id, (monotonic(), meta.pts_ns))
            sleep(max(0.0, (meta.pts_ns - start_ns) / 1e9 - (monotonic() - start) - _AHEAD_S))
        with self._changed:
            if self._thread is None:
                self._thread = start_thread(
                    self._run, name="headrace-publish", failed=self._give_up
                )
            there = self._connected or self._opening
            if len(self._items) >= _ROOM and there and not self._slow:
                self._slow = not self._changed.wait_for(
                    lambda: len(self._items) < _ROOM, _PATIENCE_S
                )
            while len(self._items) >= _ROOM:
                self._items.popleft()
                self.dropped += 1
            self._items.append((frame, meta))
            self._changed.notify_all()

    def _finish(self) -> None:
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(min(_END_S, max(0.0, self._end_by - monotonic())))
        if self._mount is not None:
            self._mount.close()
        self._losses.stopped()
        self.dropped += len(self._items)
        self._items.clear()
        self.kept = self.sent
        if self.dropped and not self.sent:
            raise MediaError(
                f"none of the {self.frames} frames was sent: {self._cause}",
                where=self.name,
                fix="start the server that takes the stream, or write another address",
            )
        if self.dropped:
            self._notice(
                "frames-not-sent",
                "warning",
                f"{self.dropped} of {self.frames} frames were not sent: the other side was away "
                "or too slow",
            )

    # The thread.

    def _give_up(self, error: BaseException) -> None:
        """Send nothing more: the frames that follow are dropped and counted."""
        self._cause = error_text(error)
        with self._changed:
            self._connected = self._opening = False
            self._changed.notify_all()
        if not self._losses.away:
            self._losses.lost(self._cause, self.sent)

    def _run(self) -> None:
        attempt, away = 0, False
        while (first := self._first()) is not None:
            cause = self._connection(first, came_back=away)
            if cause is None:
                return
            self._cause = cause
            attempt = 0 if self._connected else attempt + 1
            with self._changed:
                self._connected = self._opening = False
                self._changed.notify_all()
            if self._losses.away:
                self._losses.tried(cause)
            else:
                self._losses.lost(cause, self.sent)
            away = True
            if self._ending.wait(self._policy.delay_s(attempt)):
                return

    def _first(self) -> tuple[Frame, FrameMeta] | None:
        """The next frame, which stays in the queue; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._ending.is_set())
            return self._items[0] if self._items else None

    def _container(self) -> av.container.OutputContainer:
        """Open the other side; an own server's images need a container for their encoder alone."""
        if self._mount is not None:
            format = "hevc" if self._coding.codec == "h265" else "h264"
            return av.open(io.BytesIO(), "w", format=format)
        return av.open(
            self._url, "w", format=self._format, options=self._options, timeout=_TIMEOUT_S
        )

    def _connection(self, first: tuple[Frame, FrameMeta], *, came_back: bool) -> str | None:
        """Send over one connection until the end, or why it was lost."""
        container: av.container.OutputContainer | None = None
        try:
            container = self._container()
            encoder = FrameEncoder(
                container, first[0], rate=self._rate, name=self.name, notice=self._note,
                options=_OPTIONS, threads=self._threads, gop_s=_GOP_S, coding=self._coding,
            )  # fmt: skip
            mux = container.mux if self._mount is None else self._mount.mux
            container.start_encoding()
            with self._changed:
                self._connected, self._slow = True, False
            if came_back:
                self.reconnects += 1
                self._losses.back()
            while self._first() is not None:
                with self._changed:
                    item = self._items.popleft()
                    self._slow = False
                    self._changed.notify_all()
                mux(encoder.encode(*item))
                self.sent += 1
            mux(encoder.flush())
        except MediaError as error:
            return f"{error:brief}"
        except Exception as error:  # whatever an encoder or the network does, it is tried again
            return reason_of(error)
        finally:
            if container is not None:
                _close(container)
        return None

    def _note(self, code: str, level: Level, message: str) -> None:
        with self._changed:
            self._notice(code, level, message)


def _close(container: av.container.OutputContainer) -> None:
    # the peer may have gone: then there is nobody to tell
    with suppress(OSError, ValueError, RuntimeError, av.error.FFmpegError):
        container.close()
