"""Writable copies of frames that can be filled and pasted on, in their own pixel format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace.media.draw.colors import Rgb, to_yuv, yuv_matrix
from headrace.media.draw.overlays import Overlay
from headrace.media.draw.text import Rgba, TextBox
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane
from headrace.meta.detections import FloatArray

Box = tuple[int, int, int, int]
"""left, top, right, bottom in whole pixels of the frame; right and bottom are outside."""
Pixels = ColorSpace | Literal["rgb", "bgr"]


class Canvas(ABC):
    """A copy of a frame to draw on. Everything is clipped to the frame.

    Args:
        frame: which is copied.
        colors: the colours of its pixels: `rgb`, `bgr`, or a YUV space.

    Attributes:
        missing: characters of pasted texts that no font at hand has, each once.
    """

    def __init__(self, frame: Frame, colors: Pixels) -> None:
        self.width, self.height = self.size = frame.width, frame.height
        self.missing = ""
        self._frame = frame
        self._colors = colors
        self._values: dict[Rgb, Rgb] = {}

    @abstractmethod
    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """Fill a box with a colour of opacity `alpha`."""

    @abstractmethod
    def outline(self, box: Box, width: int, color: Rgb, alpha: float = 1.0) -> None:
        """A border of `width` pixels inside `box`; a box too small for it is filled."""

    @abstractmethod
    def paste(self, text: TextBox, left: int, top: int) -> None:
        """Put a text at a place with even coordinates."""

    def _note_missing(self, text: TextBox) -> None:
        if text.missing:
            self.missing += "".join(c for c in text.missing if c not in self.missing)

    def _value(self, color: Rgb) -> Rgb:
        """A colour as the planes have it."""
        value = self._values.get(color)
        if value is None:
            value = color[::-1] if self._colors == "bgr" else color
            if isinstance(self._colors, ColorSpace):
                value = to_yuv(color, self._colors)
            self._values[color] = value
        return value

    @abstractmethod
    def show(self, rgb: Plane) -> None:
        """Put an image of the frame's size, (height, width, 3), in the place of the frame."""

    @abstractmethod
    def blend(self, overlay: Overlay) -> None:
        """Blend an overlay, all of which is inside the frame."""

    @abstractmethod
    def frame(self) -> Frame:
        """The drawn frame."""


class HostCanvas(Canvas):
    """A copy in main memory.

    Args:
        frame, colors: see `Canvas`.
        planes: the copy's.
    """

    def __init__(self, frame: Frame, colors: Pixels, planes: tuple[Plane, ...]) -> None:
        super().__init__(frame, colors)
        self._planes = planes
        self._sheet = _native.Sheet(planes)
        self._inks: dict[tuple[Rgba, Rgba | None], _native.Inks] = {}

    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """See `Canvas`."""
        self._sheet.fill(*box, self._value(color), byte_of(alpha))

    def outline(self, box: Box, width: int, color: Rgb, alpha: float = 1.0) -> None:
        """See `Canvas`."""
        self._sheet.outline(*box, width, self._value(color), byte_of(alpha))

    def paste(self, text: TextBox, left: int, top: int) -> None:
        """See `Canvas`."""
        key = (text.color, text.background)
        inks = self._inks.get(key)
        if inks is None:
            inks = self._inks[key] = _inks(*key, self._colors)
        self._sheet.paste(text.cover, left, top, inks)
        self._note_missing(text)


class PackedCanvas(HostCanvas):
    """RGB or BGR."""

    def __init__(self, frame: Frame) -> None:
        self._bgr = frame.format is PixelFormat.BGR
        pixels = frame.planes[0].copy()
        super().__init__(frame, "bgr" if self._bgr else "rgb", (pixels,))
        self._pixels = pixels

    def show(self, rgb: Plane) -> None:
        """Replace all pixels."""
        self._pixels[:] = rgb[:, :, ::-1] if self._bgr else rgb

    def blend(self, overlay: Overlay) -> None:
        """Blend an overlay at its place."""
        x, y = overlay.left, overlay.top
        width, height = overlay.size
        area = self._pixels[y : y + height, x : x + width]
        colors = np.array(overlay.colors, np.uint16)
        values = np.ascontiguousarray(colors[:, ::-1]) if self._bgr else colors
        _blend(area, overlay, 0, values)

    def frame(self) -> Frame:
        """The drawn image."""
        return replace(self._frame, planes=(self._pixels,), owner=None)


class PlanarCanvas(HostCanvas):
    """I420; NV12 and GRAY frames become I420."""

    def __init__(self, frame: Frame) -> None:
        color = frame.color
        match frame.format:
            case PixelFormat.NV12:
                chroma = tuple(frame.planes[1][:, :, i].copy() for i in range(2))
            case PixelFormat.GRAY:
                color = ColorSpace.BT601_FULL  # gray images use all 256 values
                shape = ((frame.height + 1) // 2, (frame.width + 1) // 2)
                chroma = tuple(np.full(shape, 128, np.uint8) for _ in range(2))
            case _:
                chroma = tuple(plane.copy() for plane in frame.planes[1:])
        super().__init__(frame, color, (frame.planes[0].copy(), *chroma))
        self._color = color

    def show(self, rgb: Plane) -> None:
        """Replace all pixels."""
        even = np.pad(rgb, ((0, self.height % 2), (0, self.width % 2), (0, 0)), mode="edge")
        matrix, offset = yuv_matrix(self._color)
        y, u, v = np.moveaxis(even.astype(np.float32) @ matrix.T + offset, 2, 0)
        for plane, values in zip(self._planes, (y, _halve(u), _halve(v)), strict=True):
            whole = np.clip(np.rint(values), 0, 255).astype(np.uint8)
            plane[:] = whole[: plane.shape[0], : plane.shape[1]]

    def blend(self, overlay: Overlay) -> None:
        """Blend an overlay at its place."""
        values = np.array([to_yuv(color, self._color) for color in overlay.colors], np.uint16)
        right, bottom = overlay.left + overlay.size[0], overlay.top + overlay.size[1]
        for i, plane in enumerate(self._planes):
            k = int(i > 0)
            area = plane[overlay.top >> k : (bottom + k) >> k, overlay.left >> k : (right + k) >> k]
            _blend(area, overlay, k, values[:, i : i + 1])

    def put(self, planes: tuple[Plane, ...], left: int, top: int) -> None:
        """Copy an I420 image, all of it inside the frame, to a place with even coordinates."""
        for i, (plane, part) in enumerate(zip(self._planes, planes, strict=True)):
            y, x = (top, left) if i == 0 else (top // 2, left // 2)
            plane[y : y + part.shape[0], x : x + part.shape[1]] = part

    def frame(self) -> Frame:
        """The drawn image."""
        return replace(
            self._frame, planes=self._planes, format=PixelFormat.I420, color=self._color, owner=None
        )


def _blend(area: Plane, overlay: Overlay, halvings: int, values: npt.NDArray[np.uint16]) -> None:
    """Blend an overlay over its part of a plane; a chroma sample takes its first pixel's colour."""
    keep, add = _factors(overlay.opacities, values)
    first = (-(overlay.left % (1 + halvings)), -(overlay.top % (1 + halvings)))
    if overlay.places is None:
        _native.draw_blend_pixels(area, overlay.slots, *first, 1 + halvings, keep, add)
        return
    xs, ys = overlay.places
    if halvings:
        columns, rows = (
            np.maximum(2 * np.arange(count) + start, 0)
            for count, start in zip(area.shape[1::-1], first, strict=True)
        )
        xs, ys = xs[columns], ys[rows]
    _native.draw_blend(area, overlay.slots, xs, ys, keep, add)


def _factors(
    opacities: tuple[float, ...], values: npt.NDArray[np.uint16]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """(K, 1) and (K, C): a value becomes (value * keep + add) / 128."""
    over = np.rint(np.array(opacities) * 128).astype(np.uint16)[:, None]
    half = np.where(over > 0, np.uint16(64), np.uint16(0))
    return 128 - over, over * values + half


def byte_of(alpha: float) -> int:
    """An opacity of 0..1 as 0..255."""
    return 255 if alpha >= 1 else round(alpha * 255)


@lru_cache(maxsize=1024)
def _inks(color: Rgba, background: Rgba | None, colors: Pixels) -> _native.Inks:
    return _native.Inks(*ink_tables(color, background, colors))


def ink_tables(
    color: Rgba, background: Rgba | None, colors: Pixels
) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
    """(256, 3) colours in the planes and (256,) opacities of a text, by how much it covers a pixel.

    A text of some opacity lies on a box of some opacity, which both lie on the frame.
    """
    cover = np.arange(256, dtype=np.float32) / np.float32(255) * np.float32(color[3])
    back = background or (0, 0, 0, 0.0)
    alpha = cover + np.float32(back[3]) * (1 - cover)
    ink, paper = np.array(color[:3], np.float32), np.array(back[:3], np.float32)
    weight = np.divide(cover, alpha, out=np.zeros_like(cover), where=alpha > 0)[:, None]
    values: FloatArray = np.rint(paper + (ink - paper) * weight).astype(np.float32)
    if isinstance(colors, ColorSpace):
        matrix, offset = yuv_matrix(colors)
        values = values @ matrix.T + offset
    elif colors == "bgr":
        values = values[:, ::-1]
    opacity = np.full(256, 255, np.uint8) if back[3] >= 1 else np.rint(alpha * 255).astype(np.uint8)
    return np.ascontiguousarray(values, np.float32), opacity


def _halve(plane: FloatArray) -> FloatArray:
    h, w = plane.shape
    mean: FloatArray = plane.reshape(h // 2, 2, w // 2, 2).mean(axis=(1, 3))
    return mean
