"""From `Frame` to decoder frames, RGB arrays and PNG files: views where possible."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.media.pixel_format import PixelFormat, Plane, is_full, matrix_code, plane_shapes

if TYPE_CHECKING:
    import av

    from headrace.media.frame import Frame

_AV_NAMES = {
    PixelFormat.I420: "yuv420p",
    PixelFormat.NV12: "nv12",
    PixelFormat.GRAY: "gray",
    PixelFormat.RGB: "rgb24",
    PixelFormat.BGR: "bgr24",
}


def plane_views(
    image: av.VideoFrame, format: PixelFormat, width: int, height: int
) -> tuple[Plane, ...]:
    """Read-only arrays on the planes of an `av.VideoFrame`."""
    return views_of(image.planes, format, width, height)


def views_of(
    planes: Iterable[object], format: PixelFormat, width: int, height: int
) -> tuple[Plane, ...]:
    """The same, of its `planes`."""
    # A gray or palette-free image may carry more planes than are looked at (pal8, alpha).
    return tuple(map(_view, planes, plane_shapes(format, width, height)))


def plane_array(plane: Any, shape: tuple[int, ...]) -> Plane:
    """A writable array on an `av.VideoPlane`, rows padded as FFmpeg padded them."""
    strides = (plane.line_size, 1) if len(shape) == 2 else (plane.line_size, shape[2], 1)
    return np.ndarray(shape, np.uint8, buffer=plane, strides=strides)


def _view(plane: object, shape: tuple[int, ...]) -> Plane:
    view = plane_array(plane, shape)
    view.flags.writeable = False  # decoders read earlier frames again
    return view


def to_av(frame: Frame, *, width: int | None = None, height: int | None = None) -> av.VideoFrame:
    """A new `av.VideoFrame` with the pixels of `frame` and its colour tags.

    `width` and `height` may be larger than the frame: the last row and column are repeated.
    """
    import av  # whoever brings images of their own needs no decoder

    width, height = width or frame.width, height or frame.height
    image = av.VideoFrame(width, height, _AV_NAMES[frame.format])
    shapes = plane_views(image, frame.format, width, height)
    for i, plane in enumerate(frame.planes):
        out = plane_array(image.planes[i], shapes[i].shape)
        h, w = plane.shape[:2]
        out[:h, :w] = plane
        if out.shape[1] > w:
            out[:h, w:] = out[:h, w - 1 : w]
        if out.shape[0] > h:
            out[h:] = out[h - 1 : h]
    if frame.format in (PixelFormat.I420, PixelFormat.NV12):
        image.colorspace = matrix_code(frame.color)
        image.color_range = 2 if is_full(frame.color) else 1
    return image


def to_rgb(frame: Frame) -> Plane:
    """The image as (h, w, 3) uint8 RGB, converted with the frame's own matrix and range."""
    plane = frame.planes[0]
    match frame.format:
        case PixelFormat.RGB:
            return plane
        case PixelFormat.BGR:
            return np.ascontiguousarray(plane[:, :, ::-1])
        case PixelFormat.GRAY:
            return np.repeat(plane[:, :, None], 3, axis=2)
        case _:
            image = to_av(frame)
            code = matrix_code(frame.color)
            rgb = image.reformat(
                format="rgb24",
                src_colorspace=code,
                dst_colorspace=code,
                src_color_range=2 if is_full(frame.color) else 1,
                dst_color_range=2,
                interpolation="BILINEAR",
            )
            return np.ascontiguousarray(
                plane_views(rgb, PixelFormat.RGB, frame.width, frame.height)[0]
            )


def to_png(frame: Frame, *, max_width: int | None = None) -> bytes:
    """The image as an RGB PNG file, made smaller if wider than `max_width` pixels."""
    from PIL import Image

    image = Image.fromarray(to_rgb(frame))
    if max_width is not None and image.width > max_width:
        height = max(1, round(image.height * max_width / image.width))
        image = image.resize((max_width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()
