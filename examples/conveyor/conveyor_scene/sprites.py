"""From a parcel to its pixels: rays, light, shadow, and sub-pixel positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from .camera import HALF, LIGHT, SIN, SUPERSAMPLE, Floats, shade
from .parcels import CODE_LENGTH, Build, Design
from .rays import Canvas

__all__ = ["Sprite", "draw"]

SHADOW_MARGIN = 18
_IS_SOLID = [0] * 128 + [255] * 128


@dataclass(frozen=True)
class Sprite:
    """A parcel as pixels, once for each sub-pixel position in x.

    Attributes:
        left, top: corner of the images from the pixel of the parcel's centre on the belt.
        images: for each sub-pixel position the colours (RGB) and the coverage (L).
        solid: where the coverage is at least a half, as 0 or 255 (L): the parcel's own pixels.
        sizes: number of those pixels.
        characters: for each position (CODE_LENGTH, 4) float32 ink boxes ltwh, from the corner.
        shadow, shadow_left, shadow_top: the soft shadow on the belt (L) and its corner.
    """

    left: int
    top: int
    images: Sequence[tuple[Image.Image, Image.Image]]
    solid: Sequence[Image.Image]
    sizes: Sequence[int]
    characters: Sequence[Floats]
    shadow: Image.Image
    shadow_left: int
    shadow_top: int


def draw(parcel: Build, plan: Design, smear: int) -> Sprite:
    """Render a parcel; `smear` is the way it moves while the shutter is open, in sub-pixels."""
    x, y = plan.reach
    canvas = Canvas.around(x + 2, y + 2, plan.tall + 8)
    colors, characters = _render(parcel, canvas)
    ink = np.array([_ink_box(characters, i + 1) for i in range(CODE_LENGTH)], np.float32)
    images, boxes = [], []
    smeared = _smeared(colors, smear)
    for step in range(SUPERSAMPLE):
        images.append(_reduce(np.roll(smeared, step, axis=1)))
        boxes.append((ink + np.array([step, 0, 0, 0], np.float32)) / SUPERSAMPLE)
    solid = [alpha.point(_IS_SOLID) for _, alpha in images]
    sizes = [int(np.count_nonzero(np.asarray(mask))) for mask in solid]
    return Sprite(canvas.left, canvas.top, images, solid, sizes, boxes, *_shadow(plan))


def _render(parcel: Build, canvas: Canvas) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Lit colours with pre-multiplied alpha (rows, columns, 4) and character numbers."""
    hits = parcel.cast(canvas)
    color = np.zeros((len(hits.index), 3), np.float32)
    number = np.zeros(len(hits.index), np.uint8)
    gloss = np.zeros(len(hits.index), np.float32)
    for face, texture in parcel.faces.items():
        on = np.flatnonzero(hits.face == face)
        color[on] = texture.sample(hits.u[on], hits.v[on])
        number[on] = texture.sample_characters(hits.u[on], hits.v[on])
        gloss[on] = texture.gloss
    color *= shade(hits.normal, hits.height)[:, None]
    highlight = np.clip(hits.normal @ HALF, 0, None) ** 48
    color += (gloss * highlight * 120.0)[:, None] * np.array([1.0, 0.98, 0.94], np.float32)
    rows, columns = canvas.shape
    image = np.zeros((rows * columns, 4), np.uint8)
    image[hits.index, :3] = np.clip(color, 0, 255)
    image[hits.index, 3] = 255
    characters = np.zeros(rows * columns, np.uint8)
    characters[hits.index] = number
    return image.reshape(rows, columns, 4), characters.reshape(rows, columns)


def _ink_box(characters: npt.NDArray[np.uint8], number: int) -> tuple[int, int, int, int]:
    ink = characters == number
    columns, rows = np.flatnonzero(ink.any(axis=0)), np.flatnonzero(ink.any(axis=1))
    if not len(columns):
        return 0, 0, 0, 0
    return columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1


def _smeared(image: npt.NDArray[np.uint8], smear: int) -> npt.NDArray[np.uint8]:
    """Average over `smear` sub-pixels along x, centred."""
    if smear <= 1:
        return image
    total = np.zeros(image.shape, np.uint16)
    for step in range(smear):
        total += np.roll(image, step - smear // 2, axis=1)
    return (total // smear).astype(np.uint8)


def _reduce(image: npt.NDArray[np.uint8]) -> tuple[Image.Image, Image.Image]:
    """Sub-pixels to pixels: straight colours and coverage."""
    rows, columns = image.shape[:2]
    premultiplied = Image.frombuffer(
        "RGBa", (columns, rows), np.ascontiguousarray(image).tobytes(), "raw", "RGBa", 0, 1
    )
    straight = premultiplied.reduce(SUPERSAMPLE).convert("RGBA")
    return straight.convert("RGB"), straight.getchannel("A")


def _shadow(parcel: Design) -> tuple[Image.Image, int, int]:
    """Where the parcel keeps the key lamp from the belt, blurred, and darker where it stands."""
    drift = -LIGHT[:2] / LIGHT[2] * parcel.tall
    ground = np.concatenate([parcel.outline, parcel.outline + drift])
    hull = _hull(ground) * (1.0, -SIN)
    foot = _hull(parcel.outline) * (1.0, -SIN)
    left, top = np.floor(hull.min(axis=0)).astype(int) - SHADOW_MARGIN
    right, bottom = np.ceil(hull.max(axis=0)).astype(int) + SHADOW_MARGIN
    scale = 2
    size = (int(right - left) * scale, int(bottom - top) * scale)
    corner = np.array([left, top])

    def filled(points: npt.NDArray[np.floating], value: int) -> Image.Image:
        image = Image.new("L", size, 0)
        polygon = [(float(x), float(y)) for x, y in (points - corner) * scale]
        ImageDraw.Draw(image).polygon(polygon, fill=value)
        return image

    cast = filled(hull, 140).filter(ImageFilter.GaussianBlur(4.0 + parcel.tall * 0.07))
    contact = filled(foot, 150).filter(ImageFilter.GaussianBlur(7.0))
    near = filled(foot, 200).filter(ImageFilter.GaussianBlur(2.5))
    light = 1.0
    for layer in (cast, contact, near):
        light = light * (1 - np.asarray(layer, np.float32) / 255)
    mask = Image.fromarray(((1 - light) * 235).astype(np.uint8)).reduce(scale)
    return mask, int(left), int(top)


def _hull(points: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Convex hull, counter-clockwise (monotone chain)."""
    order = sorted(map(tuple, points.tolist()))

    def chain(items: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        kept: list[tuple[float, ...]] = []
        for p in items:
            while len(kept) > 1 and (kept[-1][0] - kept[-2][0]) * (p[1] - kept[-2][1]) <= (
                kept[-1][1] - kept[-2][1]
            ) * (p[0] - kept[-2][0]):
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(chain(order) + chain(order[::-1]))
