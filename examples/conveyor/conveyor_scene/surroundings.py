"""All that does not move with the parcels: hall floor, frame, rollers, gantry, light; the belt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .camera import SUPERSAMPLE, Floats
from .textures import Color, clouds, font

__all__ = ["BELT_BOTTOM", "BELT_TOP", "HEIGHT", "WIDTH", "Belt", "Gantry", "Surroundings"]

WIDTH, HEIGHT = 640, 384
BELT_TOP, BELT_BOTTOM = 90, 320
"""Image rows of the belt's far and near edge."""

Rng = np.random.Generator
_S = 2  # the surroundings are drawn at twice the size


def _tinted(gray: Floats, color: tuple[float, float, float]) -> Floats:
    return gray[..., None] * np.array(color, np.float32)


def _image(pixels: Floats) -> Image.Image:
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@dataclass(frozen=True)
class Surroundings:
    """Still image under the parcels, and the light that falls on everything (RGB multiplier)."""

    image: Image.Image
    light: Image.Image
    belt_end: int

    @classmethod
    def make(cls, rng: Rng, *, belt_end: int, gantry: int | None) -> Surroundings:
        """Draw them: belt up to column `belt_end`, then rollers; a gantry casts a shadow."""
        image = _floor(rng)
        _rollers(rng, image, belt_end)
        _rails(rng, image)
        return cls(image.reduce(_S), _light(rng, gantry), belt_end)


def _floor(rng: Rng) -> Image.Image:
    """Concrete, out of focus, with a painted walkway and another line's goods in the distance."""
    w, h = WIDTH * _S, HEIGHT * _S
    gray = 78 + 6 * clouds(rng, h, w, 120) + 3 * clouds(rng, h, w, 30)
    gray *= np.linspace(0.62, 1.0, h, dtype=np.float32)[:, None]
    image = _image(_tinted(gray, (0.95, 0.99, 1.06)))
    draw = ImageDraw.Draw(image)
    tones: list[Color] = [
        (150, 108, 66),
        (46, 74, 118),
        (126, 48, 42),
        (118, 120, 124),
        (168, 132, 60),
    ]
    x = float(rng.uniform(-60, 0))
    while x < w:
        wide, high = rng.uniform(50, 130), rng.uniform(24, 62)
        r, g, b = tones[rng.integers(len(tones))]
        draw.rectangle(
            (x, 74 - high, x + wide, 74), fill=(int(r * 0.7), int(g * 0.7), int(b * 0.7))
        )
        draw.rectangle((x, 74 - high, x + wide, 74 - high * 0.6), fill=(r, g, b))
        x += wide + rng.uniform(4, 70)
    draw.rectangle((0, 74, w, 92), fill=(40, 44, 50))
    draw.rectangle((0, 114, w, 124), fill=(196, 158, 40))
    image.paste(image.crop((0, 0, w, 160)).filter(ImageFilter.GaussianBlur(9)), (0, 0))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 742, w, 756), fill=(190, 152, 40))
    image.paste(image.crop((0, 720, w, h)).filter(ImageFilter.GaussianBlur(2.5)), (0, 720))
    return image


def _rollers(rng: Rng, image: Image.Image, start: int) -> None:
    """Steel rollers across the line from column `start` on, over a dark gap."""
    top, bottom = BELT_TOP * _S, BELT_BOTTOM * _S
    left, width = max(0, start - 20) * _S, WIDTH * _S - max(0, start - 20) * _S
    if width <= 0:
        return
    pitch, radius = 27.0 * _S, 11.6 * _S
    x = (np.arange(width, dtype=np.float32) + left - start * _S - 6 * _S) % pitch - pitch / 2
    across = np.clip(x / radius, -1, 1)
    round_off = np.sqrt(1 - across**2)
    tone = 34 + 112 * np.clip(-0.46 * across + 0.86 * round_off, 0, 1) ** 1.4
    tone += 84 * np.exp(-(((across + 0.36) / 0.13) ** 2)) + 22 * np.exp(
        -(((across - 0.8) / 0.1) ** 2)
    )
    tone = np.where(np.abs(x) < radius, tone, 17.0)
    body = np.broadcast_to(tone, (bottom - top, width)).copy()
    # Turned steel: fine rings around each roller, and wear where parcels run.
    body *= 1 + 0.035 * clouds(rng, bottom - top, width, 1.6, stretch=26)
    body *= 1 + 0.05 * clouds(rng, bottom - top, width, 60, stretch=0.5)
    edge = np.minimum(np.arange(bottom - top), np.arange(bottom - top)[::-1]) / (7.0 * _S)
    body *= (0.35 + 0.65 * np.clip(edge, 0, 1)).astype(np.float32)[:, None]
    image.paste(_image(_tinted(body, (0.97, 1.0, 1.04))), (left, top))


def _rails(rng: Rng, image: Image.Image) -> None:
    """Aluminium side profiles with bolts, guide rails, and the painted near side of the frame."""
    w = WIDTH * _S

    def band(y0: float, y1: float, tones: list[float], color: tuple[float, float, float]) -> None:
        rows = round((y1 - y0) * _S)
        level = np.interp(np.linspace(0, 1, rows), np.linspace(0, 1, len(tones)), tones)
        brushed = 1 + 0.02 * clouds(rng, rows, w, 1.2, stretch=80)
        body = level.astype(np.float32)[:, None] * brushed
        image.paste(_image(_tinted(body, color)), (0, round(y0 * _S)))

    steel = (0.97, 1.0, 1.03)
    paint = [(0.30, 0.62, 1.06), (0.26, 0.72, 0.74), (1.12, 0.60, 0.20), (0.52, 0.60, 0.70)]
    color = paint[rng.integers(len(paint))]
    band(66, 70, [96, 186, 120], steel)
    band(70, 83, [128, 152, 158, 140], color)
    band(83, 86, [210, 226, 150], steel)
    band(86, BELT_TOP, [52, 26], steel)
    band(BELT_BOTTOM, BELT_BOTTOM + 4, [20, 60], steel)
    band(BELT_BOTTOM + 4, BELT_BOTTOM + 14, [224, 206, 184, 196, 170], steel)
    band(BELT_BOTTOM + 14, BELT_BOTTOM + 16, [70, 40], steel)
    band(BELT_BOTTOM + 16, BELT_BOTTOM + 40, [118, 128, 112, 92, 66], color)
    band(BELT_BOTTOM + 40, BELT_BOTTOM + 44, [52, 24], steel)
    draw = ImageDraw.Draw(image)
    groove = (BELT_BOTTOM + 8.5) * _S
    draw.line((0, groove, w, groove), fill=(86, 88, 92), width=3)
    draw.line((0, groove + 3, w, groove + 3), fill=(236, 238, 240), width=1)
    offset = float(rng.uniform(0, 64))
    for x in np.arange(offset, WIDTH + 40, 64.0):
        for y, r in ((76.5, 2.4), (BELT_BOTTOM + 28.0, 2.8)):
            _bolt(draw, x * _S, y * _S, r * _S)
    for x in np.arange(offset + 32, WIDTH + 40, 128.0):  # brackets of the guide rail
        draw.rectangle(((x - 5) * _S, 80 * _S, (x + 5) * _S, 93 * _S), fill=(58, 60, 66))
        draw.rectangle(((x - 5) * _S, 80 * _S, (x + 5) * _S, 81.5 * _S), fill=(132, 136, 142))
    for y, tone in ((91.0, 92), (91.8, 214), (92.8, 150), (93.8, 66)):
        draw.line((0, y * _S, w, y * _S), fill=(tone, tone + 2, tone + 6), width=_S)
    face = font(13 * _S)
    ink = (232, 236, 240)
    for x in np.arange(offset - 330, WIDTH, 384.0):  # between bolts
        draw.text(
            ((x + 24) * _S, (BELT_BOTTOM + 28) * _S), "NORIA", fill=ink, font=face, anchor="lm"
        )
        at = ((x + 90) * _S, (BELT_BOTTOM + 28) * _S)
        draw.text(at, f"LINE {1 + int(offset) % 9}", fill=ink, font=font(9 * _S), anchor="lm")
        _hazard(draw, (x + 206) * _S, (BELT_BOTTOM + 19) * _S, 58 * _S, 18 * _S)


def _bolt(draw: ImageDraw.ImageDraw, x: float, y: float, r: float) -> None:
    draw.ellipse((x - r, y - r + 1, x + r + 1, y + r + 2), fill=(30, 32, 36))
    draw.ellipse((x - r, y - r, x + r, y + r), fill=(150, 154, 160))
    draw.ellipse((x - r * 0.6, y - r * 0.7, x + r * 0.3, y + r * 0.2), fill=(206, 210, 214))
    draw.ellipse((x - r * 0.4, y - r * 0.4, x + r * 0.4, y + r * 0.4), fill=(64, 66, 72))


def _hazard(draw: ImageDraw.ImageDraw, x: float, y: float, wide: float, high: float) -> None:
    stripe = high * 0.8
    draw.rectangle((x, y, x + wide, y + high), fill=(226, 176, 30))
    for i in range(int(wide / stripe)):
        a = x + i * stripe
        draw.polygon(
            [(a, y + high), (a + stripe * 0.5, y + high), (min(a + stripe, x + wide), y),
             (min(a + stripe * 0.5, x + wide), y)], fill=(28, 28, 30),
        )  # fmt: skip


def _light(rng: Rng, gantry: int | None) -> Image.Image:
    """Two lamps over the line, falling off towards the corners, warm on the left, cool at right."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    level = np.full((HEIGHT, WIDTH), 0.78, np.float32)
    for centre in (rng.uniform(120, 260), rng.uniform(400, 540)):
        distance = ((x - centre) / 190) ** 2 + ((y - rng.uniform(165, 215)) / 150) ** 2
        level += rng.uniform(0.22, 0.30) * np.exp(-distance)
    corner = ((x - WIDTH / 2) / (WIDTH / 2)) ** 2 + ((y - HEIGHT / 2) / (HEIGHT / 2)) ** 2
    level *= 1 - 0.13 * corner
    if gantry is not None:  # soft shadow of the beam overhead
        slanted = (x - gantry - 74 - (y - BELT_TOP) * 0.10) / 20
        level *= 1 - 0.26 * np.exp(-(slanted**2))
    warm = np.linspace(1.0, -1.0, WIDTH, dtype=np.float32)[None, :] * rng.uniform(0.2, 1.0)
    light = np.stack([level * (1 + 0.03 * warm), level, level * (1 - 0.035 * warm)], axis=-1)
    return _image(np.clip(light / light.max(), 0, 1) * 255)


@dataclass(frozen=True)
class Belt:
    """The moving belt: one period of its surface at each sub-pixel shift, and where it shows."""

    strips: tuple[Image.Image, ...]
    mask: Image.Image
    period: int

    @classmethod
    def make(cls, rng: Rng, *, end: int, period: int = 1296) -> Belt:
        """Rubber with a diamond grip, worn lengthwise, a stencil, and a laced seam."""
        rows, scale = BELT_BOTTOM - BELT_TOP, SUPERSAMPLE
        w, h = period * scale, rows * scale
        tone = rng.uniform(44, 62)
        pitch = 9 * scale  # divides the period, so the pattern closes
        y, x = np.mgrid[0:h, 0:pitch].astype(np.float32) * (2 * math.pi / pitch)
        grip = np.maximum(np.cos(x + y / 0.84), np.cos(x - y / 0.84))
        grip = 1 + 0.26 * np.clip(grip - 0.72, 0, None) / 0.28 - 0.05 * (grip < 0.2)
        gray = np.tile((tone * grip).astype(np.float32), (1, w // pitch))
        for _ in range(26):  # scuffs along the way of travel
            cy, cx = rng.uniform(0, h), rng.uniform(0, w)
            long, thin = rng.uniform(20, 190) * scale, rng.uniform(0.5, 2.2) * scale
            x0, x1 = int(max(cx - long, 0)), int(min(cx + long, w))
            y0, y1 = int(max(cy - 3 * thin, 0)), int(min(cy + 3 * thin + 1, h))
            along = np.exp(-(((np.arange(x0, x1) - cx) / long * 2) ** 2))
            across = np.exp(-(((np.arange(y0, y1) - cy) / thin) ** 2))
            mark = rng.uniform(-9, 17) * across[:, None] * along
            gray[y0:y1, x0:x1] += mark.astype(np.float32)
        edge = (np.minimum(np.arange(h), np.arange(h)[::-1]) / scale).astype(np.float32)[:, None]
        wear = clouds(rng, h, w, 30 * scale, stretch=9)
        fade = np.clip(np.minimum(np.arange(w), np.arange(w)[::-1]) / (60.0 * scale), 0, 1)
        gray *= 1 + 0.05 * wear * fade.astype(np.float32)
        gray *= (0.62 + 0.38 * np.clip(edge / 9, 0, 1)) * np.where(edge < 1.5, 1.5, 1.0)
        image = _image(_tinted(gray, (0.98, 1.0, 1.05)))
        _stencil(rng, image, scale)
        strips = tuple(
            _shifted(image, step).resize((period, rows), Image.Resampling.BOX)
            for step in range(scale)
        )
        mask = np.zeros((rows, WIDTH), np.float32)
        mask[:, : max(end, 0)] = 1.0
        return cls(strips, _image(mask * 255), period)

    def paste(self, frame: Image.Image, travel: int) -> None:
        """Put the belt into a frame after a travel of so many sub-pixels."""
        pixels, step = divmod(travel, SUPERSAMPLE)
        strip, start = self.strips[step], -pixels % self.period
        first = min(WIDTH, self.period - start)
        rows = strip.height
        view = strip.crop((start, 0, start + first, rows))
        frame.paste(view, (0, BELT_TOP), self.mask.crop((0, 0, first, rows)))
        if first < WIDTH:
            rest = strip.crop((0, 0, WIDTH - first, rows))
            frame.paste(rest, (first, BELT_TOP), self.mask.crop((first, 0, WIDTH, rows)))


def _shifted(image: Image.Image, step: int) -> Image.Image:
    return Image.fromarray(np.roll(np.asarray(image), step, axis=1)) if step else image


def _stencil(rng: Rng, image: Image.Image, scale: int) -> None:
    """Worn paint along the belt, and the seam with its clips."""
    w, h = image.size
    mask = Image.new("L", image.size, 0)
    draw = ImageDraw.Draw(mask)
    for k in range(2):
        x = (180 + k * w / scale / 2) * scale
        draw.text((x, h * 0.5), "NORIA", fill=120, font=font(64 * scale), anchor="lm")
        for j in range(3):
            a = x + (250 + j * 34) * scale
            top, mid, low = h * 0.5 - 24 * scale, h * 0.5, h * 0.5 + 24 * scale
            bar = 15 * scale
            draw.polygon(
                [(a, top), (a + bar, top), (a + 22 * scale + bar, mid), (a + bar, low), (a, low),
                 (a + 22 * scale, mid)], fill=100,
            )  # fmt: skip
    worn = np.asarray(mask, np.float32) * np.clip(
        0.55 + 0.45 * clouds(rng, h, w, 14 * scale), 0.05, 1
    )
    image.paste((214, 206, 176), (0, 0), _image(worn))
    draw = ImageDraw.Draw(image)
    seam = 40 * scale
    draw.rectangle((seam - scale, 0, seam + scale, h), fill=(18, 18, 20))
    for y in range(4 * scale, h - 4 * scale, 9 * scale):
        box = (seam - 6 * scale, y, seam + 6 * scale, y + 5 * scale)
        draw.rounded_rectangle(
            box, scale, fill=(142, 146, 150), outline=(40, 42, 44), width=scale // 2
        )


@dataclass(frozen=True)
class Gantry:
    """A beam over the line with a scanner head and its line of light: hides what is behind it."""

    image: Image.Image
    mask: Image.Image
    solid: Image.Image
    beam: Image.Image

    @classmethod
    def make(cls, rng: Rng, column: int) -> Gantry:
        """Draw one whose beam is centred on `column`."""
        size = (WIDTH * _S, HEIGHT * _S)
        image, mask = Image.new("RGB", size), Image.new("L", size, 0)
        draw, cover = ImageDraw.Draw(image), ImageDraw.Draw(mask)
        x, half = column * _S, 8 * _S
        tones = np.interp(
            np.linspace(-1, 1, 2 * half), [-1, -0.75, -0.1, 0.7, 1], [70, 128, 104, 62, 36]
        )
        for i, tone in enumerate(tones):
            value = int(tone)
            line = (x - half + i, 0, x - half + i, (BELT_BOTTOM + 12) * _S)
            draw.line(line, fill=(value, value + 2, value + 6))
        cover.rectangle((x - half, 0, x + half - 1, (BELT_BOTTOM + 12) * _S), fill=255)
        foot = ((x - 13 * _S), (BELT_BOTTOM + 3) * _S, (x + 13 * _S), (BELT_BOTTOM + 15) * _S)
        draw.rectangle(foot, fill=(92, 96, 102), outline=(40, 42, 46), width=2)
        cover.rectangle(foot, fill=255)
        for side in (-1, 1):
            _bolt(draw, x + side * 10 * _S, (BELT_BOTTOM + 9) * _S, 2.2 * _S)
        _head(draw, cover, x, int(rng.integers(30, 60)) * _S)
        beam = np.zeros((HEIGHT, WIDTH), np.float32)
        at = np.arange(WIDTH) - (column + 13.5)
        profile = 0.85 * np.exp(-((at / 0.9) ** 2)) + 0.22 * np.exp(-((at / 5.0) ** 2))
        beam[BELT_TOP - 14 : BELT_BOTTOM + 2] = profile
        fade = np.sin(np.linspace(0.1, math.pi - 0.1, BELT_BOTTOM + 16 - BELT_TOP)) ** 0.4
        beam[BELT_TOP - 14 : BELT_BOTTOM + 2] *= fade[:, None]
        glow = _image(beam[..., None] * np.array([225.0, 26.0, 22.0], np.float32))
        cover_small = mask.reduce(_S)
        solid = cover_small.point([0] * 128 + [255] * 128)
        return cls(image.reduce(_S), cover_small, solid, glow)


def _head(draw: ImageDraw.ImageDraw, cover: ImageDraw.ImageDraw, x: int, y: int) -> None:
    """The scanner housing on the beam, with a status lamp."""
    box = (x - 21 * _S, y, x + 21 * _S, y + 40 * _S)
    draw.rounded_rectangle(box, 5 * _S, fill=(38, 42, 50), outline=(16, 18, 20), width=2)
    draw.rounded_rectangle(
        (box[0] + 3, box[1] + 3, box[2] - 3, box[1] + 14 * _S), 4 * _S, fill=(66, 72, 82)
    )
    draw.rectangle((box[0] + 8, box[3] - 13 * _S, box[2] - 8, box[3] - 5 * _S), fill=(92, 14, 16))
    draw.rectangle(
        (box[0] + 12, box[3] - 10 * _S, box[2] - 12, box[3] - 8 * _S), fill=(255, 92, 80)
    )
    lamp = (x + 11 * _S, y + 18 * _S, x + 15 * _S, y + 22 * _S)
    draw.ellipse(lamp, fill=(96, 240, 128), outline=(18, 60, 30))
    draw.text(
        (x - 16 * _S, y + 20 * _S), "N-1", fill=(190, 196, 204), font=font(8 * _S), anchor="lm"
    )
    cover.rounded_rectangle(box, 5 * _S, fill=255)
