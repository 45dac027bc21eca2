"""Overlays that are blended over a frame: instance masks, class maps, rotated boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.types import Array
from headrace.media.draw.colors import Rgb, component_color
from headrace.meta.detections import IntArray
from headrace.meta.masks import PlacedMask
from headrace.meta.results import SegmentationMeta

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Points = list[tuple[float, float]]

# Names of classes that are "nothing" and would only dull the image.
_BACKGROUND = frozenset(
    ("background", "bg", "ignore", "ignored", "none", "unlabeled", "unlabelled", "void")
)
_LEVELS = 32
_MAX_SLOTS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """Colours for a part of a frame; each of its pixels has the colour of one slot.

    Attributes:
        left, top: frame pixel of the first column and row.
        slots: (h, w) pixels of the frame, uint8; with `places` at any resolution, uint16. Slot 0 is
            see-through.
        colors: colour of each slot.
        opacities: of each slot, 0..1.
        places: column and row of `slots` for each column and row of pixels.
    """

    left: int
    top: int
    slots: npt.NDArray[Any]
    colors: tuple[Rgb, ...]
    opacities: tuple[float, ...]
    places: tuple[IntArray, IntArray] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels of the frame."""
        if self.places is not None:
            return len(self.places[0]), len(self.places[1])
        return self.slots.shape[1], self.slots.shape[0]

    def class_areas(self) -> Array:
        """Frame pixels of each slot, about: counted in `slots`, in the part that is seen."""
        seen: Array = self.slots
        if self.places is not None:
            xs, ys = self.places
            seen = seen[ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1]
        width, height = self.size
        counts = np.bincount(seen.ravel(), minlength=len(self.colors))
        return counts * (width * height / max(1, seen.size))


def mask_overlay(mask: PlacedMask, color: Rgb, opacity: float, line: int) -> Overlay:
    """An instance mask, with a contour of `line` pixels inside its edge."""
    slots = np.empty(mask.pixels.shape, np.uint8)
    _native.mask_contoured(np.ascontiguousarray(mask.pixels).view(np.uint8), line, slots)
    opacities = (0.0, opacity, min(1.0, opacity + 0.45))
    return Overlay(mask.left, mask.top, slots, (color, color, color), opacities)


def class_map_overlay(
    segmentation: SegmentationMeta,
    rect: tuple[float, float, float, float],
    width: int,
    height: int,
    opacity: float,
) -> Overlay | None:
    """A class map over the part of a frame that the model saw.

    Args:
        segmentation: class map; the part `region` of it shows the image.
        rect: left, top, width, height of that image in frame pixels.
        width: of the frame.
        height: of the frame.
        opacity: of every class but background.

    Returns:
        Slot `c + 1` is class `c`; None if nothing of it lies in the frame.
    """
    if not segmentation.class_map.size or not all(map(math.isfinite, rect)):
        return None
    region = segmentation.region or (0, 0, segmentation.width, segmentation.height)
    xs = _places(rect[0], rect[2], width, region[0], region[2], segmentation.width)
    ys = _places(rect[1], rect[3], height, region[1], region[3], segmentation.height)
    if xs is None or ys is None:
        return None
    classes = max(segmentation.num_classes, int(segmentation.class_map.max()) + 1, 1)
    classes = min(classes, _MAX_SLOTS - 1)
    slots = (np.clip(segmentation.class_map, -1, classes - 1) + 1).astype(np.uint16)
    opacities = [0.0 if is_background(segmentation, c) else opacity for c in range(classes)]
    colors = ((0, 0, 0), *(component_color(segmentation.component_id, c) for c in range(classes)))
    return Overlay(xs[0], ys[0], slots, colors, (0.0, *opacities), (xs[1], ys[1]))


def polygon_overlay(
    points: Points, line: int, color: Rgb, opacity: float, size: tuple[int, int]
) -> Overlay | None:
    """The smooth outline of a polygon (`line` pixels wide), or its inside (`line` 0).

    Args:
        points: x, y corners in frame pixels.
        line: width of the outline in pixels; 0 fills.
        color: r, g, b.
        opacity: 0 to 1.
        size: width, height of the frame.
    """

    def draw(ink: ImageDraw, corners: Points) -> None:
        if line:
            ink.line([*corners, *corners[:2]], fill=255, width=2 * line, joint="curve")
        else:
            ink.polygon(corners, fill=255)

    return smooth_overlay(points, draw, line // 2 + 1, color, opacity, size)


def smooth_overlay(
    points: Points,
    draw: Callable[[ImageDraw, Points], None],
    margin: int,
    color: Rgb,
    opacity: float,
    size: tuple[int, int],
) -> Overlay | None:
    """A figure with smooth edges, in one colour; None outside of the frame.

    Args:
        points: x, y of its places in frame pixels.
        draw: draws it in white on black at twice the frame's resolution; it gets the places there.
        margin: pixels that it takes around them.
        color: r, g, b.
        opacity: 0 to 1.
        size: width, height of the frame.
    """
    from PIL import Image, ImageDraw

    left = math.floor(max(0, min(x for x, _ in points) - margin))
    top = math.floor(max(0, min(y for _, y in points) - margin))
    right = math.ceil(min(size[0], max(x for x, _ in points) + margin))
    bottom = math.ceil(min(size[1], max(y for _, y in points) + margin))
    if left >= right or top >= bottom:
        return None
    image = Image.new("L", (2 * (right - left), 2 * (bottom - top)))
    draw(ImageDraw.Draw(image), [(2 * (x - left), 2 * (y - top)) for x, y in points])
    cover = np.asarray(image.reduce(2), np.uint16)
    slots = ((cover * _LEVELS + 127) // 255).astype(np.uint8)
    return Overlay(
        left,
        top,
        slots,
        (color,) * (_LEVELS + 1),
        tuple(opacity * i / _LEVELS for i in range(_LEVELS + 1)),
    )


def is_background(segmentation: SegmentationMeta, class_id: int) -> bool:
    """Whether the class is background by its name."""
    names = segmentation.labels
    return class_id < len(names) and names[class_id].strip().casefold() in _BACKGROUND


def _places(
    start: float, size: float, limit: int, first: int, count: int, end: int
) -> tuple[int, IntArray] | None:
    """First pixel of start..start + size in the frame, and where each pixel is in the class map."""
    low, high = max(0, round(start)), min(limit, round(min(1e6, start + size)))
    if low >= high or size <= 0:
        return None
    centers = (np.arange(low, high) + 0.5 - start) * (count / size) + first
    return low, np.clip(centers, max(0, first), min(end, first + count) - 1).astype(np.int32)
