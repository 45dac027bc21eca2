"""A source that is opened again after any failure."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.text import counted, error_text
from headrace.media.frame import Frame
from headrace.media.sources.base import FailedSource, Source
from headrace.media.sources.packet_ring import PacketRing
from headrace.media.sources.reconnect import GaveUpError, Losses, ReconnectPolicy


class RetriedSource(Source):
    """Frames of another source, which is opened again when it fails: numbers and times go on.

    A source that comes to its end has not failed. One that has made the attempts of its own policy
    is not tried again.

    Args:
        source: the first one; closed with this one.
        reopen: opens it again.
        policy: when, and how often.
    """

    def __init__(
        self, source: Source, reopen: Callable[[], Source], policy: ReconnectPolicy
    ) -> None:
        super().__init__(source.name, source.source_id)
        self.uri = source.uri
        self.width, self.height, self.fps = source.width, source.height, source.fps
        self.frames, self.live, self.files = source.frames, source.live, source.files
        self.begins_late = source.begins_late
        self.notices = [] if isinstance(source, FailedSource) else source.notices
        self._source, self._reopen, self._policy = source, reopen, policy
        self._losses = Losses(self.notices, source.name)
        self._reopened = 0
        self._ring: PacketRing | None = None

    def rename(self, name: str) -> None:
        """Give this source and the one behind it another name."""
        super().rename(name)
        self._losses.where = name
        self._source.rename(name)

    def keep_packets(self, before_s: float) -> PacketRing | None:
        """Keep packets, those of a source that is opened again in the same ring."""
        self._ring = self._source.keep_packets(before_s)
        if self._ring is None and isinstance(self._source, FailedSource):
            self._ring = PacketRing(before_s)
        return self._ring

    def _read(self) -> Generator[Frame, None, None]:
        given, start_ns, last_ns = 0, 0, 0
        attempt = tries = 0
        while True:
            first = given
            try:
                for frame in self._source:
                    if self._losses.away:
                        self._losses.back()
                        self._reopened += 1
                        attempt = tries = 0
                    last_ns = start_ns + frame.pts_ns
                    self.reconnects = self._reopened + self._source.reconnects
                    self.skipped, self.decoder = self._source.skipped, self._source.decoder
                    yield replace(
                        frame, frame=first + frame.frame, pts_ns=last_ns, source_id=self.source_id
                    )
                    given = first + frame.frame + 1
            except GaveUpError:
                raise
            except HeadraceError as error:
                failure: HeadraceError = error
            except Exception as error:  # whatever a decoder does
                failure = MediaError(error_text(error), where=self.name)
            else:
                return
            cause = f"{failure:brief}"
            while True:
                if self._losses.away:
                    self._losses.tried(cause)
                else:
                    self._losses.lost(cause, given)
                if self._closing.is_set():
                    return
                if self._policy.attempts is not None and tries >= self._policy.attempts:
                    self._losses.stopped()
                    raise MediaError(
                        f"{cause}; it was tried again {counted(tries, 'time')}", where=self.name
                    ) from failure
                if self._closing.wait(self._policy.delay_s(attempt)):
                    return
                attempt, tries = attempt + 1, tries + 1
                try:
                    self._source.close()
                    self._source = self._reopen()
                except HeadraceError as error:
                    failure, cause = error, f"{error:brief}"
                    continue
                if self._closing.is_set():  # too late for `close` to know this one
                    return
                self._source.rename(self.name)
                start_ns = last_ns + round(1e9 * self._losses.away_s())
                if self._ring is not None:
                    self._source.go_on_keeping(self._ring, start_ns)
                break

    def _interrupt(self) -> None:
        self._losses.stopped()
        self._source.close()

    def _release(self) -> None:
        self._interrupt()
