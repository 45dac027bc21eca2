"""`MuxedSource`: a source of a `Muxer` with its thread, its frames that wait, and its counts."""

from __future__ import annotations

import threading
from collections import deque

from headrace.media import Frame, Source
from headrace.pipeline.backlog import Backlog
from headrace.pipeline.durations import Durations
from headrace.pipeline.report import SourceReport


class MuxedSource:
    """Guarded by the muxer's lock."""

    def __init__(self, index: int, source: Source, lock: threading.Lock) -> None:
        self.index = index
        self.source = source
        self.live = source.live
        self.items: deque[tuple[Frame, float]] = deque()  # with the time at which each came
        self.last_at: float | None = None  # when the latest came
        self.backlog = Backlog()
        self.room = threading.Condition(lock)
        self.ended = False  # the thread gives no more
        self.awaited = True  # a buffer waits for its frame
        self.decode_s = 0.0
        self.error: Exception | None = None
        self.removed = False  # on request, not at its end
        self.thread: threading.Thread | None = None
        self.report = SourceReport(source.source_id, source.name)
        self.latency = Durations()
        self.begins_late = getattr(source, "begins_late", False)

    @property
    def begun(self) -> bool:
        """Whether it has given a frame or ended, or needs no decoder that others wait for."""
        return self.last_at is not None or self.ended or not self.begins_late

    def next_s(self, began: float) -> float:
        """Seconds of the next frame that waits: in a file, or of its arrival since `began`."""
        frame, came_at = self.items[0]
        return came_at - began if self.live else frame.pts_ns / 1e9

    def counted(self) -> SourceReport:
        """Counts of the source so far; one that is none of Headrace's may lack some."""
        self.report.reconnects = getattr(self.source, "reconnects", 0)
        self.report.decoder = getattr(self.source, "decoder", "")
        self.report.latency_s = self.latency.to_dict()
        return self.report
