"""Recordings of a source in the form of the original's smart record: by a timer, or on call."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from headrace._core.errors import MediaError
from headrace.media.frame import Frame
from headrace.media.sinks.clip import MP4_CODECS, ClipSink
from headrace.media.sinks.options import SinkOptions
from headrace.media.sources.packet_ring import PacketRing
from headrace.meta import FrameMeta

LOG = "smart_record.log"
_PREFIX = "Smart_Record"
_LONGEST_S = 300.0
_OPTIONS = ("prefix", "camera", "container", "before", "after", "interval", "cache")


class SmartRecordSink(ClipSink):
    """Records one source, without decoding or encoding anything for it.

    With an interval it starts and stops by turns, each time one interval later, by the times of the
    frames; without one, `Pipeline.record_clip` starts it. A recording begins at the key frame
    `before` seconds ahead of its start and ends `after` seconds behind it. Its name is
    `PREFIX_CAMERA_NNNNN_YYYYMMDD-HHMMSS_PID.mp4`, and a line of `smart_record.log` in the working
    folder has its number, width, height, milliseconds, folder and file.

    Args:
        name: `smart-record:DIR?prefix=Smart_Record&camera=0&container=mp4&before=1&after=10`, with
            `interval=10` for the timer and `cache=30` for the seconds that a call may go back.
        path: the folder, with the same options.

    Raises:
        MediaError: an option is unknown or out of range; the folder cannot be made.
    """

    kind = "smart-record"

    def __init__(self, name: str, path: Path) -> None:
        plain, _, query = path.name.partition("?")
        options = SinkOptions(query, name, _OPTIONS)
        before, after = (
            options.number(key, default, 600, "seconds")
            for key, default in (("before", 1.0), ("after", 10.0))
        )
        clip = f"{plain}?before={before:g}&after={after:g}&longest=600&on=call"
        super().__init__(f"clip:{path.with_name(clip)}", path.with_name(clip))
        self.name = name
        self._kept_s = max(before, options.number("cache", before, 600, "seconds"))
        self._prefix = options.text("prefix", _PREFIX)
        if "/" in self._prefix or not self._prefix.isprintable():
            raise MediaError("prefix is no part of a file's name", where=name)
        self._camera = options.whole("camera", 0, 1 << 31, "the camera's number")
        self._container = options.choice("container", ("mp4", "mkv"), "mp4")
        self._interval_ns = round(options.number("interval", 0, 86400, "seconds") * 1e9)
        self._ticks = -1  # of the timer so far
        self._first_ns: int | None = None
        self._session = 0
        self._size = (0, 0)
        self._began: dict[Path, int] = {}

    def record(
        self, source_id: int, *, back_s: float | None = None, length_s: float | None = None
    ) -> bool:
        """Begin a recording, unless one of the source is under way; see `ClipSink.record`."""
        if source_id in self._clips:
            return True
        return super().record(source_id, back_s=back_s, length_s=length_s)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        self._size = (frame.width, frame.height)
        if self._interval_ns:
            if self._first_ns is None:
                self._first_ns = meta.pts_ns
            ticks = (meta.pts_ns - self._first_ns) // self._interval_ns
            if ticks > self._ticks and ticks > 0:
                if ticks % 2:
                    self.record(meta.source_id)
                else:
                    self._close_clip(meta.source_id)
            self._ticks = ticks
        super()._write(frame, meta)

    def _path(self, label: str, ring: PacketRing) -> Path:
        suffix = self._container if ring.codec in MP4_CODECS else "mkv"
        time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        parts = (self._prefix, self._camera, f"{self._session:05d}", time, os.getpid())
        self._session += 1
        return self.path / f"{'_'.join(map(str, parts))}.{suffix}"

    def _finished(self, path: Path, length_ns: int) -> None:
        number, (width, height) = self._session - 1, self._size
        row = (number, width, height, length_ns // 1_000_000, path.parent, path.name)
        with Path(LOG).open("a", encoding="utf-8") as log:
            log.write(":".join(map(str, row)) + "\n")
