"""Between decoder frames, `Frame` and RGB arrays: views where possible, swscale otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from noria.media.frame import ColorSpace, Frame, PixelFormat, Plane

# AVColorSpace codes of the matrices that can be told apart here; everything else is BT.601.
_BT709, _BT2020 = (1,), (9, 10)
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG

_VIEWS = {
    "yuv420p": PixelFormat.I420,
    "yuvj420p": PixelFormat.I420,
    "nv12": PixelFormat.NV12,
    "gray": PixelFormat.GRAY,
    "rgb24": PixelFormat.RGB,
    "bgr24": PixelFormat.BGR,
}
_AV_NAMES = {
    PixelFormat.I420: "yuv420p",
    PixelFormat.NV12: "nv12",
    PixelFormat.GRAY: "gray",
    PixelFormat.RGB: "rgb24",
    PixelFormat.BGR: "bgr24",
}


def color_space(matrix: int, full: bool) -> ColorSpace:
    """From FFmpeg's matrix code and range; untagged is BT.601 limited. Source: spec A.3."""
    if matrix in _BT709:
        return ColorSpace.BT709_FULL if full else ColorSpace.BT709
    if matrix in _BT2020:
        return ColorSpace.BT2020_FULL if full else ColorSpace.BT2020
    return ColorSpace.BT601_FULL if full else ColorSpace.BT601


def is_full(color: ColorSpace) -> bool:
    """Whether luma uses 0..255 rather than 16..235."""
    return color.value.endswith("-full")


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
            _views(picture, format, width, height),
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
        from av.video.reformatter import VideoReformatter

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


def frame_from_av(picture: Any, **fields: Any) -> Frame:
    """One `av.VideoFrame` as a `Frame` (`pts_ns`, `frame`, … given by name)."""
    return FrameReader().read(picture, **({"pts_ns": 0, "frame": 0} | fields))


def _views(picture: Any, format: PixelFormat, width: int, height: int) -> tuple[Plane, ...]:
    cw, ch = (width + 1) // 2, (height + 1) // 2
    planes = picture.planes
    match format:
        case PixelFormat.I420:
            shapes: tuple[tuple[int, ...], ...] = ((height, width), (ch, cw), (ch, cw))
        case PixelFormat.NV12:
            shapes = ((height, width), (ch, cw, 2))
        case PixelFormat.GRAY:
            shapes = ((height, width),)
        case _:
            shapes = ((height, width, 3),)
    # A gray or palette-free picture may carry more planes than are looked at (pal8, alpha).
    return tuple(_view(planes[i], shape) for i, shape in enumerate(shapes))


def plane_array(plane: Any, shape: tuple[int, ...]) -> Plane:
    """A writable array on an `av.VideoPlane`, rows padded as FFmpeg padded them."""
    strides = (plane.line_size, 1) if len(shape) == 2 else (plane.line_size, shape[2], 1)
    return np.ndarray(shape, np.uint8, buffer=plane, strides=strides)


def _view(plane: Any, shape: tuple[int, ...]) -> Plane:
    view = plane_array(plane, shape)
    view.flags.writeable = False  # decoders read earlier frames again
    return view


def to_av(frame: Frame, *, width: int | None = None, height: int | None = None) -> Any:
    """A new `av.VideoFrame` with the pixels of `frame` and its colour tags.

    `width` and `height` may be larger than the frame: the last row and column are repeated.
    """
    import av

    width, height = width or frame.width, height or frame.height
    picture = av.VideoFrame(width, height, _AV_NAMES[frame.format])
    shapes = _views(picture, frame.format, width, height)
    for i, plane in enumerate(frame.planes):
        out = plane_array(picture.planes[i], shapes[i].shape)
        h, w = plane.shape[:2]
        out[:h, :w] = plane
        if out.shape[1] > w:
            out[:h, w:] = out[:h, w - 1 : w]
        if out.shape[0] > h:
            out[h:] = out[h - 1 : h]
    if frame.format in (PixelFormat.I420, PixelFormat.NV12):
        picture.colorspace = matrix_code(frame.color)
        picture.color_range = 2 if is_full(frame.color) else 1
    return picture


def matrix_code(color: ColorSpace) -> int:
    """FFmpeg's code of the matrix of `color`."""
    name = color.value.removesuffix("-full")
    return {"bt709": 1, "bt2020": 9}.get(name, 6)


def to_rgb(frame: Frame) -> Plane:
    """The picture as (h, w, 3) uint8 RGB, converted with the frame's own matrix and range."""
    plane = frame.planes[0]
    match frame.format:
        case PixelFormat.RGB:
            return plane
        case PixelFormat.BGR:
            return np.ascontiguousarray(plane[:, :, ::-1])
        case PixelFormat.GRAY:
            return np.repeat(plane[:, :, None], 3, axis=2)
        case _:
            picture = to_av(frame)
            code = matrix_code(frame.color)
            rgb = picture.reformat(
                format="rgb24",
                src_colorspace=code,
                dst_colorspace=code,
                src_color_range=2 if is_full(frame.color) else 1,
                dst_color_range=2,
                interpolation="BILINEAR",
            )
            return np.ascontiguousarray(_views(rgb, PixelFormat.RGB, frame.width, frame.height)[0])


def to_png(frame: Frame, *, max_width: int | None = None) -> bytes:
    """The picture as an RGB PNG file, made smaller if wider than `max_width` pixels."""
    from io import BytesIO

    from PIL import Image

    image = Image.fromarray(to_rgb(frame))
    if max_width is not None and image.width > max_width:
        height = max(1, round(image.height * max_width / image.width))
        image = image.resize((max_width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    out = BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()
