"""Network streams, cameras and pipes: sources that may be silent, end or come back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from time import monotonic
from typing import Any

import av

from headrace._core.errors import MediaError
from headrace._core.text import counted
from headrace.media.sources.containers import closed_options, open_url
from headrace.media.sources.decoded import DecodedSource, Decoding, pick_stream
from headrace.media.sources.feed import Connect, ConnectionLostError, Feed, PipeFile
from headrace.media.sources.gpu_decoding import gpu_decoding
from headrace.media.sources.playlists import PlaylistReach
from headrace.media.sources.reconnect import GaveUpError, Losses, ReconnectPolicy

OpenContainer = Callable[[Feed], Any]

# What may be missing of a recording at its end: stated lengths are rough, sound may be longer.
_END_S, _END_SHARE = 2.0, 0.1
_IN_DECODER = 64  # packets at most; H.264 and HEVC keep 16


class StreamSource(DecodedSource):
    """Frames of the first video stream of something that has to be waited for.

    Args:
        open_container: opens it with FFmpeg; called in a thread of its own.
        name: how to call it in messages; must not hold credentials.
        threads: decoder threads; None means 2.
        live: do not trade delay for speed, and come back after a loss.
        fps: rate of video without time stamps.
        timeout_s: a loss is when nothing arrives for so long.
        reconnect: how a live stream comes back; None: it ends, with a notice.
        wait: open it when it is read, not now; size and rate are unknown until then.
        gpu: number of the GPU that `open_container` asks to decode; None for none.
        decoding: what the decoder leaves out.
        renumber: frame numbers begin at 0 when it comes back after a loss.

    Raises:
        MediaError: it cannot be opened or holds no video.
    """

    def __init__(
        self,
        open_container: OpenContainer,
        name: str,
        *,
        source_id: int = 0,
        threads: int | None = None,
        live: bool = False,
        fps: float | None = None,
        timeout_s: float = 10.0,
        reconnect: ReconnectPolicy | None = None,
        wait: bool = False,
        gpu: int | None = None,
        decoding: Decoding | None = None,
        renumber: bool = False,
    ) -> None:
        super().__init__(name, source_id, threads, fps, gpu=gpu)
        self.live, self._renumber = live, renumber
        self._connect = _connector(open_container, name, threads, live, decoding or Decoding())
        self._timeout_s = timeout_s
        self._policy = reconnect if live else None
        self._losses = Losses(self.notices, name)
        self._attempt = self._tries = 0
        self._came_ns: dict[int | None, int] = {}  # of packets in the decoder, by their times
        self._cause: str | None = None
        self._feed: Feed | None = None
        self._stream: Any = None
        self._length_s = 0.0  # of a recording; 0 for what has no end
        self._played: tuple[float, float] | None = None  # first and last time of this connection
        if wait or (self._policy and self._policy.from_start):
            return
        try:
            self._open()
        except ConnectionLostError as lost:
            failure = self._failure(lost)
        except BaseException:  # Ctrl-C while it waits
            self._leave_feed()
            raise
        else:
            return
        raise failure  # outside the handler: nothing of FFmpeg's error stays with it

    def rename(self, name: str) -> None:
        """Give it another name, also where it loses its connection."""
        super().rename(name)
        self._losses.where = name

    def _open(self) -> bool:
        """Open a connection; False if the source was closed meanwhile.

        Raises:
            ConnectionLostError: there is none.
        """
        self._leave_feed()
        self._feed = feed = Feed(self._connect, self._timeout_s)
        if self._closing.is_set():  # too late for `close` to know this feed
            feed.leave()
        try:
            opened = feed.opened()
        except ConnectionLostError:
            feed.leave()
            raise
        if opened is None:
            return False
        container, self._stream = opened
        if self.given == 0:
            self._describe(container, self._stream)
        # An RTSP server that tells the length plays a recording: that has an end.
        recording = container.format.name == "rtsp" and container.duration
        self._length_s, self._played = float(container.duration) / 1e6 if recording else 0.0, None
        return True

    def _seen(self, packet: av.Packet[av.VideoStream]) -> None:
        if self.live and self._feed is not None:
            self._came_ns[packet.pts] = self._feed.came_ns
            if len(self._came_ns) > _IN_DECODER:  # of images that never came out
                del self._came_ns[next(iter(self._came_ns))]
        if self._length_s and packet.pts is not None:
            at = float(packet.pts * packet.time_base)
            first, last = self._played or (at, at)
            self._played = first, max(last, at)

    def _wall_ns(self, pts_ns: int, pts: int | None) -> int | None:
        came_ns = self._came_ns.pop(pts, None)
        return super()._wall_ns(pts_ns, pts) if came_ns is None else came_ns

    def _early_end(self) -> str | None:
        """How much of a recording came before the other side ended it, unless it was all."""
        if not self._length_s:
            return None
        first, last = self._played or (0.0, 0.0)
        if last - first >= self._length_s - max(_END_S, _END_SHARE * self._length_s):
            return None
        return f"the other side ended it after {last - first:.1f} of {self._length_s:.1f} s"

    def _failure(self, lost: ConnectionLostError) -> MediaError:
        if lost.error is not None:
            return lost.error
        return MediaError(
            f"cannot be opened: {lost.cause}",
            where=self.name,
            expected="a stream or device that answers",
            fix="check the address, the network, user and password",
        )

    def _packets(self) -> Iterator[av.Packet[av.VideoStream] | None]:
        """Packets of the present connection; sets `_cause` if it was lost."""
        assert self._feed is not None
        self._cause = None
        try:
            yield from self._feed.packets()
        except ConnectionLostError as lost:
            self._cause = lost.cause
            if not self._closing.is_set():
                yield None  # the decoder may still hold frames

    def _images(self) -> Generator[av.VideoFrame, None, None]:
        try:
            yield from self._all_images()
        finally:
            self._leave_feed()

    def _all_images(self) -> Generator[av.VideoFrame, None, None]:
        if self._feed is None and not self._first():
            return
        while True:
            since = monotonic()
            images = self._decode(self._stream, self._packets())
            while True:
                try:
                    image = next(images)
                except StopIteration as end:
                    gave_up = end.value
                    break
                if self._losses.away:
                    self._losses.back()
                    self.reconnects += self.given > 0
                    self._timeline.away()
                    if self._renumber:
                        self._first_number = self.given
                yield image
            if self._closing.is_set():
                return
            cause = gave_up or self._cause or self._early_end()
            if self._policy is None:
                if gave_up:
                    self._notice("reading-stopped", "warning", gave_up)
                elif cause:
                    self._notice("reading-stopped", "warning", f"reading stopped: {cause}")
                return
            if self._length_s and cause:
                self._finished()
                raise MediaError(
                    f"the recording broke off at frame {self.given}: {cause}",
                    where=self.name,
                    expected="an RTSP stream of stated length to come to its end",
                    fix="check the server and the network; a loss of a stream without a stated "
                    "length is waited for, but a recording would begin anew",
                )
            if self._length_s:
                return
            # A connection that held longer than the wait for it was a good one.
            if not self._losses.away and monotonic() - since > self._policy.longest_s(
                self._attempt
            ):
                self._attempt = 0
            if not self._again(cause or "the other side ended it"):
                return

    def _first(self) -> bool:
        """Open a late source; False if it was closed meanwhile."""
        try:
            return self._open()
        except ConnectionLostError as lost:
            if self._policy is None:
                failure = self._failure(lost)
            else:
                return self._again(lost.cause)
        raise failure

    def _again(self, cause: str) -> bool:
        """Wait and open until there is a connection; False once the source is closed."""
        policy = self._policy
        assert policy is not None
        if not self._losses.away:
            self._losses.lost(cause, self.given)
            self._tries = 0
        while not self._closing.is_set():
            if policy.attempts is not None and self._tries >= policy.attempts:
                break
            if self._closing.wait(policy.delay_s(self._attempt)):
                return False
            self._attempt += 1
            self._tries += 1
            try:
                return self._open()
            except ConnectionLostError as lost:
                cause = lost.cause
                self._losses.tried(cause)
        else:
            return False
        away_s = self._losses.away_s()
        self._losses.stopped()
        raise GaveUpError(
            f"the connection is lost and not back after {counted(self._tries, 'attempt')}"
            f" in {away_s:.1f} s: {cause}",
            where=self.name,
            fix="check the network and the other side, or allow more attempts (ReconnectPolicy)",
        )

    def _interrupt(self) -> None:
        self._losses.stopped()
        self._leave_feed()

    def _leave_feed(self) -> None:
        if self._feed is not None:
            self._feed.leave()

    def __del__(self) -> None:
        if getattr(self, "_feed", None) is not None:  # its thread would wait for ever
            self._leave_feed()

    def _release(self) -> None:
        super()._release()
        self._interrupt()


def _connector(
    open_container: OpenContainer,
    name: str,
    threads: int | None,
    live: bool,
    decoding: Decoding,
) -> Connect:
    """Connect, in a feed's thread. It must not hold the source, which may be forgotten."""

    def connect(feed: Feed) -> tuple[av.container.InputContainer, av.VideoStream]:
        container = open_container(feed)
        try:
            return container, pick_stream(
                container, name, threads=threads, live=live, decoding=decoding
            )
        except MediaError:
            container.close()
            raise

    return connect


def url_opener(
    url: str,
    timeout_s: float,
    *,
    format: str | None = None,
    options: Mapping[str, str],
    gpu: int | None = None,
    reach: PlaylistReach = "public",
) -> OpenContainer:
    """Opens a URL or device that FFmpeg knows; `gpu` and `reach` as for `open_source`.

    The time-out is PyAV's while it opens. While it reads it is the feed's, and `options` bring
    FFmpeg back to the thread: PyAV's takes Python's lock at each of FFmpeg's waits.
    """

    def opened(feed: Feed) -> Any:
        more = gpu_decoding(gpu)
        return open_url(url, timeout_s, feed, format=format, options=options, reach=reach, **more)

    return opened


def pipe_opener(path: str, timeout_s: float) -> OpenContainer:
    """Opens a named pipe."""
    return lambda feed: av.open(PipeFile(path, feed, timeout_s), options=closed_options(""))
