"""Many crops of one frame at once: their geometry as arrays, by the rules of `geometry.fit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import GeometryError
from noria.infer.geometry import Rect, ScaleTransform
from noria.meta.detections import IntArray

BoolArray = npt.NDArray[np.bool_]
DoubleArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Crops:
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
        The same numbers as `fit` gives, rectangle by rectangle. Not valid are those it refuses
        (numbers that are not finite or beyond 32 bits, less than 2x2 pixels once rounded) and
        those wholly right of or below the frame.
    Source: spec A.2.
    """
    given = np.ascontiguousarray(rects, np.float64).reshape(-1, 4)
    count = len(given)
    valid, ratio = np.empty(count, np.bool_), np.empty((count, 2))
    src, dst = np.empty((count, 4), np.int32), np.empty((count, 4), np.int32)
    _native.fit_crops(
        given,
        (frame_width, frame_height),
        (width, height),
        maintain_aspect_ratio,
        symmetric_padding,
        valid,
        src,
        dst,
        ratio,
    )
    return Crops(valid, src, dst, ratio[:, 0], ratio[:, 1])
