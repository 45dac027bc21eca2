"""From decoder frames to `Frame`s: views where possible, swscale otherwise."""

from __future__ import annotations

from typing import Any

from av.video.reformatter import VideoReformatter

from noria.media.frame import Frame
from noria.media.pixel_format import PixelFormat, color_space
from noria.media.pixels import plane_views

_FULL_RANGE = 2  # AVCOL_RANGE_JPEG

_VIEWS = {
    "yuv420p": PixelFormat.I420,
    "yuvj420p": PixelFormat.I420,
    "nv12": PixelFormat.NV12,
    "gray": PixelFormat.GRAY,
    "rgb24": PixelFormat.RGB,
    "bgr24": PixelFormat.BGR,
}


class FrameReader:
    """Turns decoded `av.VideoFrame`s into `Frame`s; keeps one swscale context for odd formats.

    Attributes:
        converted: pixel format of the last frame that had to be converted and what it became.
    """

    def __init__(self) -> None:
        self.converted: tuple[str, str] | None = None
        self._reformatter: Any = None

    def read(
        self, picture: Any, *, pts_ns: int, frame: int, source: str = "", source_id: int = 0
    ) -> Frame:
        """A `Frame` over `picture`: read-only views, no copy for the common formats."""
        name = picture.format.name
        full = name.startswith("yuvj") or int(picture.color_range) == _FULL_RANGE
        format = _VIEWS.get(name)
        if format is None or any(plane.line_size < 0 for plane in picture.planes):
            picture, format = self._convert(picture, full)
        width, height = picture.width, picture.height
        return Frame(
            plane_views(picture, format, width, height),
            format,
            width,
            height,
            color_space(int(picture.colorspace), full),
            pts_ns,
            frame,
            source,
            source_id,
            picture,
        )

    def _convert(self, picture: Any, full: bool) -> tuple[Any, PixelFormat]:
        if self._reformatter is None:
            self._reformatter = VideoReformatter()
        name = picture.format.name
        if picture.format.is_rgb or name == "pal8":
            target, format = "rgb24", PixelFormat.RGB
        elif len(picture.format.components) < 3:
            target, format = "gray", PixelFormat.GRAY
        else:
            # The range stays what it was: yuvj420p is full-range I420 to swscale.
            target, format = ("yuvj420p" if full else "yuv420p"), PixelFormat.I420
        self.converted = (name, target)
        matrix = picture.colorspace
        picture = self._reformatter.reformat(picture, format=target)
        if format is PixelFormat.I420:
            picture.colorspace = matrix
        return picture, format
