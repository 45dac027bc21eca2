"""Where a crop lands in the network input, and how boxes come back.

`fit` decides the source and destination rectangles, `ScaleTransform` maps boxes between the two
spaces; `fit_crops` does the same for many crops of a frame at once, as arrays. Nobody multiplies by
a ratio elsewhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import GeometryError
from headrace._core.plain_record import PlainRecord
from headrace.meta.detections import IntArray

# The original keeps rectangles in 32-bit integers; beyond that there is no image.
_LIMIT = 2**31 - 2


class Rect(NamedTuple):
    """A rectangle in pixels of the space its owner names; floats for objects, ints once rounded."""

    left: float
    top: float
    width: float
    height: float


class Padding(NamedTuple):
    """Bars around the destination rectangle, in network pixels."""

    left: int
    top: int
    right: int
    bottom: int


class ScaleTransform(PlainRecord, frozen=True):
    """Where a piece of a frame lies in the network input.

    Attributes:
        src: the sampled rectangle in frame space, even integers, not clipped to the frame.
        dst: the rectangle it fills in network space, integers.
        ratio_x, ratio_y: network pixels per frame pixel (float64), `dst / src` per axis.
        offset_x, offset_y: left and top of `dst`, integers.
    Source: spec A.2.
    """

    src: Rect
    dst: Rect
    ratio_x: float
    ratio_y: float
    offset_x: int
    offset_y: int

    def to_frame(
        self, boxes: npt.ArrayLike, roi_left: float = 0, roi_top: float = 0
    ) -> npt.NDArray[np.float32]:
        """Map boxes from network space to the space of the crop's owner.

        Args:
            boxes: (N, 4) left, top, width, height in network pixels, taken as float32.
            roi_left, roi_top: origin of the region in tensor-input mode, truncated to unsigned
                integers as the original keeps them; 0 otherwise.

        Returns:
            (N, 4) float32 left, top, width, height; the divisions are made in float64.
        Source: spec B.6 step 1.
        """
        network = np.asarray(boxes, dtype=np.float32).reshape(-1, 4)
        frame = np.empty(network.shape, dtype=np.float32)
        offset = np.array([self.offset_x, self.offset_y], dtype=np.float32)
        ratio = np.array([self.ratio_x, self.ratio_y], dtype=np.float64)
        roi = (_unsigned(roi_left), _unsigned(roi_top))
        frame[:, :2] = (network[:, :2] - offset) / ratio + roi
        frame[:, 2:] = network[:, 2:] / ratio
        return frame

    def to_network(
        self, boxes: npt.ArrayLike, roi_left: float = 0, roi_top: float = 0
    ) -> npt.NDArray[np.float32]:
        """The inverse of `to_frame`, up to float32 rounding; same arguments, spaces swapped."""
        frame = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
        ratio = np.array([self.ratio_x, self.ratio_y], dtype=np.float64)
        network = np.empty(frame.shape, dtype=np.float32)
        roi = (_unsigned(roi_left), _unsigned(roi_top))
        network[:, :2] = (frame[:, :2] - roi) * ratio + (self.offset_x, self.offset_y)
        network[:, 2:] = frame[:, 2:] * ratio
        return network

    def padding(self, width: int, height: int) -> Padding:
        """Bars around `dst` in a `width` x `height` network input."""
        left, top, dst_width, dst_height = (int(v) for v in self.dst)
        return Padding(left, top, width - left - dst_width, height - top - dst_height)


def even_rect(crop: Rect) -> Rect:
    """Round a crop as the original does: truncate, then start up and size down to even numbers.

    A negative left or top counts as 0, a negative size as 0; the result may be empty.

    Raises:
        GeometryError: a coordinate is not finite or far outside any image.
    Source: spec A.2.
    """
    for name, value in zip(Rect._fields, crop, strict=True):
        if not math.isfinite(value) or abs(value) > _LIMIT:
            raise GeometryError(
                f"{name} is {value}",
                where=f"crop {tuple(crop)}",
                expected="finite numbers of pixels",
            )
    left, top, width, height = (max(0, math.trunc(v)) for v in crop)
    return Rect(left + left % 2, top + top % 2, width - width % 2, height - height % 2)


def fit(
    crop: Rect,
    width: int,
    height: int,
    *,
    maintain_aspect_ratio: bool = False,
    symmetric_padding: bool = False,
) -> ScaleTransform:
    """Fit a crop of a frame into the network input.

    Args:
        crop: what to infer on, in frame pixels: the whole frame, or an object's rectangle.
        width, height: network input size in pixels.
        maintain_aspect_ratio: keep the crop's shape and pad; otherwise stretch.
        symmetric_padding: with `maintain_aspect_ratio`, bars on both sides (the odd pixel right or
            below); otherwise only right or below.

    Returns:
        The transform from frame to network space. `dst` has at least one pixel.

    Raises:
        GeometryError: the crop has no area after rounding (under 2 pixels wide or high).
    Source: spec A.2.
    """
    if width < 1 or height < 1:
        raise GeometryError(
            f"network input of {width}x{height}", expected="at least one pixel each way"
        )
    src = even_rect(crop)
    src_width, src_height = int(src.width), int(src.height)
    if src_width == 0 or src_height == 0:
        raise GeometryError(
            f"{crop.width:g}x{crop.height:g} pixels are {src_width}x{src_height} once rounded to"
            " even numbers",
            where=f"crop at {crop.left:g},{crop.top:g}",
            expected="at least 2x2 pixels",
        )
    dst_width, dst_height = width, height
    if maintain_aspect_ratio:
        fit_height = width * src_height / src_width
        if fit_height <= height:
            dst_height = max(1, math.trunc(fit_height))
        else:
            dst_width = max(1, math.trunc(height * src_width / src_height))
    offset_x = offset_y = 0
    if maintain_aspect_ratio and symmetric_padding:
        offset_x, offset_y = (width - dst_width) // 2, (height - dst_height) // 2
    return ScaleTransform(
        src=src,
        dst=Rect(offset_x, offset_y, dst_width, dst_height),
        ratio_x=dst_width / src_width,
        ratio_y=dst_height / src_height,
        offset_x=offset_x,
        offset_y=offset_y,
    )


def _unsigned(value: float) -> int:
    return max(0, math.trunc(value))


BoolArray = npt.NDArray[np.bool_]
DoubleArray = npt.NDArray[np.float64]


class Crops(PlainRecord, frozen=True, eq=False):
    """Where N crops of one frame lie in their network inputs.

    Rows that are not `valid` are zeros; see `fit_crops` for what they are.

    Attributes:
        valid: (N,) bool, whether there is anything to infer on.
        src: (N, 4) int32 left, top, width, height in frame pixels, even, not clipped to the frame.
        dst: (N, 4) int32 left, top, width, height in network pixels.
        ratio_x, ratio_y: (N,) float64, network pixels per frame pixel.
    Source: spec A.2.
    """

    valid: BoolArray
    src: IntArray
    dst: IntArray
    ratio_x: DoubleArray
    ratio_y: DoubleArray

    @property
    def offset_x(self) -> IntArray:
        """(N,) int32, left padding in network pixels."""
        return self.dst[:, 0]

    @property
    def offset_y(self) -> IntArray:
        """(N,) int32, top padding in network pixels."""
        return self.dst[:, 1]

    def transform(self, index: int) -> ScaleTransform:
        """The transform of one crop.

        Raises:
            GeometryError: the crop is not valid.
        """
        if not self.valid[index]:
            raise GeometryError(
                f"crop {index} has no pixels to infer on",
                expected="finite coordinates, at least 2x2 pixels, inside the frame",
            )
        src, dst = Rect(*self.src[index].tolist()), Rect(*self.dst[index].tolist())
        return ScaleTransform(
            src,
            dst,
            float(self.ratio_x[index]),
            float(self.ratio_y[index]),
            int(dst.left),
            int(dst.top),
        )

    def __len__(self) -> int:
        return len(self.valid)

    def __repr__(self) -> str:
        return f"Crops({len(self)}, {int(self.valid.sum())} valid)"


def croppable(rects: npt.ArrayLike, frame_width: int, frame_height: int) -> BoolArray:
    """Which rectangles can be cropped from a frame.

    Args:
        rects: (N, 4) left, top, width, height in frame pixels.
        frame_width, frame_height: size of the frame in pixels.

    Returns:
        (N,) bool, see `fit_crops`.
    """
    return fit_crops(rects, frame_width, frame_height, 1, 1).valid


def centre_cut(
    rects: npt.ArrayLike, width: int, height: int, share: float
) -> npt.NDArray[np.float64]:
    """The middle of rectangles, in the shape of the network input.

    A cut of share 1, scaled to the input, is what torchvision's `Resize(n)` and `CenterCrop(n)`
    leave of an image; 0.875 is `Resize(n / 0.875)` and `CenterCrop(n)`.

    Args:
        rects: (N, 4) left, top, width, height in frame pixels.
        width, height: network input size in pixels.
        share: of the largest rectangle of that shape that lies within, above 0, at most 1.

    Returns:
        (N, 4), in frame pixels.
    """
    cut = np.array(rects, np.float64).reshape(-1, 4)
    scale = share * np.minimum(cut[:, 2] / width, cut[:, 3] / height)
    size = scale[:, None] * (width, height)
    cut[:, :2] += (cut[:, 2:] - size) / 2
    cut[:, 2:] = size
    return cut


def fit_crops(
    rects: npt.ArrayLike,
    frame_width: int,
    frame_height: int,
    width: int,
    height: int,
    *,
    maintain_aspect_ratio: bool = False,
    symmetric_padding: bool = False,
    modern: bool = False,
) -> Crops:
    """`geometry.fit` for many rectangles of one frame.

    Args:
        rects: (N, 4) left, top, width, height in frame pixels.
        frame_width, frame_height: size of the frame in pixels.
        width, height, maintain_aspect_ratio, symmetric_padding: as for `fit`.
        modern: as trainers cut and letterbox, not as `fit`: the part inside the frame, edges
            truncated to whole pixels, odd ones too; with `maintain_aspect_ratio` one ratio for both
            axes, `min(width / w, height / h)`, and sizes `w * ratio` truncated, or rounded with
            `symmetric_padding`.

    Returns:
        The same numbers as `fit` gives, rectangle by rectangle. Not valid are those it refuses
        (numbers that are not finite or beyond 32 bits, less than 2x2 pixels once rounded) and
        those wholly right of or below the frame; `modern`, those of no pixel inside it.
    Source: spec A.2.
    """
    rect_array = np.ascontiguousarray(rects, np.float64).reshape(-1, 4)
    count = len(rect_array)
    valid, ratio = np.empty(count, np.bool_), np.empty((count, 2))
    src, dst = np.empty((count, 4), np.int32), np.empty((count, 4), np.int32)
    _native.fit_crops(
        rect_array,
        (frame_width, frame_height),
        (width, height),
        maintain_aspect_ratio,
        symmetric_padding,
        modern,
        valid,
        src,
        dst,
        ratio,
    )
    return Crops(valid, src, dst, ratio[:, 0], ratio[:, 1])
