"""Many crops of one frame at once: their geometry as arrays, by the rules of `geometry.fit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noria.errors import GeometryError
from noria.infer.geometry import LIMIT, Rect, ScaleTransform
from noria.meta.detections import IntArray

__all__ = ["Crops", "croppable", "fit_crops"]

BoolArray = npt.NDArray[np.bool_]
DoubleArray = npt.NDArray[np.float64]

_SHRINK = np.array([1, 1, -1, -1])  # an odd start moves up, an odd size down


@dataclass(frozen=True, slots=True, eq=False)
class Crops:
    """Where N crops of one frame lie in their network inputs.

    Rows that are not `valid` are zeros.

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
        (N,) bool: False where `fit` or the frame refuses: numbers that are not finite or beyond
        32 bits, less than 2x2 pixels once rounded, or all of it right of or below the frame.
    """
    return _even_rects(rects, frame_width, frame_height)[1]


def fit_crops(
    rects: npt.ArrayLike,
    frame_width: int,
    frame_height: int,
    width: int,
    height: int,
    *,
    maintain_aspect_ratio: bool = False,
    symmetric_padding: bool = False,
) -> Crops:
    """`geometry.fit` for many rectangles of one frame.

    Args:
        rects: (N, 4) left, top, width, height in frame pixels.
        frame_width, frame_height: size of the frame in pixels.
        width, height, maintain_aspect_ratio, symmetric_padding: as for `fit`.

    Returns:
        The same numbers as `fit` gives, rectangle by rectangle.
    Source: spec A.2.
    """
    src, valid = _even_rects(rects, frame_width, frame_height)
    dst = np.zeros((len(src), 4), np.int32)
    dst[:, 2:] = width, height
    sizes = np.maximum(src[:, 2:], 1)  # rows without area divide by one
    if maintain_aspect_ratio:
        src_width, src_height = sizes[:, 0], sizes[:, 1]
        fit_width = height * src_width / src_height
        fit_height = width * src_height / src_width
        wide = fit_height <= height
        dst[:, 2] = np.where(wide, width, np.maximum(1, fit_width))
        dst[:, 3] = np.where(wide, np.maximum(1, fit_height), height)
        if symmetric_padding:
            dst[:, :2] = ((width, height) - dst[:, 2:]) // 2
    dst *= valid[:, None]
    ratio = dst[:, 2:] / sizes
    return Crops(valid, src.astype(np.int32), dst, ratio[:, 0], ratio[:, 1])


def _even_rects(
    rects: npt.ArrayLike, frame_width: int, frame_height: int
) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """`even_rect` of (N, 4) rectangles, zeros where there is nothing to crop, and where there is."""
    given = np.asarray(rects, np.float64).reshape(-1, 4)
    sane = np.abs(given) <= LIMIT  # not so for NaN
    src = np.where(sane, np.maximum(given, 0), 0).astype(np.int64)
    src += (src & 1) * _SHRINK
    valid: BoolArray = (
        sane.all(axis=1)
        & (src[:, 2:] > 0).all(axis=1)
        & (src[:, :2] < (frame_width, frame_height)).all(axis=1)
    )
    src *= valid[:, None]
    return src, valid
