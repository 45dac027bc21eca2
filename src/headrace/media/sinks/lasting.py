"""Outputs that outlive their process: continued, rotated, and back when a disk has room again."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, cast

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import os_errors
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.text import counted
from headrace._core.threads import as_exception, start_thread
from headrace.media.frame import Frame
from headrace.media.sinks.base import Delivery, OutputState, Sink
from headrace.media.sinks.leftovers import finish_leftovers
from headrace.media.sinks.options import SinkOptions
from headrace.media.sinks.series import (
    PART,
    files_of,
    newest_number,
    next_number,
    numbered,
    size_of,
)
from headrace.media.sources.reconnect import Losses
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.media.sinks.jsonl import JsonLinesSink
    from headrace.media.sources.base import Source

OPTIONS = ("rotate", "size", "disk")
SAME_NAME = frozenset(("jsonl", "hls", "clip", "smart-record"))
"""Kinds that go on in what an earlier run wrote; others begin a file or folder of their own."""
_OWN_NAMES = frozenset(
    ("hls", "clip", "smart-record", "object-images")
)  # kinds that name their files themselves
_WITH_PIXELS = frozenset(("video", "images", "hls"))
_FOLDERS = frozenset(
    (
        "kitti",
        "kitti-track",
        "kitti-primary",
        "kitti-objects",
        "dota",
        "masks",
        "clip",
        "smart-record",
        "object-images",
    )
)
_PARTS_OF_DISK = 8  # a file has at most this share of the limit on disk
_LOOK_S = 0.5  # between two looks at sizes
_TRY_S = 2.0  # between two tries to go on after a failure
_ROOM_BYTES, _ROOM_SHARE = 16 << 20, 0.05  # that must be free, the smaller of both
_QUERY = re.compile(r"\?[a-z]+=[^/]*$")
_DURATION, _SIZE = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)"), re.compile(r"(\d+(?:\.\d+)?)([kMGT]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class Limits:
    """When a file is followed by the next one, and how much of them stays.

    Attributes:
        rotate_s: seconds that one takes; 0: no limit.
        size: bytes of one; 0: no limit.
        disk: bytes of all together: the oldest are removed; 0: no limit.
    """

    rotate_s: float = 0.0
    size: int = 0
    disk: int = 0

    @property
    def file_bytes(self) -> int:
        """Bytes of one file; 0: no limit."""
        share = max(1, self.disk // _PARTS_OF_DISK) if self.disk else 0
        return min(self.size, share) if self.size and share else self.size or share

    def __bool__(self) -> bool:
        return bool(self.rotate_s or self.size or self.disk)


def split_limits(kind: str, path: Path, name: str) -> tuple[Path, Limits]:
    """Part the options about an output's files from its path; others stay in it.

    Args:
        kind: of the output.
        path: `rec.mp4?rotate=1h&size=500M&disk=20G`, or without any.
        name: of the output, for errors.

    Raises:
        MediaError: a value is none, or means nothing for this kind.
    """
    match = _QUERY.search(path.name)
    if match is None or path.exists():
        return path, Limits()
    plain, query = path.with_name(path.name[: match.start()]), match[0][1:]
    own = [part for part in query.split("&") if part.partition("=")[0] in OPTIONS]
    rest = [part for part in query.split("&") if part not in own]
    if kind in _OWN_NAMES:
        wrong = [part for part in own if kind == "hls" or not part.startswith("disk=")]
        if wrong:
            fix = "segment=SECONDS&keep=N do it" if kind == "hls" else "longest=SECONDS, disk=BYTES"
            raise MediaError(f"{wrong[0]} means nothing for {kind}", where=name, fix=fix)
        if rest:
            plain = plain.with_name(f"{plain.name}?{'&'.join(rest)}")
    elif rest:
        own += rest  # refused by their names
    options = SinkOptions("&".join(own), name, OPTIONS)
    return plain, Limits(
        _amount(options, "rotate", _DURATION, _SECONDS, "a time such as 90s, 10m, 1h, 1d"),
        round(_amount(options, "size", _SIZE, _BYTES, "a size such as 500k, 100M, 2G")),
        round(_amount(options, "disk", _SIZE, _BYTES, "a size such as 500M, 20G")),
    )


def _amount(
    options: SinkOptions,
    name: str,
    form: re.Pattern[str],
    units: Mapping[str, float],
    expected: str,
) -> float:
    text = options.text(name)
    if not text:
        return 0.0
    match = form.fullmatch(text)
    if match is None or not float(match[1]):
        raise options.unknown(name, expected)
    return float(match[1]) * units[match[2]]


class LastingSink(Sink):
    """Writes one output into files of a series, over restarts and failures of its disk.

    Nothing that an earlier run wrote is emptied: JSON Lines, playlists and folders of clips go on,
    everything else gets the next number. What fails (a full disk) ends this output alone: it counts
    the frames that it does not write, and goes on in the next file when there is room.

    Args:
        name, path: of the output, without the options about files.
        kind: of the output.
        open_at: opens the output's own sink at a path.
        limits: when the next file begins, and how much of them stays; None: none.

    Attributes:
        dropped: frames that were not written.
        failures: how often writing failed.

    Raises:
        MediaError: it cannot be opened, for another reason than a full disk.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        kind: str,
        open_at: Callable[[Path], Sink],
        limits: Limits | None,
    ) -> None:
        super().__init__(name, path)
        self.kind = kind
        self.needs_pixels = kind in _WITH_PIXELS
        self.fills_folder = kind in _FOLDERS
        self.before_tracker = kind == "kitti-primary"
        self._first, self._open_at, self._limits = path, open_at, limits or Limits()
        self._losses = Losses(
            self.notices, name, "writing stopped at frame", "nothing was written", output=True
        )
        self._sources: dict[int, Source] = {}
        self._sink: Sink | None = None
        self._finishing: list[threading.Thread] = []
        self._since = self._looked = self._next_try = 0.0
        self._last_error = ""
        self._end_by: float | None = None
        self.dropped = self.failures = 0
        try:
            with os_errors(MediaError, "cannot be written", name):
                self._open()
        except MediaError as error:
            if not _is_full(error):
                raise
            self._fail(error, 0)

    @property
    def state(self) -> OutputState:
        """Whether it is written at present, and its counts."""
        return OutputState(
            self.name, self.kind, self._sink is not None, self.frames,
            self.failures, self.dropped, self._last_error,
        )  # fmt: skip

    def begin(self, source: Source) -> None:
        """Learn of a source."""
        self._sources[source.source_id] = source
        if self._sink is not None:
            self._sink.begin(source)

    def end(self, source_id: int) -> None:
        """Forget a source."""
        self._sources.pop(source_id, None)
        if self._sink is not None:
            self._guarded(0, partial(self._sink.end, source_id))

    def end_by(self, deadline: float) -> None:
        """Pass on when waiting must be over."""
        if self._sink is not None:
            self._sink.end_by(deadline)

    @property
    def delivery(self) -> Delivery | None:
        """Counts of the messages of the output's own sink."""
        return None if self._sink is None else self._sink.delivery

    def write(self, frame: Frame, meta: FrameMeta) -> None:
        """Append one frame, or count it as not written."""
        self.write_batch([frame], [meta])

    def write_batch(self, frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> None:
        """Append frames, or count them as not written.

        Raises:
            MediaError: the output is closed.
        """
        if self._closed:
            raise MediaError("frames come after the end", where=self.name)
        sink = self._ready()
        if sink is None:
            self.dropped += len(frames)
        else:
            self._guarded(len(frames), partial(sink.write_batch, frames, metas))

    def write_lines(self, lines: bytes) -> None:
        """Append whole lines that another process made, or count them as not written."""
        sink, count = self._ready(), lines.count(b"\n")
        if sink is None:
            self.dropped += count
        else:
            # only outputs of JSON Lines are given lines
            self._guarded(count, partial(cast("JsonLinesSink", sink).write_lines, lines))

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        self.write_batch([frame], [meta])

    def _guarded(self, count: int, work: Callable[[], None]) -> None:
        """Do a part of the work of the own sink; its failure ends this output, for now."""
        sink = self._sink
        assert sink is not None
        before = sink.frames
        try:
            work()
        except (HeadraceError, OSError) as error:
            self.frames += sink.frames - before
            self._fail(error, count - (sink.frames - before))
        else:
            self.frames += sink.frames - before

    def _fail(self, error: Exception, lost: int) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            with suppress(HeadraceError, OSError):
                sink.close()
        self.failures += 1
        self.dropped += lost
        finding = getattr(error, "finding", None)
        self._last_error = str(error) if finding is None else f"{finding:brief}"
        self._losses.lost(self._last_error, self.frames)
        self._next_try = monotonic() + _TRY_S

    def _ready(self) -> Sink | None:
        """The sink for the next frame; None while the output has failed."""
        now = monotonic()
        if self._sink is None:
            if now < self._next_try:
                return None
            self._next_try = now + _TRY_S
            if not self._room():
                return None
            try:
                self._open()
            except (HeadraceError, OSError) as error:
                self._losses.tried(str(error).partition("\n")[0])
                return None
            self._losses.back()
            return self._sink
        if self._limits and now - self._looked >= _LOOK_S:
            self._looked = now
            self._look(now)
        return self._sink

    def _room(self) -> bool:
        """Whether the disk has room again."""
        self._prune()
        folder = self._first.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            disk = os.statvfs(folder)
        except OSError:
            return False
        enough = min(_ROOM_BYTES, round(_ROOM_SHARE * disk.f_blocks * disk.f_frsize))
        return disk.f_bavail * disk.f_frsize >= enough

    def _open(self) -> None:
        """Finish the files of a killed run, and open the next one, or the one that goes on."""
        for thread in self._finishing:
            thread.join()
        for notice in finish_leftovers(self.kind, self._first):
            note_once(self.notices, notice)
        self._open_next(continued=True)

    def _open_next(self, *, continued: bool) -> None:
        path = self._first
        if self.kind == "jsonl":
            path = numbered(path, newest_number(path) if continued else next_number(path))
        elif self.kind not in SAME_NAME:
            path = numbered(path, next_number(path))
        sink = self._open_at(path)
        for notice in sink.notices:
            note_once(self.notices, notice)
        sink.notices = self.notices
        self._sink, self.path = sink, sink.path
        self._since = monotonic()
        for source in self._sources.values():
            sink.begin(source)

    def _look(self, now: float) -> None:
        """Begin the next file if it is time, and remove the oldest ones above the limit."""
        limits, sink = self._limits, self._sink
        assert sink is not None
        if self.kind not in _OWN_NAMES and sink.frames:
            part = sink.path.with_name(sink.path.name + PART)
            size = max(size_of(sink.path), size_of(part)) if limits.file_bytes else 0
            late = limits.rotate_s and now - self._since >= limits.rotate_s
            if late or (limits.file_bytes and size >= limits.file_bytes):
                self._rotate(sink)
        self._prune()

    def _rotate(self, sink: Sink) -> None:
        """Begin the next file; the one before is finished beside it."""
        try:
            self._open_next(continued=False)
        except (HeadraceError, OSError) as error:
            self._fail(error, 0)
            return
        self._finishing = [thread for thread in self._finishing if thread.is_alive()]
        self._finishing.append(
            start_thread(sink.close, name="headrace-finish", failed=self._not_finished)
        )

    def _not_finished(self, error: BaseException) -> None:
        self.failures += 1
        self._last_error = str(as_exception(error)).partition("\n")[0]
        text = f"a file could not be finished: {self._last_error}"
        note_once(self.notices, Finding("output-unfinished", "warning", text, self.name))

    def _prune(self) -> None:
        """Remove the oldest files until all together fit into the limit."""
        if not self._limits.disk:
            return
        if self.kind in ("clip", "smart-record"):
            files = sorted(self._first.glob("*.m[pk][4v]"), key=lambda file: file.stat().st_mtime)
        else:
            files = [file for _, file in files_of(self._first)]
        sizes = {file: size_of(file) for file in files}
        total = sum(sizes.values())
        current = None if self._sink is None else self._sink.path
        for file in files:
            if total <= self._limits.disk:
                return
            if file != current and not file.name.endswith(PART):
                _remove(file)
                total -= sizes[file]

    def _finish(self) -> None:
        for thread in self._finishing:
            thread.join()
        self._losses.stopped()
        if self.dropped:
            text = f"not written while the output had failed: {counted(self.dropped, 'frame')}"
            self._notice("frames-not-written", "warning", text)
        if self._sink is not None:
            self._sink.close()


class LastingClips(LastingSink):
    """Clips, over restarts and failures."""

    def record(self, source_id: int) -> bool:
        """Record from the next frame on; False if the source is not there, or nothing is written.

        See `ClipSink.record`.
        """
        record: Callable[[int], bool] = getattr(self._sink, "record", _nobody)
        return record(source_id)


def _nobody(_: int) -> bool:
    """While the output has failed, nothing is recorded."""
    return False


def _is_full(error: Exception) -> bool:
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            import shutil

            shutil.rmtree(path)
        else:
            path.unlink()
