"""A source that starts over at its end, or gives only some of its frames."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from noria.media.frame import Frame
from noria.media.sources.base import Source


class SteppedSource(Source):
    """Frames of another source: one of every `step`, without end if it loops.

    Frame numbers count the frames given; times go on from round to round.

    Args:
        source: the first round; closed with this one.
        reopen: opens it again for the next round; None ends with the first.
        step: 1 gives every frame, 3 the first of three.
    """

    def __init__(
        self, source: Source, *, reopen: Callable[[], Source] | None = None, step: int = 1
    ) -> None:
        super().__init__(source.name, source.source_id)
        self.width, self.height, self.live = source.width, source.height, source.live
        self.fps = None if source.fps is None else source.fps / step
        looped = reopen is not None
        self.frames = None if source.frames is None or looped else -(-source.frames // step)
        self.notices, self.files = source.notices, source.files
        self._source = source
        self._reopen = reopen
        self._step = step

    def _read(self) -> Generator[Frame, None, None]:
        count, start_ns, last_ns, gap_ns = 0, 0, 0, 0
        while True:
            given = 0
            for number, frame in enumerate(self._source):
                if number % self._step:
                    continue
                pts_ns = start_ns + frame.pts_ns
                if given:
                    gap_ns = pts_ns - last_ns
                given, last_ns = given + 1, pts_ns
                self.reconnects, self.skipped = self._source.reconnects, self._source.skipped
                yield replace(frame, frame=count, pts_ns=pts_ns, source_id=self.source_id)
                count += 1
            if self._reopen is None or self._closing.is_set() or not given:
                return
            start_ns = last_ns + max(gap_ns, 1)
            self._source.close()
            self._source = self._reopen()
            self._source.notices = self.notices

    def _interrupt(self) -> None:
        self._source.close()

    def _release(self) -> None:
        self._source.close()
