"""The six kinds of parcel and what they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from .camera import TEXELS, Floats
from .rays import (
    FRONT,
    SIDE,
    TOP,
    Canvas,
    Hits,
    cuboid,
    heights,
    lying_cylinder,
    standing_cylinder,
)
from .textures import (
    ALPHABET,
    LABEL_HEIGHT,
    LABEL_WIDTH,
    Color,
    Texture,
    clouds,
    label,
    plain,
)

__all__ = ["CLASSES", "CODE_LENGTH", "Build", "Design", "build", "design"]

CLASSES = ("box", "envelope", "bag", "tube", "crate", "drum")
CODE_LENGTH = 4

Rng = np.random.Generator


@dataclass(frozen=True)
class Build:
    """A parcel as a thing: `cast` gives its rays on a canvas, `faces` the texture of each face."""

    cast: Callable[[Canvas], Hits]
    faces: Mapping[int, Texture]


@dataclass(frozen=True)
class Design:
    """Size and direction of a parcel, chosen before anything of it is drawn.

    Attributes:
        kind: one of CLASSES.
        length, depth, tall: extent along its own long axis, across it, and upwards, in units.
        yaw: turn around the vertical in radians; 0 = long axis along the belt.
        outline: (N, 2) convex outline on the belt, world X and Y from the centre.
    """

    kind: str
    length: float
    depth: float
    tall: float
    yaw: float
    outline: Floats

    @property
    def reach(self) -> tuple[float, float]:
        """Half its extent along and across the belt."""
        x, y = np.abs(self.outline).max(axis=0)
        return float(x), float(y)


def design(rng: Rng, kind: str, widest: float) -> Design:
    """Choose the size of a parcel, and a direction in which it is at most `widest` across."""
    length, depth, tall = (float(rng.uniform(low, high)) for low, high in _SIZES[kind])
    if kind == "tube":
        tall = depth
    if kind == "drum":
        length = depth
    yaw = math.radians(float(rng.uniform(-20, 20)))
    shape = _ellipse if kind == "drum" else _rectangle
    for _ in range(12):
        outline = shape(length, depth, yaw)
        if 2 * float(np.abs(outline[:, 1]).max()) <= widest:
            break
        yaw *= 0.8
    return Design(kind, length, depth, tall, yaw, outline)


_SIZES = {  # length, depth, tall
    "box": ((112, 152), (76, 108), (34, 78)),
    "envelope": ((116, 152), (74, 98), (3.5, 7)),
    "bag": ((126, 158), (90, 112), (10, 16)),
    "tube": ((132, 176), (46, 58), (0, 0)),
    "crate": ((122, 152), (84, 108), (40, 72)),
    "drum": ((0, 0), (110, 126), (44, 82)),
}


def _pick(rng: Rng, colors: list[Color], spread: int = 8) -> Color:
    base = np.array(colors[rng.integers(len(colors))]) + rng.integers(-spread, spread + 1, 3)
    r, g, b = (int(v) for v in np.clip(base, 8, 248))
    return r, g, b


def _sticker(rng: Rng, code: str) -> tuple[Image.Image, Image.Image]:
    stock = _pick(rng, [(243, 243, 240), (238, 236, 226), (246, 240, 214)], 3)
    accent = _pick(rng, [(214, 60, 48), (34, 92, 170), (236, 150, 32), (30, 30, 34), (36, 140, 84)])
    return label(rng, code, stock, accent)


def _edges(texture: Texture, width: float, strength: float) -> None:
    """Darken (or, with negative strength, brighten) a soft band along the four edges."""
    h, w = texture.image.height, texture.image.width
    y = np.minimum(np.arange(h), np.arange(h)[::-1])[:, None]
    x = np.minimum(np.arange(w), np.arange(w)[::-1])[None, :]
    distance = np.minimum(x, y) / (width * TEXELS)
    texture.scaled(1 - strength * np.exp(-(distance**2)).astype(np.float32))


def _arrows(draw: ImageDraw.ImageDraw, x: float, y: float, size: float, color: Color) -> None:
    """Two 'this side up' arrows."""
    for k in (0, 1):
        cx = (x + k * size * 0.9) * TEXELS
        top, s = y * TEXELS, size * TEXELS
        draw.polygon(
            [(cx, top), (cx + s * 0.35, top + s * 0.4), (cx - s * 0.35, top + s * 0.4)], fill=color
        )
        draw.rectangle((cx - s * 0.12, top + s * 0.4, cx + s * 0.12, top + s * 0.9), fill=color)
    draw.rectangle(
        ((x - size * 0.45) * TEXELS, (y + size) * TEXELS, (x + size * 1.35) * TEXELS,
         (y + size * 1.1) * TEXELS), fill=color,
    )  # fmt: skip


def _rectangle(length: float, depth: float, yaw: float) -> Floats:
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], np.float32) * (length / 2, depth / 2)
    return _turned(corners, yaw)


def _ellipse(length: float, depth: float, yaw: float) -> Floats:
    angle = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    points = np.stack([np.cos(angle) * length / 2, np.sin(angle) * depth / 2], axis=1)
    return _turned(points, yaw)


def _turned(points: npt.NDArray[np.floating], yaw: float) -> Floats:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.asarray(points @ np.array([[c, s], [-s, c]]), np.float32)


def _place(rng: Rng, texture: Texture, code: str, length: float, depth: float) -> None:
    """Stick the label somewhere on a face of that size, a little askew."""
    free_u = max(length - LABEL_WIDTH - 8, 0) / 2
    free_v = max(depth - LABEL_HEIGHT - 10, 0) / 2
    u = length / 2 + rng.uniform(-1, 1) * free_u
    v = depth / 2 + rng.uniform(-1, 1) * free_v
    texture.stick(_sticker(rng, code), u, v, rng.uniform(-3.5, 3.5))


def _box(rng: Rng, plan: Design, code: str) -> Build:
    length, depth, tall = plan.length, plan.depth, plan.tall
    color = _pick(rng, [(186, 143, 98), (172, 128, 84), (198, 158, 112), (206, 196, 182)])
    look = {"mottle": 0.035, "grain": 0.025, "fibre": 0.012}
    top = plain(rng, length, depth, color, **look)
    front = plain(rng, length, tall, color, **look)
    side = plain(rng, depth, tall, color, **look)
    tape = _pick(rng, [(150, 106, 62), (214, 190, 150), (226, 222, 210), (52, 96, 150)], 5)
    seam, half = depth / 2, rng.uniform(6, 9)
    draw = top.draw
    draw.line((0, seam * TEXELS, length * TEXELS, seam * TEXELS), fill=(92, 66, 40), width=3)
    for face, box in (
        (top, (0, seam - half, length, seam + half)),
        (side, (depth / 2 - half, -1, depth / 2 + half, min(22, tall * 0.45))),
    ):
        strip = Image.new("L", face.image.size, 0)
        ImageDraw.Draw(strip).rectangle([c * TEXELS for c in box], fill=205)
        face.image.paste(tape, (0, 0), strip)
    top.scaled(1 + 0.012 * clouds(rng, top.image.height, top.image.width, 12, stretch=8))
    dark = (int(color[0] * 0.45), int(color[1] * 0.4), int(color[2] * 0.36))
    if rng.random() < 0.7:
        _arrows(front.draw, rng.uniform(14, length - 34), tall * 0.28, tall * 0.42, dark)
    if rng.random() < 0.4:
        cx, cy = length / 2 * TEXELS, tall * 0.36 * TEXELS
        front.draw.rounded_rectangle((cx - 42, cy - 14, cx + 42, cy + 14), 14, fill=(38, 26, 18))
    for face in (top, front, side):
        _edges(face, 1.1, -0.16)
        _edges(face, 9, 0.07)
    _place(rng, top, code, length, depth)
    return Build(
        lambda canvas: cuboid(canvas, plan.yaw, length, depth, tall),
        {TOP: top, FRONT: front, SIDE: side},
    )


def _envelope(rng: Rng, plan: Design, code: str) -> Build:
    length, depth, tall = plan.length, plan.depth, plan.tall
    color = _pick(rng, [(226, 178, 98), (236, 233, 226), (205, 214, 226), (214, 190, 150)], 6)
    top = plain(rng, length, depth, color, mottle=0.03, grain=0.012, gloss=0.05)
    draw, w, h = top.draw, top.image.width, top.image.height
    crease = (int(color[0] * 0.72), int(color[1] * 0.7), int(color[2] * 0.68))
    if rng.random() < 0.45:  # air mail border
        band = round(4.2 * TEXELS)
        for i in range(-2, 2 * (w + h) // (band * 3) + 2):
            paint = [(196, 52, 48), (42, 78, 150)][i % 2]
            for y in (0, h - band):
                x = i * band * 1.7
                draw.polygon(
                    [(x, y + band), (x + band * 0.9, y + band), (x + band * 1.5, y),
                     (x + band * 0.6, y)], fill=paint,
                )  # fmt: skip
    flap = rng.uniform(0.16, 0.26) * h
    draw.line([(0, 0), (w * 0.16, flap), (w * 0.84, flap), (w, 0)], fill=crease, width=4)
    y, x = np.mgrid[-1 : 1 : h * 1j, -1 : 1 : w * 1j].astype(np.float32)
    bulge = 1.05 - 0.22 * np.abs(x) ** 6 - 0.22 * np.abs(y) ** 6 + 0.05 * (-x * 0.5 - y * 0.2)
    top.scaled(bulge * (1 + 0.025 * clouds(rng, h, w, 130)))
    _edges(top, 0.8, -0.1)
    front = plain(rng, length, tall, crease)
    side = plain(rng, depth, tall, crease)
    _place(rng, top, code, length, depth - 14)
    return Build(
        lambda canvas: cuboid(canvas, plan.yaw, length, depth, tall),
        {TOP: top, FRONT: front, SIDE: side},
    )


def _bag(rng: Rng, plan: Design, code: str) -> Build:
    length, depth, tall = plan.length, plan.depth, plan.tall
    color = _pick(
        rng, [(128, 132, 142), (222, 224, 228), (62, 64, 74), (40, 124, 130), (198, 92, 122),
              (116, 88, 156)]
    )  # fmt: skip
    top = plain(rng, length, depth, color, mottle=0.02, grain=0.012, gloss=0.42)
    seam = tuple(int(c * 0.72) for c in color)
    w, h = top.image.size
    for inset in (5.5, 7.5):  # the welded ends
        for x in (inset * TEXELS, w - inset * TEXELS):
            top.draw.line((x, 0, x, h), fill=seam, width=3)
    _place(rng, top, code, length - 26, depth - 18)
    relief = _video(rng, length, depth, tall)
    return Build(
        lambda canvas: heights(canvas, plan.yaw, length, depth, relief),
        {TOP: top},
    )


def _video(rng: Rng, length: float, depth: float, tall: float) -> Floats:
    """Height of a filled plastic bag over its own rectangle, two samples per unit: a flat welded
    rim, a filling that rises fast and stays level, and creases that run in from the rim."""
    rows, columns = round(depth * 2), round(length * 2)
    q, p = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j].astype(np.float32)
    ragged = 1 + 0.02 * clouds(rng, rows, columns, 40)
    rim = 1 - np.abs(p / ragged) ** 14 - np.abs(q / ragged) ** 9
    fill = np.clip(1 - np.abs(p * 1.16) ** 4 - np.abs(q * 1.05) ** 4, 0, None) ** 0.55
    creases = np.zeros_like(p)
    for _ in range(26):
        angle = rng.uniform(0, 2 * math.pi)
        cx, cy = 1.05 * math.cos(angle), 1.05 * math.sin(angle)
        lean = angle + rng.uniform(-0.7, 0.7)
        along = (p - cx) * -math.cos(lean) + (q - cy) * -math.sin(lean)
        across = (p - cx) * -math.sin(lean) + (q - cy) * math.cos(lean)
        width = rng.uniform(0.03, 0.1)
        reach = np.exp(-((along / rng.uniform(0.35, 0.8)) ** 2))
        creases += rng.uniform(-1.5, 1.5) * np.exp(-((across / width) ** 2)) * reach
    level = np.exp(-((p / 0.66) ** 6) - (q / 0.52) ** 6)  # the stiff label keeps the middle even
    z = 1.2 + tall * fill + creases * (1 - 0.85 * level) * (0.25 + fill)
    z += 0.9 * clouds(rng, rows, columns, 26) * fill
    return np.where(rim > 0, np.maximum(z, 0.3), 0.0).astype(np.float32)


def _tube(rng: Rng, plan: Design, code: str) -> Build:
    length, radius = plan.length, plan.depth / 2
    color = _pick(rng, [(192, 154, 110), (228, 224, 214), (172, 132, 88), (60, 98, 150)])
    cap = _pick(rng, [(196, 52, 46), (40, 42, 48), (232, 232, 230), (44, 122, 70)])
    wall = plain(rng, length, 2 * math.pi * radius, color, mottle=0.02, fibre=0.02, gloss=0.18)
    w, h = wall.image.size
    seam = (int(color[0] * 0.82), int(color[1] * 0.8), int(color[2] * 0.78))
    step = rng.uniform(30, 44) * TEXELS
    for i in range(-8, int(w / step) + 2):
        wall.draw.line((i * step, h, i * step + h * 0.5, 0), fill=seam, width=3)
    edge = round(rng.uniform(5, 8) * TEXELS)
    for x in (0, w - edge):
        wall.draw.rectangle((x, 0, x + edge, h), fill=cap)
        wall.draw.line((x + edge * (x == 0), 0, x + edge * (x == 0), h), fill=(30, 28, 26), width=3)
    end = plain(rng, 2 * radius, 2 * radius, cap, gloss=0.2)
    r = radius * TEXELS
    end.draw.ellipse((r * 0.3, r * 0.3, r * 1.7, r * 1.7), outline=(24, 22, 22), width=4)
    # The label faces between straight up and the viewer, where it is least foreshortened.
    v = (math.pi + math.radians(rng.uniform(6, 26))) * radius
    u = length / 2 + rng.uniform(-1, 1) * max(length - LABEL_WIDTH - 24, 0) / 2
    wall.stick(_sticker(rng, code), u, v, rng.uniform(-2, 2))
    return Build(
        lambda canvas: lying_cylinder(canvas, plan.yaw, length, radius),
        {TOP: wall, SIDE: end},
    )


def _crate(rng: Rng, plan: Design, code: str) -> Build:
    length, depth, tall = plan.length, plan.depth, plan.tall
    color = _pick(
        rng, [(34, 84, 168), (196, 46, 42), (38, 138, 76), (232, 168, 30), (92, 100, 112)], 10
    )
    top = plain(rng, length, depth, color, mottle=0.015, grain=0.008, gloss=0.45)
    front = plain(rng, length, tall, color, mottle=0.015, grain=0.008, gloss=0.2)
    side = plain(rng, depth, tall, color, mottle=0.015, grain=0.008, gloss=0.2)

    def tone(factor: float) -> Color:
        r, g, b = (min(255, int(c * factor + (factor > 1) * 12)) for c in color)
        return r, g, b

    def groove(face: Texture, box: tuple[float, float, float, float], radius: float) -> None:
        x0, y0, x1, y1 = (c * TEXELS for c in box)
        face.draw.rounded_rectangle((x0, y0, x1, y1), radius * TEXELS, outline=tone(0.62), width=6)
        face.draw.rounded_rectangle(
            (x0 + 4, y0 + 5, x1 + 4, y1 + 5), radius * TEXELS, outline=tone(1.22), width=3
        )

    groove(top, (5, 5, length - 5, depth - 5), 5)
    for x in np.arange(16, length - 10, 13.0):  # ribs of the lid, under the label
        box = ((x - 2) * TEXELS, 10 * TEXELS, (x + 2) * TEXELS, (depth - 10) * TEXELS)
        top.draw.rounded_rectangle(box, 6, fill=tone(0.9))
        top.draw.line((box[2] + 2, box[1] + 6, box[2] + 2, box[3] - 6), fill=tone(1.12), width=3)
    for face, width in ((front, length), (side, depth)):
        face.draw.rectangle((0, 0, width * TEXELS, 7 * TEXELS), fill=tone(1.1))
        face.draw.line((0, 7.6 * TEXELS, width * TEXELS, 7.6 * TEXELS), fill=tone(0.5), width=6)
        for x in np.linspace(9, width - 9, max(3, round(width / 16))):
            at = x * TEXELS
            face.draw.rectangle((at - 5, 9 * TEXELS, at + 5, tall * TEXELS), fill=tone(1.14))
            face.draw.rectangle((at + 6, 9 * TEXELS, at + 10, tall * TEXELS), fill=tone(0.66))
        cx, cy = width / 2 * TEXELS, 17 * TEXELS
        hole = (cx - 13 * TEXELS, cy - 4 * TEXELS, cx + 13 * TEXELS, cy + 4 * TEXELS)
        face.draw.rounded_rectangle(hole, 14, fill=(16, 16, 20), outline=tone(1.2), width=4)
    for face in (top, front, side):
        _edges(face, 1.2, -0.22)
    _place(rng, top, code, length - 12, depth - 10)
    return Build(
        lambda canvas: cuboid(canvas, plan.yaw, length, depth, tall),
        {TOP: top, FRONT: front, SIDE: side},
    )


def _drum(rng: Rng, plan: Design, code: str) -> Build:
    radius, tall = plan.depth / 2, plan.tall
    color = _pick(rng, [(32, 96, 160), (178, 136, 92), (206, 84, 32), (66, 112, 74), (70, 76, 86)])
    rim = _pick(rng, [(176, 180, 186), (48, 50, 56)], 5)
    top = plain(rng, 2 * radius, 2 * radius, color, mottle=0.02, grain=0.012, gloss=0.3)
    size = top.image.width

    def ring(inset: float, width: float, paint: Color) -> None:
        i = inset * TEXELS
        box = (i, i, size - 1 - i, size - 1 - i)
        top.draw.ellipse(box, outline=paint, width=round(width * TEXELS))

    dark = (int(color[0] * 0.6), int(color[1] * 0.6), int(color[2] * 0.6))
    ring(0, 4.5, rim)
    ring(1.2, 0.8, (min(rim[0] + 60, 255), min(rim[1] + 60, 255), min(rim[2] + 60, 255)))
    ring(4.5, 1.4, (26, 26, 30))
    ring(5.9, 1.0, dark)
    for angle in rng.uniform(0, 2 * math.pi) + np.array([0.0, math.pi]):  # bungs
        cx, cy = (
            radius + (radius - 13) * math.cos(angle),
            radius + (radius - 13) * math.sin(angle),
        )
        box = [(cx - 5) * TEXELS, (cy - 5) * TEXELS, (cx + 5) * TEXELS, (cy + 5) * TEXELS]
        top.draw.ellipse(box, fill=rim, outline=(24, 24, 26), width=4)
    wall = plain(rng, 2 * math.pi * radius, tall, color, mottle=0.03, grain=0.015, gloss=0.3)
    w = wall.image.width
    wall.draw.rectangle((0, 0, w, 6 * TEXELS), fill=rim)
    wall.draw.line((0, 6 * TEXELS, w, 6 * TEXELS), fill=(24, 24, 26), width=5)
    bright = (min(color[0] + 40, 255), min(color[1] + 40, 255), min(color[2] + 40, 255))
    for y in (0.42, 0.72):
        at = y * tall * TEXELS
        wall.draw.rectangle((0, at - 8, w, at - 1), fill=bright)
        wall.draw.rectangle((0, at, w, at + 8), fill=dark)
    turn = -math.degrees(plan.yaw)
    # The lid has no direction of its own: turn the label to the viewer, within what others have.
    top.stick(_sticker(rng, code), radius, radius, turn + rng.uniform(-14, 14))
    return Build(
        lambda canvas: standing_cylinder(canvas, plan.yaw, radius, tall),
        {TOP: top, FRONT: wall},
    )


_KINDS = {
    "box": _box,
    "envelope": _envelope,
    "bag": _bag,
    "tube": _tube,
    "crate": _crate,
    "drum": _drum,
}


def build(rng: Rng, plan: Design) -> tuple[Build, str]:
    """Make a parcel from its design and random numbers; returns it and the code on its label."""
    code = "".join(ALPHABET[i] for i in rng.integers(len(ALPHABET), size=CODE_LENGTH))
    return _KINDS[plan.kind](rng, plan, code), code
