"""Surfaces: cardboard, paper, plastic, painted steel; and the printed label with its code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from .camera import TEXELS, Floats

__all__ = [
    "ALPHABET",
    "LABEL_HEIGHT",
    "LABEL_WIDTH",
    "Color",
    "Texture",
    "clouds",
    "font",
    "label",
    "plain",
]

Color = tuple[int, int, int]

ALPHABET = "0123456789ABCDEFGHJKLMNPRSTUVWXY"
"""32 characters: no I, O, Q, Z, which even people confuse with 1, 0 and 2."""

LABEL_WIDTH, LABEL_HEIGHT = 94.0, 50.0
"""Size of a label in units."""

PITCH, EM = 20.5, 28.5
"""Distance of characters and font size in units: capitals are about 20 units high."""


@lru_cache(maxsize=16)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's embedded font (Aileron, CC0) at a pixel size."""
    loaded = ImageFont.load_default(size)
    assert isinstance(loaded, ImageFont.FreeTypeFont), "Pillow was built without FreeType"
    return loaded


def clouds(
    rng: np.random.Generator, height: int, width: int, cell: float, stretch: float = 1.0
) -> Floats:
    """Smooth noise of about unit strength, (height, width).

    Features are `cell` pixels high and `cell * stretch` wide.
    """
    rows = max(2, round(height / cell) + 1)
    columns = max(2, round(width / (cell * stretch)) + 1)
    coarse = Image.fromarray(rng.standard_normal((rows, columns)).astype(np.float32))
    return np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)


@dataclass
class Texture:
    """A face: image (TEXELS per unit), character numbers (0 none, 1.. on ink), gloss 0..1."""

    image: Image.Image
    characters: Image.Image | None = None
    gloss: float = 0.0

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.image)

    def sample(self, u: Floats, v: Floats) -> npt.NDArray[np.uint8]:
        """(N, 3) colours at positions in units; positions outside take the nearest edge."""
        return np.asarray(self.image)[self._at(u, v)]

    def sample_characters(self, u: Floats, v: Floats) -> npt.NDArray[np.uint8]:
        """(N,) character numbers at positions in units."""
        if self.characters is None:
            return np.zeros(len(u), np.uint8)
        return np.asarray(self.characters)[self._at(u, v)]

    def _at(self, u: Floats, v: Floats) -> tuple[np.ndarray, np.ndarray]:
        x = np.clip((u * TEXELS).astype(np.int32), 0, self.image.width - 1)
        y = np.clip((v * TEXELS).astype(np.int32), 0, self.image.height - 1)
        return y, x

    def scaled(self, factor: npt.ArrayLike) -> None:
        """Multiply the image by a factor per pixel, (height, width) or (height, width, 3)."""
        values = np.asarray(factor, np.float32)
        values = values[..., None] if values.ndim == 2 else values
        pixels = np.asarray(self.image, np.float32) * values
        self.image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))

    def stick(
        self, label: tuple[Image.Image, Image.Image], u: float, v: float, turn: float
    ) -> None:
        """Put a label with its centre at (u, v), turned by `turn` degrees; ink gets its numbers."""
        image, numbers = label
        mask = Image.new("L", image.size, 255)
        turned = [
            layer.rotate(turn, resample, expand=True)
            for layer, resample in (
                (image, Image.Resampling.BICUBIC),
                (numbers, Image.Resampling.NEAREST),
                (mask, Image.Resampling.BICUBIC),
            )
        ]
        at = (
            round(u * TEXELS - turned[0].width / 2),
            round(v * TEXELS - turned[0].height / 2),
        )
        lift = Image.new("L", turned[2].size, 0)
        lift.paste(70, (0, 0), turned[2])
        self.image.paste((20, 15, 10), (at[0] + 3, at[1] + 3), lift)
        self.image.paste(turned[0], at, turned[2])
        if self.characters is None:
            self.characters = Image.new("L", self.image.size, 0)
        self.characters.paste(turned[1], at, turned[2])


def plain(
    rng: np.random.Generator,
    width: float,
    height: float,
    color: Color,
    *,
    mottle: float = 0.03,
    grain: float = 0.02,
    fibre: float = 0.0,
    gloss: float = 0.0,
) -> Texture:
    """A face of one colour with blotches, grain and lengthwise fibres, as fractions of it."""
    w, h = max(2, round(width * TEXELS)), max(2, round(height * TEXELS))
    factor = 1 + mottle * clouds(rng, h, w, 90)
    factor += grain * rng.standard_normal((h, w), np.float32)
    if fibre:
        factor += fibre * clouds(rng, h, w, 3, stretch=30)
    texture = Texture(Image.new("RGB", (w, h), color), gloss=gloss)
    texture.scaled(factor)
    return texture


@lru_cache(maxsize=64)
def glyph(character: str) -> Image.Image:
    """The ink of a character as a mask, squeezed to at most the pitch; the bottom is its foot."""
    style = {"font": font(round(EM * TEXELS)), "stroke_width": round(0.32 * TEXELS)}
    box = style["font"].getbbox(character, anchor="ls", stroke_width=style["stroke_width"])
    ink = Image.new("L", (round(box[2] - box[0]), round(-box[1])), 0)
    ImageDraw.Draw(ink).text((-box[0], -box[1]), character, fill=255, anchor="ls", **style)
    widest = round((PITCH - 2.6) * TEXELS)
    if ink.width > widest:
        ink = ink.resize((widest, ink.height), Image.Resampling.LANCZOS)
    return ink


def label(
    rng: np.random.Generator, code: str, stock: Color, accent: Color
) -> tuple[Image.Image, Image.Image]:
    """A printed label: the code in large characters over a bar code.

    Returns:
        The image and, of the same size, the character numbers (1 for the first) on their ink.
    """
    w, h = round(LABEL_WIDTH * TEXELS), round(LABEL_HEIGHT * TEXELS)
    image, numbers = Image.new("RGB", (w, h), stock), Image.new("L", (w, h), 0)
    draw = ImageDraw.Draw(image)
    ink = (22, 22, 26)
    draw.rectangle((0, 0, 3 * TEXELS, h), fill=accent)
    x0 = (LABEL_WIDTH + 3 - (len(code) - 1) * PITCH) / 2
    for i, character in enumerate(code):
        mask = glyph(character)
        left = round((x0 + i * PITCH) * TEXELS - mask.width / 2)
        at = (left, round(28.0 * TEXELS) - mask.height)
        image.paste(ink, at, mask)
        numbers.paste(i + 1, at, mask.point(lambda value: 255 if value > 127 else 0))
    x = 9.0 * TEXELS
    while x < w - 7 * TEXELS:
        bar = float(rng.choice([0.7, 0.7, 1.4, 2.1])) * TEXELS
        draw.rectangle((x, 34 * TEXELS, x + bar, 45 * TEXELS), fill=ink)
        x += bar + float(rng.choice([0.8, 0.8, 1.6])) * TEXELS
    return image, numbers
