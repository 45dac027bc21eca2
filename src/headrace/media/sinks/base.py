"""Base of all sinks: frames and their metadata are written to them, in order."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headrace._core.errors import MediaError
from headrace._core.files import PartFile, os_reason, refuse_link, try_lock
from headrace._core.findings import Finding, Level
from headrace._core.notices import note_once
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace.media.frame import Frame
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.media.sources.base import Source


def create(path: Path, name: str, *, follow: bool = True, keep: bool = False) -> int:
    """Open `path` for writing, empty or as it is; returns the descriptor.

    The file stays locked as long as it is open, so that two runs never write one file.

    Args:
        path: the file.
        name: of the output, for errors.
        follow: links to devices and pipes at `path` are followed, see `refuse_link`; False follows
            none: nobody chose the names of part files.
        keep: True leaves what is in the file.

    Raises:
        MediaError: it cannot be created, or another run is writing it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        if follow:
            refuse_link(path)
        if not (follow and path.is_symlink()):
            flags |= os.O_NOFOLLOW
        fd = os.open(path, flags, 0o666)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ELOOP and path.is_symlink() and not follow:
            raise MediaError(
                f"{path} is a link; a part of this output would be written to where it points",
                where=name,
                fix="remove the link",
            ) from error
        raise MediaError(f"cannot be created: {os_reason(error)}", where=name) from error
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            try_lock(fd)
            if not keep:
                os.ftruncate(fd, 0)
    except BlockingIOError as error:
        os.close(fd)
        raise MediaError(
            "another run is writing this output",
            where=name,
            fix="wait until it ends, or choose another output",
        ) from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_all(fd: int, data: bytes, *, size: int | None = None) -> None:
    """Write all of `data`, or, if the file's `size` so far is given, none of it.

    Raises:
        OSError: as the system says; EFBIG, ENOSPC and EDQUOT come after a partial write.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        if size is not None and len(view) < len(data):
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
        raise


def require_there(fd: int) -> None:
    """Raise FileNotFoundError if an open file was removed: bytes written to it are lost."""
    if not os.fstat(fd).st_nlink:
        raise FileNotFoundError(errno.ENOENT, "the file was removed")


class Delivery(PlainRecord, frozen=True):
    """Counts of the messages of an output.

    Attributes:
        output: its name, without secrets.
        sent: messages that the broker acknowledged.
        waiting: messages that wait in the spool.
        refused: messages that the broker refuses for what is in them.
        lost: messages that no broker will get.
        failures: attempts that failed.
        away: True while the latest attempt failed.
        last_error: reason of the latest failure; empty without one.
    """

    output: str
    sent: int
    waiting: int
    refused: int
    lost: int
    failures: int
    away: bool
    last_error: str


class OutputState(PlainRecord, frozen=True):
    """Whether an output is written at present, and its counts.

    Attributes:
        output: its name, without secrets.
        kind: one of `SINK_KINDS`.
        up: False while it has failed.
        frames: frames written.
        failures: how often writing failed.
        dropped: frames that were not written.
        last_error: reason of the latest failure; empty without one.
    """

    output: str
    kind: str
    up: bool
    frames: int
    failures: int
    dropped: int
    last_error: str


class Sink(ABC):
    """Takes frames in order, from one thread.

    Whatever ends the work (`close`, `abort`, an exception inside `with`), the file is finished so
    that what was written so far can be used. A sink that failed refuses further frames.

    Attributes:
        name: what the user gave.
        path: the file or folder that is written.
        kind: one of `SINK_KINDS`.
        needs_pixels: it shows the image, so give it drawn frames. Others use the frame's number,
            time and source only.
        before_tracker: it gets the boxes of the primary models as they are before a tracker.
        quick: a batch is written in microseconds, and waits for nobody.
        fills_folder: the path is the folder of its files; else they lie beside it.
        notices: decisions so far.
        frames: frames written so far.
        kept: frames that the finished file has; None before the end.
    """

    kind = ""
    needs_pixels = False
    before_tracker = False
    fills_folder = False
    quick = False

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.notices: list[Finding] = []
        self.frames = 0
        self.kept: int | None = None
        self._lost = 0  # objects without finite numbers
        self._closed = False
        self._broken = False  # a frame could not be written

    @property
    def folder(self) -> Path:
        """The folder that its files are in."""
        return self.path if self.fills_folder else self.path.parent

    def begin(self, source: Source) -> None:  # noqa: B027 - most sinks take frames alone
        """Learn of a source that frames will come from, before it is read."""

    def end(self, source_id: int) -> None:  # noqa: B027 - most sinks need not know
        """Learn that a source is over: every frame of it was written."""

    def end_by(self, deadline: float) -> None:  # noqa: B027 - most sinks wait for nobody
        """Learn when waiting for another side must be over, a time of `time.monotonic`.

        `close` follows at once; several outputs wait at the same time.
        """

    @property
    def delivery(self) -> Delivery | None:
        """Counts of its messages so far; None of an output that sends none."""
        return None

    @property
    def state(self) -> OutputState:
        """Whether it is written at present, and its counts."""
        delivery = self.delivery
        away = delivery is not None and delivery.away
        return OutputState(
            self.name, self.kind, not (self._broken or away), self.frames,
            int(self._broken) if delivery is None else delivery.failures,
            getattr(self, "dropped", 0), "" if delivery is None else delivery.last_error,
        )  # fmt: skip

    def write(self, frame: Frame, meta: FrameMeta) -> None:
        """Append one frame.

        Raises:
            MediaError: it cannot be written (disk full, no permission). The file is finished then;
                the message names it, the frame, and how many of the earlier ones are kept.
        """
        self._append(meta, partial(self._write, frame, meta))

    def _append(self, meta: FrameMeta, write: Callable[[], None]) -> None:
        """Run the function that appends a frame.

        Raises:
            MediaError: see `write`.
        """
        if self._closed:
            raise MediaError(f"frame {meta.frame} comes after the end", where=self.name)
        try:
            write()
        except OSError as error:
            self._broken = True
            with contextlib.suppress(MediaError):  # it would be about the same cause
                self.close()
            raise self._write_error(error, f"frame {meta.frame}") from error
        self.frames += 1

    def write_batch(self, frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> None:
        """Append frames, as `write` does with each.

        Raises:
            MediaError: as `write`; the frames before the one that failed are kept.
        """
        for frame, meta in zip(frames, metas, strict=True):
            self.write(frame, meta)

    def close(self) -> None:
        """Finish the file. May be called twice.

        Raises:
            MediaError: it cannot be finished; what could be kept is kept.
        """
        if self._closed:
            return
        self._closed = True
        if self._lost:
            self._notice(
                "objects-not-finite",
                "warning",
                f"{self._lost} objects without finite numbers were left out",
            )
        try:
            self._finish()
        except OSError as error:
            raise self._write_error(error, "its end") from error
        finally:
            if self.kept is None:
                self.kept = self.frames

    def abort(self, reason: str) -> None:
        """Finish the file early because of `reason`; never raises for a file that cannot be."""
        if self._closed:
            return
        self._notice(
            "output-cut", "warning", f"ends after {counted(self.frames, 'frame')}: {reason}"
        )
        try:
            self.close()
        except MediaError as error:
            note_once(self.notices, error.finding.changed(level="warning", where=self.name))

    @abstractmethod
    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        """Take one frame; an OSError is worded by `write`."""

    def _finish(self) -> None:  # noqa: B027 - single images are complete already
        """Finish the file; an OSError is worded by `close`.

        Sets `kept` if the file has fewer frames than were written. `_broken` says that a frame
        could not be written.
        """

    def _notice(self, code: str, level: Level, message: str) -> None:
        note_once(self.notices, Finding(code, level, message, self.name))

    def _write_error(self, error: OSError, at: str) -> MediaError:
        """Word the system's refusal to take a frame, or the end of the file."""
        if error.errno == errno.ENOENT:
            self.kept = 0
        kept = self.frames if self.kept is None else self.kept
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                problem = f"the disk is full: {at} could not be written"
            case errno.EFBIG:
                problem = f"the file may not grow further (size limit): {at} could not be written"
            case errno.EPIPE:
                problem = f"the reader has gone: {at} could not be written"
            case errno.ENOENT:
                gone = "it" if self.folder.exists() else f"its folder {self.folder}"
                problem = f"{gone} was removed during the run: {at} could not be written"
            case _:
                problem = f"{at} could not be written: {os_reason(error)}"
        if not kept and self.frames:
            fix = "none of the earlier frames is kept"
        elif kept < self.frames:
            fix = f"the first {kept} of {self.frames} earlier frames are kept"
        else:
            fix = f"{kept} earlier frames are kept"
        return MediaError(problem, where=str(self.path), fix=fix)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.abort("interrupted")
        else:
            self.abort(str(error).splitlines()[0] if str(error) else type(error).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.frames} frames)"


def spare_source(target: Path, frame: Frame, name: str) -> None:
    """Refuse to write over the image that a frame was read from.

    Raises:
        MediaError: `target` is that image.
    """
    source = Path(frame.source)
    if target.exists() and source.exists() and target.samefile(source):
        raise MediaError(
            f"{target} is the image being read; it would be overwritten",
            where=name,
            fix="write to another folder",
        )


def make_folder(folder: Path, name: str) -> None:
    """Create an output folder with its parents and check that it can be written to.

    Raises:
        MediaError: it cannot be made, is a file, or is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise MediaError(f"{folder} or a part of it is a file, not a folder", where=name) from error
    except (OSError, ValueError) as error:
        reason = os_reason(error)
        raise MediaError(f"the folder {folder} cannot be made: {reason}", where=name) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        fixed = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise MediaError(
            f"the folder {folder} "
            + ("is on a read-only file system" if fixed else "may not be written to"),
            where=name,
            fix="choose another output folder, or change its permissions",
        )


def part_of(path: Path, name: str, what: str) -> PartFile:
    """Make the folder of a file that is written under another name until it is finished.

    Returns:
        `NAME.part` beside the place where it goes.

    Raises:
        MediaError: the folder cannot be made, or something else than a file stands there.
    """
    make_folder(path.parent, name)
    _require_replaceable(path, name, what)
    return PartFile(path.absolute())


def _require_replaceable(path: Path, name: str, what: str) -> None:
    """Refuse a device, pipe, link or folder at `path`: a renamed file would replace it."""
    try:
        refuse_link(path)
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise MediaError(f"cannot be created: {os_reason(error)}", where=name) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or pipe, not a file"
        raise MediaError(f"is {kind}", where=name, expected=f"the name of a {what} file")
