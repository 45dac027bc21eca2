"""Writable copies of frames that can be filled and pasted on, in their own pixel format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array
from headrace.media.draw.colors import Rgb, to_yuv, yuv_matrix
from headrace.media.draw.overlays import Overlay
from headrace.media.draw.text import TextBox
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane
from headrace.meta.detections import FloatArray

Box = tuple[int, int, int, int]
"""left, top, right, bottom in whole pixels of the frame; right and bottom are outside."""


class Canvas(ABC):
    """A copy of a frame to draw on. Everything is clipped to the frame."""

    def __init__(self, frame: Frame) -> None:
        self.width, self.height = self.size = frame.width, frame.height

    def clip(self, box: Box) -> Box | None:
        """The part of `box` inside the frame; None if there is none."""
        left, top = max(0, box[0]), max(0, box[1])
        right, bottom = min(self.width, box[2]), min(self.height, box[3])
        return (left, top, right, bottom) if left < right and top < bottom else None

    @abstractmethod
    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """Fill a box with a colour of opacity `alpha`."""

    @abstractmethod
    def paste(self, text: TextBox, left: int, top: int) -> None:
        """Put a rendered text at a place with even coordinates."""

    @abstractmethod
    def show(self, rgb: Plane) -> None:
        """Put an image of the frame's size, (height, width, 3), in the place of the frame."""

    @abstractmethod
    def blend(self, overlay: Overlay) -> None:
        """Blend an overlay, all of which is inside the frame."""

    @abstractmethod
    def frame(self) -> Frame:
        """The drawn frame."""

    def outline(self, box: Box, width: int, color: Rgb, alpha: float = 1.0) -> None:
        """A border of `width` pixels inside `box`; a box too small for it is filled."""
        left, top, right, bottom = box
        if right - left <= 2 * width or bottom - top <= 2 * width:
            self.fill(box, color, alpha)
            return
        self.fill((left, top, right, top + width), color, alpha)
        self.fill((left, bottom - width, right, bottom), color, alpha)
        self.fill((left, top + width, left + width, bottom - width), color, alpha)
        self.fill((right - width, top + width, right, bottom - width), color, alpha)


class PackedCanvas(Canvas):
    """RGB or BGR."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._frame = frame
        self._pixels = frame.planes[0].copy()
        self._bgr = frame.format is PixelFormat.BGR

    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """Blend a colour into a box."""
        inside = self.clip(box)
        if inside is None:
            return
        left, top, right, bottom = inside
        values = color[::-1] if self._bgr else color
        area = self._pixels[top:bottom, left:right]
        if alpha >= 1:
            area[:] = values
            return
        for i, value in enumerate(values):
            area[:, :, i] = _blend_table(value, round(alpha * 255))[area[:, :, i]]

    def paste(self, text: TextBox, left: int, top: int) -> None:
        """Blend a text, its corner at (left, top)."""
        inside = self.clip((left, top, left + text.width, top + text.height))
        if inside is None:
            return
        x0, y0, x1, y1 = inside
        part = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
        source = text.rgb[part][:, :, ::-1] if self._bgr else text.rgb[part]
        area = self._pixels[y0:y1, x0:x1]
        if text.alpha is None:
            area[:] = source
        else:
            area[:] = _mix(area, source, text.alpha[part][:, :, None])

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


class PlanarCanvas(Canvas):
    """I420; NV12 and GRAY frames become I420."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._frame = frame
        self._color = frame.color
        luma = frame.planes[0].copy()
        match frame.format:
            case PixelFormat.NV12:
                chroma = frame.planes[1]
                self._planes = (luma, chroma[:, :, 0].copy(), chroma[:, :, 1].copy())
            case PixelFormat.GRAY:
                # Gray images use all 256 values.
                self._color = ColorSpace.BT601_FULL
                shape = ((self.height + 1) // 2, (self.width + 1) // 2)
                self._planes = (luma, np.full(shape, 128, np.uint8), np.full(shape, 128, np.uint8))
            case _:
                self._planes = (luma, frame.planes[1].copy(), frame.planes[2].copy())

    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """Blend a colour into a box."""
        inside = self.clip(box)
        if inside is None:
            return
        left, top, right, bottom = inside
        y, u, v = to_yuv(color, self._color)
        luma, blue, red = self._planes
        opacity = 255 if alpha >= 1 else round(alpha * 255)
        _tint(luma[top:bottom, left:right], y, opacity)
        # Chroma covers 2 x 2 pixels. The edges of an odd box cover half of it: half the colour.
        for x0, x1, part_x in _chroma_spans(left, right, self.width):
            for y0, y1, part_y in _chroma_spans(top, bottom, self.height):
                part = opacity * part_x * part_y // 4
                _tint(blue[y0:y1, x0:x1], u, part)
                _tint(red[y0:y1, x0:x1], v, part)

    def paste(self, text: TextBox, left: int, top: int) -> None:
        """Blend a text, its corner at (left, top)."""
        inside = self.clip((left, top, left + text.width, top + text.height))
        if inside is None:
            return
        x0, y0, x1, y1 = inside
        colors, alphas = _text_planes(text, self._color)
        for i, plane in enumerate(self._planes):
            k = int(i > 0)
            area = plane[y0 >> k : (y1 + k) >> k, x0 >> k : (x1 + k) >> k]
            from_y, from_x = (y0 - top) >> k, (x0 - left) >> k
            part = np.s_[from_y : from_y + area.shape[0], from_x : from_x + area.shape[1]]
            if alphas is None:
                area[:] = colors[i][part]
            else:
                area[:] = _mix(area, colors[i][part], alphas[k][part])

    def show(self, rgb: Plane) -> None:
        """Replace all pixels."""
        even = np.pad(rgb, ((0, self.height % 2), (0, self.width % 2), (0, 0)), mode="edge")
        colors, _ = _planes_of(TextBox(even, None), self._color)
        for plane, values in zip(self._planes, colors, strict=True):
            plane[:] = values[: plane.shape[0], : plane.shape[1]]

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


def canvas_for(frame: Frame) -> Canvas:
    """A canvas in the pixel format of `frame`, or I420 for NV12 and GRAY."""
    if frame.format in (PixelFormat.RGB, PixelFormat.BGR):
        return PackedCanvas(frame)
    return PlanarCanvas(frame)


def _chroma_spans(start: int, end: int, size: int) -> list[tuple[int, int, int]]:
    """Chroma samples touched by pixels `start`..`end`, with how much of each (1 or 2 of 2)."""
    if end == size:
        end += size % 2  # the last sample of an odd size has one pixel only
    spans = []
    if start % 2:
        spans.append((start // 2, start // 2 + 1, 1))
    if (start + 1) // 2 < end // 2:
        spans.append(((start + 1) // 2, end // 2, 2))
    if end % 2 and end // 2 >= (start + 1) // 2:
        spans.append((end // 2, end // 2 + 1, 1))
    return spans


def _tint(area: Plane, value: int, opacity: int) -> None:
    if opacity >= 255:
        area[:] = value
    elif opacity:
        area[:] = _blend_table(value, opacity)[area]


@lru_cache(maxsize=1024)
def _blend_table(value: int, opacity: int) -> Plane:
    """Result for each of the 256 levels under `value` with `opacity` of 255."""
    levels = np.arange(256, dtype=np.uint32)
    table: Plane = ((levels * (255 - opacity) + value * opacity + 127) // 255).astype(np.uint8)
    return table


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


def _mix(under: Plane, over: Plane, alpha: Plane) -> npt.NDArray[np.uint8]:
    a = alpha.astype(np.uint32)
    mixed: npt.NDArray[np.uint8] = ((under * (255 - a) + over * a + 127) // 255).astype(np.uint8)
    return mixed


def _planes_of(
    text: TextBox, space: ColorSpace
) -> tuple[tuple[Plane, ...], tuple[Plane, Plane] | None]:
    """Y, U, V of a text box and its opacity at full and half size."""
    matrix, offset = yuv_matrix(space)
    y, u, v = np.moveaxis(text.rgb.astype(np.float32) @ matrix.T + offset, 2, 0)
    if text.alpha is None:
        return (_bytes(y), _bytes(_halve(u)), _bytes(_halve(v))), None
    weight = text.alpha.astype(np.float32)
    small = _halve(weight)
    seen = np.maximum(small, np.float32(1e-6))  # colours count as much as they are seen
    planes = (_bytes(y), _bytes(_halve(u * weight) / seen), _bytes(_halve(v * weight) / seen))
    return planes, (text.alpha, _bytes(small))


_text_planes = lru_cache(maxsize=2048)(_planes_of)


def _bytes(plane: Array) -> Plane:
    whole: Plane = np.clip(np.rint(plane), 0, 255).astype(np.uint8)
    return whole


def _halve(plane: FloatArray) -> FloatArray:
    h, w = plane.shape
    mean: FloatArray = plane.reshape(h // 2, 2, w // 2, 2).mean(axis=(1, 3))
    return mean
