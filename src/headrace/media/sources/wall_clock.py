"""The wall-clock time of a recording, read from the head of its file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_EXIF_OF_PHOTO = 0x8769
_TAKEN, _TAKEN_PARTS, _TAKEN_ZONE = 0x9003, 0x9291, 0x9011  # DateTimeOriginal and what goes with it
_LEAST = datetime(1980, 1, 1, tzinfo=UTC)  # cameras without a clock write 1904 or 1970


def wall_time_of_zero(container: Any, stream: Any) -> int | None:
    """The wall-clock time of a video's presentation time 0.

    Args:
        container, stream: of PyAV. MP4, MOV, MKV and others say when recording began
            (`creation_time`): that is the time of the first frame.

    Returns:
        Nanoseconds since 1970, UTC; None if the file has no time, or one before 1980.
    """
    text = container.metadata.get("creation_time") or stream.metadata.get("creation_time")
    began = None if text is None else _parsed(str(text))
    if began is None:
        return None
    start_ns = 0
    if stream.start_time is not None and stream.time_base:
        start_ns = round(float(stream.start_time * stream.time_base) * 1e9)
    return began - start_ns


def wall_time_of_photo(exif: Any) -> int | None:
    """The wall-clock time at which a photo was taken.

    Args:
        exif: Pillow's `Image.Exif`.

    Returns:
        Nanoseconds since 1970, UTC; None without `DateTimeOriginal`, or without
        `OffsetTimeOriginal`: the zone of a camera is not guessed.
    """
    if not len(exif):
        return None
    tags = exif.get_ifd(_EXIF_OF_PHOTO)
    taken, zone = tags.get(_TAKEN), tags.get(_TAKEN_ZONE)
    if not isinstance(taken, str) or not isinstance(zone, str):
        return None
    date, _, clock = taken.strip("\0 ").partition(" ")
    parts = str(tags.get(_TAKEN_PARTS, "")).strip("\0 ")
    parts = f".{parts}" if parts.isascii() and parts.isdecimal() else ""
    return _parsed(f"{date.replace(':', '-')}T{clock}{parts}{zone.strip(chr(0) + ' ')}")


def _parsed(text: str) -> int | None:
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None or time < _LEAST:
            return None
        since = time - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
