"""The frames on which set-ups are tried: pairs in a row, from where a video has most to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import MediaError
from headrace.media import ArraySource, open_source
from headrace.media.frame import Frame

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.media import Source

_READ = 600  # frames of a video among which those for the trials are
_ROWS, _COLUMNS = 24, 32  # points at which an image is held against the background
_SLOWEST = 0.02  # share of an image in the background, when many were seen


def frames_for_trials(
    source: Any, count: int, numbers: Sequence[int] = ()
) -> tuple[list[Frame], bool]:
    """Frames of a source: of a folder spread evenly, of a video those unlike its background.

    A video is divided into parts of the same length. The frame of each that differs most from the
    mean of those before it is taken, and the one after it, by which steadiness is measured.

    Args:
        source: a path or address, an array, a frame or an opened source, which is closed.
        count: how many.
        numbers: of frames that are taken besides.

    Returns:
        The frames in order, and whether they are of a video.

    Raises:
        MediaError: the source cannot be read, has no frames, or not one of those numbers.
    """
    if isinstance(source, Frame) or hasattr(source, "dtype"):
        source = ArraySource([source])
    opened: Source = source if hasattr(source, "skipped") else open_source(source)
    kept: dict[int, Frame] = {}
    with opened:
        moving = not opened.files and opened.fps is not None
        total = max(1, min(opened.frames or _READ, _READ))
        choice = _Busiest(count, total) if moving else _Even(count, total)
        end, last = max([total - 1, *numbers]), -1
        for frame in opened:
            last = frame.frame
            if last in numbers:
                kept[last] = frame
            if last < total:
                choice.see(frame)
            if last >= end:
                break
    lost = [number for number in numbers if number > last]
    if lost:
        raise MediaError(
            f"there is no frame {lost[0]}", where=opened.name, expected=f"frames 0 to {last}"
        )
    kept |= {frame.frame: frame for frame in choice.frames}
    if not kept:
        raise MediaError("there is no frame to try set-ups on", where=opened.name)
    return [kept[number] for number in sorted(kept)], moving


class _Even:
    """Takes frames at even distances.

    Args:
        count: how many.
        total: of how many.
    """

    def __init__(self, count: int, total: int) -> None:
        steps = max(1, count - 1)
        self._numbers = {round(i * (total - 1) / steps) for i in range(count)}
        self.frames: list[Frame] = []

    def see(self, frame: Frame) -> None:
        """Take the frame if it is one of them."""
        if frame.frame in self._numbers:
            self.frames.append(frame)


@dataclass(slots=True)
class _Part:
    """The frames of a part of a video that differ most from the background."""

    frames: list[Frame]
    difference: float


class _Busiest:
    """Takes the frame of each part of a video in which most is to be seen, and the next one.

    Args:
        count: how many.
        total: of how many.
    """

    def __init__(self, count: int, total: int) -> None:
        self._row = 2 if count > 2 else 1
        self._parts: dict[int, _Part] = {}
        self._count, self._total, self._seen = max(1, count // self._row), total, 0
        self._ground: Array | None = None

    def see(self, frame: Frame) -> None:
        """Hold a frame against the mean of those before it."""
        for part in self._parts.values():
            if len(part.frames) < self._row and part.frames[-1].frame == frame.frame - 1:
                part.frames.append(frame)
        points = _points(frame)
        self._seen += 1
        if self._ground is None:
            self._ground = points.copy()
        difference = float(np.abs(points - self._ground).mean())
        self._ground += max(_SLOWEST, 1 / self._seen) * (points - self._ground)
        place = frame.frame * self._count // self._total
        best = self._parts.get(place)
        if best is None or difference > best.difference:
            self._parts[place] = _Part([frame], difference)

    @property
    def frames(self) -> list[Frame]:
        """Those that were taken; one may be there twice."""
        return [frame for part in self._parts.values() for frame in part.frames]


def _points(frame: Frame) -> Array:
    """Levels at the points of a grid, of the first plane: luma, or the first colours."""
    plane = frame.planes[0]
    rows = np.linspace(0, plane.shape[0] - 1, _ROWS).astype(np.intp)
    columns = np.linspace(0, plane.shape[1] - 1, _COLUMNS).astype(np.intp)
    return plane[np.ix_(rows, columns)].astype(np.float32)
