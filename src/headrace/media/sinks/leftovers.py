"""Part files of killed runs: each is finished, or gets a name that ends in `.unfinished`."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace._core.files import PartFile, try_lock
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.media.sinks.naming import VIDEO_FORMATS
from headrace.media.sinks.series import PART, files_of, next_number, numbered, unfinished
from headrace.media.sinks.whole_video import cut_to_whole


def finish_leftovers(kind: str, path: Path) -> list[Finding]:
    """Finish the part files in the series of an output.

    One that another run is writing is left alone.

    Args:
        kind: of the output.
        path: its own name; of clips the folder.

    Returns:
        What was done, a notice each.

    Raises:
        OSError: as the system says, as on a full disk; the part file stays for the next time.
    """
    if kind in ("clip", "smart-record"):
        parts = sorted(path.glob(f"*{PART}"))
    else:
        parts = [file for _, file in files_of(path) if file.name.endswith(PART)]
    return [notice for part in parts if (notice := _finish(kind, path, part)) is not None]


def _finish(kind: str, path: Path, part: Path) -> Finding | None:
    with _ours(part) as ours:
        if not ours:
            return None
        if not part.stat().st_size:
            part.unlink()
            return None
        target = part.with_name(part.name.removesuffix(PART))
        if target.exists():
            target = (
                unfinished(part)
                if kind in ("clip", "smart-record")
                else numbered(path, next_number(path))
            )
        frames = _FINISH.get(kind, _not_at_all)(part, target)
        if frames:
            noun = "row" if kind in ("parquet", "arrow") else "frame"
            text = f"a run that was cut off left {part.name}: {target.name} has its "
            text += counted(frames, noun)
            return Finding("output-recovered", "info", text, str(target))
        if not part.exists():
            return None
        kept = unfinished(part)
        part.rename(kept)
        text = f"a run that was cut off left {part.name}, which cannot be finished: "
        return Finding("output-unfinished", "warning", f"{text}it is {kept.name} now", str(kept))


@contextmanager
def _ours(part: Path) -> Iterator[bool]:
    """Lock a part file; False where another run has it, or it is none."""
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        try_lock(descriptor)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def _video(part: Path, target: Path) -> int:
    """Cut a video behind its last whole fragment; one without any stays as it is."""
    frames = cut_to_whole(part, VIDEO_FORMATS.get(target.suffix.lower(), "mp4"), if_any=True)
    if frames:
        PartFile(target, part).finish()
    return frames


def _table(part: Path, target: Path) -> int:
    """Make the table of a journal; without rows there is none."""
    from headrace.media.sinks.table import table_of_journal

    for name in part.parent.glob(f".{glob.escape(target.name)}.*.tmp"):  # it was killed here
        name.unlink(missing_ok=True)
    try:
        return table_of_journal(part, target, if_any=True)
    except (ValueError, ImportError):  # pyarrow was there when it was begun
        return 0


def _not_at_all(part: Path, target: Path) -> int:
    return 0


_FINISH: dict[str, Callable[[Path, Path], int]] = {
    "video": _video, "clip": _video, "smart-record": _video, "parquet": _table, "arrow": _table,
}  # fmt: skip
