"""The frames on which set-ups and advice are tried: pairs in a row, where most is to be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError, MediaError
from headrace.media.frame import Frame
from headrace.media.sources.arrays import ArraySource
from headrace.media.sources.opening import open_source
from headrace.media.sources.video import VideoSource
from headrace.media.sources.video_span import VideoSpanSource
from headrace.media.sources.video_structure import VideoSpan, video_structure

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.media.sources.base import Source

_READ = 600  # frames of a video among which those for the trials are …
_PIXELS = 1920 * 1080  # … of this size; fewer of larger ones
_LARGEST = 1 << 28  # bytes of a video whose packets are all read to find where it can be cut
_ROWS, _COLUMNS = 24, 32  # points at which an image is held against the background
_SLOWEST = 0.02  # share of an image in the background, when many were seen


def frames_for_trials(
    source: Any, count: int, numbers: Sequence[int] = ()
) -> tuple[list[Frame], bool]:
    """Frames of a source: of a folder spread evenly, of a video those unlike its background.

    A video is divided into parts of the same length. The frame of each that differs most from the
    mean of those before it is taken, and the one after it, by which steadiness is measured. Of a
    long video the beginning of each part is read, where it can be cut there, else its beginning.
    A live source gives its next frames: it waits for nothing.

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
        most = max(count, round(_READ * min(1.0, _PIXELS / max(1, opened.width * opened.height))))
        total = opened.frames or most
        spans = _spans(opened, count, most, numbers) if moving and total > most else []
        if not spans:
            total = count if opened.live else min(total, most)
        choice = _Busiest(count, total) if moving and total > count else _Even(count, total)
        end, last = max([total - 1, *numbers]), -1
        for frame in _beginnings(opened, spans, most) if spans else opened:
            last = frame.frame
            if last in numbers:
                kept[last] = frame
            if last < total:
                choice.see(frame)
            if last >= end:
                break
    lost = [number for number in numbers if number not in kept]
    if lost:
        raise MediaError(
            f"there is no frame {lost[0]}",
            where=opened.name,
            expected=f"a frame from 0 to {last}" if last >= 0 else "a source with frames",
        )
    kept |= {frame.frame: frame for frame in choice.frames}
    if not kept:
        raise MediaError("there is no frame to try set-ups on", where=opened.name)
    return [kept[number] for number in sorted(kept)], moving


def frames_of_many(sources: Sequence[Any], count: int) -> Iterator[Frame]:
    """Yield frames for trials from some of many sources; one that cannot be read is left out.

    Args:
        sources: as `frames_for_trials` takes each; nothing is opened before the first is asked for.
        count: of frames from all of them.
    """
    step = max(1, len(sources) // count)
    chosen = sources[::step][:count]
    for source in chosen:
        with suppress(HeadraceError):
            yield from frames_for_trials(source, -(-count // len(chosen)))[0]


def _spans(opened: Source, count: int, most: int, numbers: Sequence[int]) -> list[VideoSpan]:
    """Parts of a long video, to read the beginning of each; none: it is read from its start."""
    if type(opened) is not VideoSource or opened.path.stat().st_size > _LARGEST:
        return []
    parts = max(2, count // 2)
    if max(numbers, default=0) >= most // parts:
        return []
    return video_structure(opened.path, opened.name).spans(-(-(opened.frames or most) // parts))


def _beginnings(opened: Source, spans: Sequence[VideoSpan], most: int) -> Iterator[Frame]:
    """The first frames of each span, numbered as in the whole video."""
    assert isinstance(opened, VideoSource)
    for span in spans:
        with VideoSpanSource(opened.path, opened.name, span) as part:
            yield from islice(part, most // len(spans))


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
