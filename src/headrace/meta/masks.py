"""Instance masks: from box-relative scores to pixels of the frame, and as COCO run lengths.

An object's mask covers its detected box, whatever its size in values. The value for a frame pixel
is taken bilinearly at the pixel's centre and is foreground if above the threshold; so a mask is
interpolated first and thresholded after. Source: spec C.1 (threshold, box-relative).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.plain_record import PlainRecord
from headrace.meta.detections import FloatArray
from headrace.meta.objects import Objects

BoolArray = npt.NDArray[np.bool_]
_MAX_COUNTS = 13  # characters of the longest 64-bit number, 5 bits each


class PlacedMask(PlainRecord, frozen=True, eq=False):
    """The foreground of one object in a frame.

    Attributes:
        left, top: frame pixel of the first value.
        pixels: (h, w) bool, all of it inside the frame.
    """

    left: int
    top: int
    pixels: BoolArray

    def __repr__(self) -> str:
        h, w = self.pixels.shape
        return f"PlacedMask({w}x{h} at {self.left},{self.top}, {self.area} pixels)"

    @property
    def area(self) -> int:
        """Foreground pixels."""
        return int(np.count_nonzero(self.pixels))

    def full(self, width: int, height: int) -> BoolArray:
        """(height, width) bool of the whole frame."""
        out = np.zeros((height, width), np.bool_)
        h, w = self.pixels.shape
        out[self.top : self.top + h, self.left : self.left + w] = self.pixels
        return out


def place_mask(
    mask: FloatArray,
    rect: Sequence[float],
    width: int,
    height: int,
    threshold: float = 0.0,
) -> PlacedMask | None:
    """A box-relative mask in a frame.

    Args:
        mask: (h, w) float32.
        rect: left, top, width, height of the detected box in frame pixels, fractions allowed. A
            pixel belongs to the box if its centre does.
        width, height: size of the frame.
        threshold: interpolated values above it are foreground.

    Returns:
        The part inside the frame; None if the box covers no pixel of it or has no mask.
    """
    left, top, box_width, box_height = (float(v) for v in rect)
    columns = _span(left, box_width, width)
    rows = _span(top, box_height, height)
    if columns is None or rows is None or not mask.size:
        return None
    xs = _centers(box_width, columns[0] - left, columns[1] - left)
    ys = _centers(box_height, rows[0] - top, rows[1] - top)
    return PlacedMask(columns[0], rows[0], _sample(mask, xs, ys, threshold))


def object_mask(objects: Objects, index: int, width: int, height: int) -> PlacedMask | None:
    """The foreground of object `index` in a frame of `width` x `height` pixels.

    The mask covers the detector's box, also where a tracker moved the object's rectangle.

    Returns:
        None if the object has no mask, or none of its box is in the frame.
    """
    if objects.masks is None or not objects.masks[index].size:
        return None
    rects = objects.rects if objects.detector_rects is None else objects.detector_rects
    threshold = objects.mask_thresholds.get(int(objects.component_ids[index]), 0.0)
    return place_mask(objects.masks[index], rects[index].tolist(), width, height, threshold)


def rle_encode(
    mask: BoolArray, *, left: int = 0, top: int = 0, size: tuple[int, int] | None = None
) -> str:
    """The `counts` of COCO's compressed run-length encoding.

    Runs go down the columns, starting with background; each count is written as 5-bit groups in
    printable characters, from the third on as the difference to the count before the last.

    Args:
        mask: (h, w) bool, foreground.
        left, top: where it lies in the image.
        size: (height, width) of the image, as COCO's `size`; None is that of the mask.

    Raises:
        ValueError: the mask does not lie within the image.
    """
    h, w = mask.shape
    height, width = size or (h, w)
    if left < 0 or top < 0 or left + w > width or top + h > height:
        raise ValueError(f"a {w}x{h} mask at {left},{top} is not within {width}x{height}")
    pixels = np.ascontiguousarray(mask).view(np.uint8)
    return _native.mask_run_lengths(pixels, left, top, width, height)


def rle_decode(counts: str, width: int, height: int) -> BoolArray:
    """The (height, width) bool mask of a COCO `counts` string.

    Raises:
        ValueError: it is not a run-length encoding of an image of this size.
    """
    runs = _unpack(counts)
    total = width * height
    if runs.min() < 0 or runs.max() > total or int(runs.sum()) != total:
        raise ValueError(f"the run lengths do not make an image of {width}x{height}")
    values = np.arange(len(runs)) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, runs).reshape(width, height).T)


def _span(start: float, size: float, limit: int) -> tuple[int, int] | None:
    """The pixels of 0..limit with their centre in start..start + size."""
    if not (math.isfinite(start) and math.isfinite(size) and size > 0):
        return None
    first = math.ceil(max(0.0, start - 0.5))
    last = math.ceil(min(float(limit), start + size - 0.5))
    return (first, last) if first < last else None


def _centers(size: float, start: float, end: float) -> FloatArray:
    """Places of pixel centres between `start` and `end`, in 0..1 of a box of `size` pixels."""
    count = max(0, round(end - start))
    centers: FloatArray = ((np.arange(count) + (start + 0.5)) / max(size, 1e-9)).astype(np.float32)
    return centers


def _sample(mask: FloatArray, xs: FloatArray, ys: FloatArray, threshold: float) -> BoolArray:
    """Bilinear values at `ys` x `xs` (0..1 of the box), compared with `threshold`.

    NaN is background, also for its neighbours.
    """
    out = np.empty((len(ys), len(xs)), np.bool_)
    values = np.ascontiguousarray(mask, np.float32)
    _native.mask_foreground(values, xs, ys, threshold, out.view(np.uint8))
    return out


def _unpack(counts: str) -> npt.NDArray[np.int64]:
    codes = np.frombuffer(counts.encode("latin-1", "replace"), np.uint8).astype(np.int64) - 48
    if not len(codes) or codes.min() < 0 or codes.max() > 63 or codes[-1] & 32:
        raise ValueError("not COCO run lengths")
    ends = np.flatnonzero((codes & 32) == 0)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _MAX_COUNTS:
        raise ValueError("not COCO run lengths")
    digit_index = np.arange(len(codes)) - np.repeat(starts, lengths)
    shifted = (codes & 31) << (5 * digit_index)
    values = np.add.reduceat(shifted, starts)
    negative = (codes[ends] & 16) != 0
    values = np.where(negative, values - (np.int64(1) << np.minimum(5 * lengths, 62)), values)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values
