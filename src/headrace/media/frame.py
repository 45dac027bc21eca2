"""One image, as a view on the decoder's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.plain_record import PlainRecord
from headrace.media.device_planes import DevicePlanes
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane, plane_shapes
from headrace.media.pixels import to_png, to_rgb

_UINT8 = np.dtype(np.uint8)


class Frame(PlainRecord, frozen=True, eq=False):
    """One image with its planes, never copied without need.

    Attributes:
        planes: uint8 arrays as `PixelFormat` says. Rows may be padded (any positive row stride),
            pixels within a row are contiguous. May be read-only views on decoder memory. Those of
            an image that a GPU decoded are copied to the host when they are first read.
        format: layout of `planes`.
        width, height: size in pixels.
        color: matrix and range for I420 and NV12.
        pts_ns: presentation time in nanoseconds.
        frame: number within its source, from 0.
        source, source_id: who made it; `source` carries no credentials.
        owner: keeps the memory behind `planes` alive.
        wall_ns: when it was taken, in nanoseconds since 1970, UTC; None where nothing tells.
        fps: frame rate of its source; None if that is not known.
        live: its source is live.

    Raises:
        MediaError: planes do not fit the format and size.
    """

    planes: Sequence[Plane]
    format: PixelFormat
    width: int
    height: int
    color: ColorSpace = ColorSpace.BT601
    pts_ns: int = 0
    frame: int = 0
    source: str = ""
    source_id: int = 0
    owner: Any = None
    wall_ns: int | None = None
    fps: float | None = None
    live: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.planes, DevicePlanes):
            size = (self.planes.width, self.planes.height)
            if self.format is not self.planes.format or size != (self.width, self.height):
                raise MediaError(
                    f"planes of an NV12 image of {self.planes.width}x{self.planes.height}",
                    where="Frame.planes",
                    expected=f"{self.format}, {self.width}x{self.height}",
                )
            return
        expected = plane_shapes(self.format, self.width, self.height)
        if len(self.planes) != len(expected):
            raise MediaError(
                f"{len(self.planes)} planes",
                where="Frame.planes",
                expected=f"{len(expected)} planes",
            )
        for i, (plane, shape) in enumerate(zip(self.planes, expected, strict=True)):
            if plane.dtype != _UINT8 or plane.shape != shape:
                raise MediaError(
                    f"plane {i} is {plane.dtype} of shape {plane.shape}",
                    where="Frame.planes",
                    expected=f"uint8 of shape {shape} ({self.format}, {self.width}x{self.height})",
                )
            strides = plane.strides
            if strides[1:] != ((1,) if len(shape) == 2 else (shape[2], 1)) or strides[0] < 0:
                raise MediaError(
                    f"plane {i} has strides {strides}",
                    where="Frame.planes",
                    expected="rows of contiguous pixels",
                    fix="pass numpy.ascontiguousarray(plane)",
                )

    @classmethod
    def from_array(
        cls, array: Plane, format: PixelFormat = PixelFormat.BGR, **kwargs: Any
    ) -> Frame:
        """A frame over an (h, w, 3) RGB or BGR, or (h, w) GRAY array; no copy if contiguous."""
        array = np.ascontiguousarray(array)
        return cls((array,), format, array.shape[1], array.shape[0], **kwargs)

    @property
    def on_device(self) -> DevicePlanes | None:
        """The planes in the GPU's memory, where the image was decoded there; else None.

        `frame.on_device.surfaces[0]` is luma, for CuPy and PyTorch.
        """
        return self.planes if isinstance(self.planes, DevicePlanes) else None

    def __repr__(self) -> str:
        size = f"{self.width}x{self.height}"
        return f"Frame({self.format} {size}, frame {self.frame} of {self.source!r})"

    def to_rgb(self) -> Plane:
        """The image as (h, w, 3) uint8 RGB, as Pillow and Matplotlib have it."""
        return to_rgb(self)

    def to_bgr(self) -> Plane:
        """The image as (h, w, 3) uint8 BGR, as OpenCV has it."""
        return np.ascontiguousarray(self.to_rgb()[:, :, ::-1])

    def _repr_png_(self) -> bytes:
        """The image for notebooks: PNG, at most 960 pixels wide."""
        return to_png(self, max_width=960)
