"""Images of another size, in the format that they have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.plain_record import PlainRecord
from headrace._core.text import error_text
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, is_full, matrix_code, plane_shapes
from headrace.media.pixels import plane_views, to_av

_YUV = (PixelFormat.I420, PixelFormat.NV12)


def reformatted(frame: Frame, format: str | None, width: int, height: int) -> Any:
    """Make an `av.VideoFrame` of a frame, bilinearly.

    Args:
        frame: the image.
        format: of FFmpeg; None keeps it.
        width, height: in pixels; 0 keeps the size.

    Raises:
        MediaError: FFmpeg cannot make an image of this size.
    """
    code = matrix_code(frame.color)
    options: dict[str, Any] = {"interpolation": "BILINEAR"}
    if frame.format in _YUV:
        options |= {"src_colorspace": code, "dst_colorspace": code}
    width, height = width or frame.width, height or frame.height
    try:
        return to_av(frame).reformat(width=width, height=height, format=format, **options)
    except (ValueError, MemoryError) as error:  # of FFmpeg
        raise MediaError(
            f"an image of {frame.width}x{frame.height} cannot be made one of {width}x{height}",
            where=error_text(error),
        ) from error


def scaled(frame: Frame, width: int, height: int) -> Frame:
    """Scale a frame, bilinearly, in its own format."""
    if (frame.width, frame.height) == (width, height):
        return frame
    image = reformatted(frame, None, width, height)
    planes = plane_views(image, frame.format, width, height)
    return replace(frame, planes=planes, width=width, height=height, owner=image)


class FrameSize(PlainRecord, frozen=True):
    """The size that every frame of a pipeline gets, as the original's muxer gives it.

    Attributes:
        width, height: in pixels.
        padding: True keeps the aspect ratio: the image lies in the top left corner, the rest is
            black. False stretches it.
    """

    width: int
    height: int
    padding: bool = False

    def fitted(self, frame: Frame) -> Frame:
        """A frame of this size; the frame itself if it has it already.

        Raises:
            MediaError: the image cannot be scaled.
        """
        if not self.padding:
            return scaled(frame, self.width, self.height)
        ratio = min(self.width / frame.width, self.height / frame.height)
        small = scaled(frame, max(2, int(frame.width * ratio)), max(2, int(frame.height * ratio)))
        if (small.width, small.height) == (self.width, self.height):
            return small
        planes = _black(frame, self.width, self.height)
        for plane, part in zip(planes, small.planes, strict=True):
            plane[: part.shape[0], : part.shape[1]] = part
        return replace(frame, planes=planes, width=self.width, height=self.height, owner=None)


def _black(frame: Frame, width: int, height: int) -> tuple[Any, ...]:
    dark = 16 if frame.format in _YUV and not is_full(frame.color) else 0
    values = (dark, 128, 128) if frame.format in _YUV else (0,)
    shapes = plane_shapes(frame.format, width, height)
    pairs = zip(shapes, values, strict=False)
    return tuple(np.full(shape, value, np.uint8) for shape, value in pairs)
