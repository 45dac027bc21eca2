"""Images cut, turned, blurred and put onto others, in the format that they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace.gstreamer.elements.surface import planar
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, Plane, plane_shapes
from headrace.media.resizing import scaled

Box = tuple[int, int, int, int]  # left, top, width, height
WHOLE: Box = (0, 0, 0, 0)
"""No box: the whole image."""

_BLACK = (16, 128, 128)
_BLOCKS, _LEAST_BLOCK = 6, 4  # along the shorter side of a blurred area; pixels
# flip-method -> quarter turns against the clock, and whether left and right change places first
_TURNS = {
    1: (1, False), 2: (2, False), 3: (3, False), 4: (0, True), 5: (3, True), 6: (2, True),
    7: (1, True),
}  # fmt: skip
QUARTERS = (1, 3, 5, 7)
"""Values of `flip-method` that exchange width and height."""


def read_box(name: str, text: str) -> Box:
    """Read `left:top:width:height`; a size of 0 is `WHOLE`.

    Raises:
        MediaError: the text is none.
    """
    parts = text.split(":")
    if len(parts) != 4 or not all(part.strip().isdecimal() for part in parts):
        raise MediaError(f"{name}={text} is no area", expected="left:top:width:height in pixels")
    left, top, width, height = map(int, parts)
    return (left, top, width, height) if width and height else WHOLE


def _parts(format: PixelFormat, box: Box) -> list[tuple[slice, slice]]:
    """The rows and columns of each plane that a box covers; of chroma, all it touches."""
    left, top, width, height = box
    slices = []
    for i in range(len(plane_shapes(format, 2, 2))):
        k = int(i > 0)
        rows = slice(top >> k, (top + height + k) >> k)
        slices.append((rows, slice(left >> k, (left + width + k) >> k)))
    return slices


def cropped(frame: Frame, box: Box) -> Frame:
    """Cut a box out of an image, without a copy; it begins at even pixels and ends at the edge.

    Raises:
        MediaError: the box lies outside the image.
    """
    left, top = box[0] // 2 * 2, box[1] // 2 * 2
    width, height = min(box[2], frame.width - left), min(box[3], frame.height - top)
    if width <= 0 or height <= 0:
        raise MediaError(
            f"the area {':'.join(map(str, box))} lies outside an image of"
            f" {frame.width}x{frame.height}"
        )
    parts = _parts(frame.format, (left, top, width, height))
    planes = tuple(plane[part] for plane, part in zip(frame.planes, parts, strict=True))
    return Frame(planes, frame.format, width, height, frame.color, owner=frame.owner)


def turned(frame: Frame, method: int) -> Frame:
    """Turn or mirror an image by a value of `flip-method`; 0 leaves it."""
    if method not in _TURNS:
        return frame
    quarters, mirrored = _TURNS[method]
    planes = []
    for plane in frame.planes:
        turn = np.rot90(plane[:, ::-1] if mirrored else plane, quarters)
        planes.append(np.ascontiguousarray(turn))
    height, width = planes[0].shape[:2]
    return Frame(tuple(planes), frame.format, width, height, frame.color)


def black(width: int, height: int) -> tuple[Plane, ...]:
    """Make the planes of a black I420 image."""
    shapes = plane_shapes(PixelFormat.I420, width, height)
    pairs = zip(shapes, _BLACK, strict=True)
    return tuple(np.full(shape, value, np.uint8) for shape, value in pairs)


def paste(planes: Sequence[Plane], image: Frame, left: int, top: int) -> None:
    """Put an image into the planes of one of I420, at even pixels; its parts outside are cut."""
    if image.format is not PixelFormat.I420:
        image = planar(image)
    for i, (target, plane) in enumerate(zip(planes, image.planes, strict=True)):
        y, x = (top, left) if i == 0 else (top // 2, left // 2)
        part = target[y : y + plane.shape[0], x : x + plane.shape[1]]
        part[:] = plane[: part.shape[0], : part.shape[1]]


def placed(frame: Frame, box: Box, width: int, height: int) -> Frame:
    """Scale an image into a box of a black one of a size."""
    planes = black(width, height)
    paste(planes, scaled(frame, box[2], box[3]), box[0] // 2 * 2, box[1] // 2 * 2)
    return Frame(planes, PixelFormat.I420, width, height, frame.color)


def blurred(frame: Frame, areas: Iterable[tuple[Box, npt.NDArray[np.bool_] | None]]) -> Frame:
    """Blur areas of an image beyond recognition.

    Args:
        frame: the image.
        areas: boxes within it, each with the part to blur as (height, width) bool, None for all.
    """
    planes = tuple(plane.copy() for plane in frame.planes)
    done = Frame(planes, frame.format, frame.width, frame.height, frame.color)
    for (left, top, width, height), mask in areas:
        box = (left // 2 * 2, top // 2 * 2, width + left % 2, height + top % 2)
        area = cropped(done, box)
        factor = max(_LEAST_BLOCK, min(area.width, area.height) // _BLOCKS)
        coarse = scaled(area, max(1, area.width // factor), max(1, area.height // factor))
        blur = scaled(coarse, area.width, area.height)
        chosen = np.ones((area.height, area.width), bool)
        if mask is not None:
            chosen[: top % 2], chosen[:, : left % 2] = False, False
            chosen[top % 2 :, left % 2 :] = mask
        for i, (target, plane) in enumerate(zip(area.planes, blur.planes, strict=True)):
            part = chosen[:: 1 + (i > 0), :: 1 + (i > 0)]
            target[part] = plane[part]
    return done
