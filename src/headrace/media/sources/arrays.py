"""Arrays in memory as a source: images of one's own."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence, Sized
from dataclasses import replace

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.types import Array
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.sources.base import Source

_STEP_FPS = 25.0
_FORMATS = (PixelFormat.BGR, PixelFormat.RGB, PixelFormat.GRAY)


class ArraySource(Source):
    """Frames from an iterable of arrays, or of `Frame`s.

    Arrays are not copied: do not write to one that was given. Frames are numbered from 0 and timed
    at `fps`; a `Frame` keeps its pixels, format and colour, and its time if it is later than that
    of the frame before.

    Args:
        items: any iterable, read once, ahead of what is done with the frames: a list, a generator,
            an array (N, h, w, 3). Each item: (h, w, 3) uint8 in the order of `format`, (h, w) uint8
            for gray, or a `Frame`. Sizes may differ from item to item.
        fps: rate at which they follow each other; None means 25.
        name: what to call it in messages and results.
        format: `bgr` as OpenCV has it, `rgb` or `gray`.
        live: items come in real time: drop them rather than wait when they come too fast.

    Raises:
        MediaError: `items` cannot be iterated, or `fps` or `format` is none; while reading: an item
            is no image. The message names the item.
    """

    def __init__(
        self,
        items: Iterable[object],
        *,
        fps: float | None = None,
        name: str = "arrays",
        format: PixelFormat | str = PixelFormat.BGR,
        source_id: int = 0,
        live: bool = False,
    ) -> None:
        super().__init__(name, source_id)
        if isinstance(items, (str, bytes, Frame)) or not isinstance(items, Iterable):
            raise MediaError(
                f"{type(items).__name__} is nothing that gives images",
                where=name,
                expected="an iterable of (h, w, 3) uint8 arrays or Frames",
                fix="for files and addresses there is open_source",
            )
        if fps is not None and not 0 < fps < float("inf"):
            raise MediaError(f"fps={fps}", where=name, expected="a rate above 0")
        if format not in _FORMATS:
            raise MediaError(
                f"format={format!r}",
                where=name,
                expected="bgr, rgb or gray",
                fix="images of other formats are given as Frames",
            )
        self._items = items
        self._format = PixelFormat(format)
        self.fps = fps or _STEP_FPS
        self.live = live
        self.frames = len(items) if isinstance(items, Sized) else None
        if isinstance(items, (Sequence, np.ndarray)) and len(items):
            first = self._frame(items[0], 0)
            self.width, self.height = first.width, first.height

    def _read(self) -> Generator[Frame, None, None]:
        step_ns = 1e9 / (self.fps or _STEP_FPS)
        last_ns = -1
        for number, item in enumerate(self._items):
            frame = self._frame(item, number)
            if number == 0:
                self.width, self.height = frame.width, frame.height
            pts_ns = frame.pts_ns
            if not isinstance(item, Frame) or pts_ns <= last_ns:
                pts_ns = max(round(number * step_ns), last_ns + 1)
            last_ns = pts_ns
            yield replace(
                frame, frame=number, pts_ns=pts_ns, source=self.name, source_id=self.source_id
            )

    def frame_of(self, item: object, number: int = 0) -> Frame:
        """One item as a frame of its own.

        Args:
            item: an array or a `Frame`.
            number: its index in a list, for messages.

        Raises:
            MediaError: it is no image.
        """
        return replace(self._frame(item, number), source=self.name)

    def _frame(self, item: object, number: int) -> Frame:
        if isinstance(item, Frame):
            return item
        gray = self._format is PixelFormat.GRAY
        where = f"{self.name}, item {number}"
        expected = f"a uint8 array {'(h, w)' if gray else '(h, w, 3)'} or a Frame"
        if not isinstance(item, np.ndarray):
            problem = f"{type(item).__name__} is not an array"
            raise MediaError(problem, where=where, expected=expected, fix=_conversion(item))
        fits = item.ndim == 2 if gray else item.ndim == 3 and item.shape[2] == 3
        if item.dtype != np.uint8 or not fits or not item.size:
            raise MediaError(
                f"is {item.dtype} of shape {item.shape}",
                where=where,
                expected=expected,
                fix=_hint(item, gray),
            )
        return Frame.from_array(item, self._format)


def _conversion(item: object) -> str | None:
    if hasattr(item, "__array_interface__") or hasattr(item, "__array__"):
        return "numpy.asarray(item) makes one of it; of a Pillow image that is RGB"
    return None


def _hint(item: Array, gray: bool) -> str | None:
    """How to make the wanted array of one that is nearly it."""
    if not item.size:
        return None
    if not gray and item.ndim == 3 and item.shape[2] == 4:
        return "leave out transparency: item[:, :, :3]"
    if not gray and item.ndim == 3 and item.shape[0] == 3:
        return "channels come last: item.transpose(1, 2, 0)"
    if not gray and item.ndim == 2:
        return 'for gray images: format="gray"'
    if gray and item.ndim == 3:
        return 'for colour images: format="bgr" or "rgb"'
    if item.dtype.kind == "f":
        return "of values 0..1: (item * 255).astype(numpy.uint8)"
    return None
