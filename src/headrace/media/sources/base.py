"""Base of all sources: a finite or live sequence of frames with a name and a size."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding, Level
from headrace._core.notices import note_once
from headrace.media.frame import Frame

if TYPE_CHECKING:
    from headrace.media.sources.packet_ring import PacketRing


class Source(ABC):
    """A sequence of frames, read once from start to end.

    Iterating a second time goes on where the first stopped; open the source again to start over.
    A source is read by one thread at a time; the frames it gives may be used by any, and any thread
    may `close` it: whoever reads it then comes to the end at once, even if nothing arrives.

    Attributes:
        name: what the user gave, without credentials.
        uri: the same, which `rename` leaves alone.
        source_id: number of the source in a pipeline, copied into every frame.
        width, height: size of the first frame in pixels. Later frames carry their own size,
            which may differ (a folder of images, a stream that changes resolution).
        fps: average frame rate; None where time has no meaning or the rate is unknown.
        frames: how many frames there will be, as far as the container says; None if unknown.
        live: frames arrive in real time and cannot wait (cameras, RTSP).
        notices: decisions and damage so far; grows while reading.
        skipped: frames that could not be decoded and were left out so far.
        reconnects: how often a lost connection came back so far.
        files: the images of a folder or pattern.
        decoder: `cpu` or `cuda`, where its images are decoded; empty for what is no video.
        begins_late: its decoder is made on a GPU, which makes one after the other.
    """

    def __init__(self, name: str, source_id: int = 0) -> None:
        self.name = self.uri = name
        self.source_id = source_id
        self.width = 0
        self.height = 0
        self.fps: float | None = None
        self.frames: int | None = None
        self.live = False
        self.notices: list[Finding] = []
        self.skipped = 0
        self.reconnects = 0
        self.files: Sequence[Path] = ()
        self.decoder = ""
        self.begins_late = False
        self._generator: Generator[Frame, None, None] | None = None
        self._closing = threading.Event()
        self._reading = threading.Lock()  # held by whoever is inside the generator
        self._released = False

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        """The next frame.

        Raises:
            MediaError: it cannot be read.
            RuntimeError: another thread is reading.
        """
        if not self._reading.acquire(blocking=False):
            if self._closing.is_set():
                raise StopIteration
            raise RuntimeError(f"{self.name} is read by two threads")
        try:
            return self._advance()
        except Exception as error:
            if not self._closing.is_set():
                raise
            raise StopIteration from error  # its decoder was closed under it
        finally:
            self._reading.release()
            if self._closing.is_set():
                self._release_once()

    def _advance(self) -> Frame:
        if self._closing.is_set():
            raise StopIteration
        if self._generator is None:
            self._generator = self._read()
        return next(self._generator)

    def rename(self, name: str) -> None:
        """Give it another name, for the frames and notices to come."""
        self.name = name

    def keep_packets(self, before_s: float) -> PacketRing | None:
        """Keep the video's last packets, `before_s` seconds back; None without a video.

        Call it before the source is read. A second call returns the same ring.
        """
        return None

    def go_on_keeping(self, ring: PacketRing, shift_ns: int) -> None:  # noqa: B027 - images have none
        """Keep packets in the ring of the source that this one follows.

        Args:
            ring: as `keep_packets` gave it.
            shift_ns: what is added to the times of this source.
        """

    def rewind(self) -> bool:
        """Begin again at the first frame, behind the last one.

        Returns:
            False where it must be opened again for that.
        """
        return False

    @abstractmethod
    def _read(self) -> Generator[Frame, None, None]:
        """The frames of this kind of source, from first to last; ends early once `_closing`."""

    def _interrupt(self) -> None:  # noqa: B027 - most sources never wait
        """Wake a thread that waits for this source; called once `_closing` is set."""

    def _release(self) -> None:  # noqa: B027 - most sources hold nothing
        """Release the source's resources; called once, when no thread reads it."""

    def close(self) -> None:
        """Stop reading, at once and from any thread. Frames already given stay valid."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._interrupt()
        self._release_once()

    def _release_once(self) -> None:
        """Release, unless someone reads: then the reader does it when it comes back."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            if self._released:
                return
            self._released = True
            if self._generator is not None:
                self._generator.close()
            self._release()
        finally:
            self._reading.release()

    def _notice(self, code: str, level: Level, message: str) -> None:
        note_once(self.notices, Finding(code, level, message, self.name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count = "" if self.frames is None else f", {self.frames} frames"
        return f"{type(self).__name__}({self.name!r}, {self.width}x{self.height}{count})"


class FailedSource(Source):
    """Fails with `error` as soon as it is read, so that it is reported like any that breaks off.

    Its notice is the one that the report of a run has for it.
    """

    def __init__(
        self, error: HeadraceError, name: str, source_id: int = 0, *, live: bool = False
    ) -> None:
        super().__init__(name, source_id)
        self.live = live
        what = str(error).removeprefix(f"{name}: ")
        self.notices.append(
            Finding("source-failed", "warning", f"failed after 0 frames: {what}", name)
        )
        self._error = error

    def _read(self) -> Generator[Frame, None, None]:
        raise self._error
        yield


class SteppedSource(Source):
    """Frames of another source: one of every `step`, without end if it loops.

    Frame numbers count the frames given; times go on from round to round.

    Args:
        source: the first round; closed with this one.
        reopen: opens it again for the next round; None ends with the first.
        step: 1 gives every frame, 3 the first of three.
        pace_s: seconds from one frame to the next at least; 0 gives each as soon as it is there.
    """

    def __init__(
        self,
        source: Source,
        *,
        reopen: Callable[[], Source] | None = None,
        step: int = 1,
        pace_s: float = 0.0,
    ) -> None:
        super().__init__(source.name, source.source_id)
        self.uri = source.uri
        self.width, self.height, self.live = source.width, source.height, source.live
        self.fps = None if source.fps is None else source.fps / step
        self.begins_late = source.begins_late
        looped = reopen is not None
        self.frames = None if source.frames is None or looped else -(-source.frames // step)
        self.notices, self.files = source.notices, source.files
        self._source = source
        self._reopen = reopen
        self._step, self._pace_s = step, pace_s

    def rename(self, name: str) -> None:
        """Give this source and the one behind it another name."""
        super().rename(name)
        self._source.rename(name)

    def keep_packets(self, before_s: float) -> PacketRing | None:
        """Keep packets of the first round, if there is no other: times go on, packets do not."""
        return self._source.keep_packets(before_s) if self._reopen is None else None

    def go_on_keeping(self, ring: PacketRing, shift_ns: int) -> None:
        """Keep packets of the first round, as `keep_packets`."""
        if self._reopen is None:
            self._source.go_on_keeping(ring, shift_ns)

    def _read(self) -> Generator[Frame, None, None]:
        count, start_ns, last_ns, gap_ns = 0, 0, 0, 0
        due = monotonic()
        while True:
            yielded = 0
            for number, frame in enumerate(self._source):
                if number % self._step:
                    continue
                pts_ns = start_ns + frame.pts_ns
                if yielded:
                    gap_ns = pts_ns - last_ns
                yielded, last_ns = yielded + 1, pts_ns
                if self._pace_s:
                    if self._closing.wait(max(0.0, due - monotonic())):
                        return
                    due = max(due, monotonic() - self._pace_s) + self._pace_s
                self.reconnects, self.skipped = self._source.reconnects, self._source.skipped
                self.decoder = self._source.decoder
                yield replace(
                    frame,
                    frame=count,
                    pts_ns=pts_ns,
                    source_id=self.source_id,
                    fps=None if frame.fps is None else frame.fps / self._step,
                )
                count += 1
            if self._reopen is None or self._closing.is_set() or not yielded:
                return
            start_ns = last_ns + max(gap_ns, 1)
            if not self._source.rewind():
                self._source.close()
                self._source = self._reopen()
                self._source.rename(self.name)
                self._source.notices = self.notices

    def _interrupt(self) -> None:
        self._source.close()

    def _release(self) -> None:
        self._source.close()
