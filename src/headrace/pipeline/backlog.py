"""Backlogs of live sources: frames that came before they could be taken, at the begin.

Later a source that is too fast must not wait: its delay would grow without an end.
"""

from __future__ import annotations

from time import monotonic

_SILENCE_S = 1.0  # a source that gave nothing for so long begins anew
_CATCH_UP_S = 10.0  # of a begin: who has not caught up by then is too slow


class Backlog:
    """Judges whether a frame of a live source may wait for the pipeline.

    A server sends what it kept, opening a stream reads a second of it, and the network keeps more
    while models are loaded. So the first frames come faster than in real time, and a pipeline that
    is faster than the source needs time, not losses, to catch up.
    """

    def __init__(self) -> None:
        self._begun_at = self._last_at = float("-inf")
        self._behind_s = 0.0

    def patience_s(self, pts_ns: int) -> float:
        """Note a frame that was read just now; seconds for which it may wait for room.

        In the first seconds that is each frame that is not later than the first one was.

        Args:
            pts_ns: its time in the stream.
        """
        now = monotonic()
        behind_s = now - pts_ns / 1e9
        if now - self._last_at > _SILENCE_S:
            self._begun_at, self._behind_s = now, behind_s
        self._last_at = now
        if behind_s > self._behind_s:
            return 0.0
        return max(0.0, self._begun_at + _CATCH_UP_S - now)
