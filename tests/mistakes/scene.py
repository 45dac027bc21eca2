"""Images of painted squares, and what a right set-up finds in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 320, 192
SIDE = 64
NAMES = ("tomato", "cactus", "plum")
COLORS = ((200, 40, 40), (40, 200, 40), (40, 40, 200))
COUNT = 12


@dataclass(frozen=True, slots=True)
class Square:
    """A painted square: class and its corner in pixels of the image."""

    kind: int
    left: int
    top: int


def _three(number: int) -> tuple[Square, ...]:
    # on the grid of the models' cells, moving from row to row
    lefts = (8, 104, 200)
    return tuple(
        Square(
            kind, lefts[(kind + number) % 3] + 16 * (number % 3), 8 + 16 * ((number + 3 * kind) % 7)
        )
        for kind in range(3)
    )


def _crowd(number: int) -> tuple[Square, ...]:
    corners = [(left, top) for top in (8, 104) for left in (8, 104, 200)]
    return tuple(Square((i + number) % 3, *corner) for i, corner in enumerate(corners))


def _alike(number: int) -> tuple[Square, ...]:
    return tuple(Square(number % 3, s.left, s.top) for s in _crowd(number))


# name -> the squares of an image, brightness of the background, strength of the noise
SCENES = {
    "images": (_three, 105, 8),
    "dark": (_three, 12, 4),
    "bright": (_three, 225, 4),
    "noisy": (_three, 110, 20),
    "plain": (_three, 110, 0),
    "crowd": (_crowd, 105, 8),
    "alike": (_alike, 105, 8),
    "empty": (lambda _: (), 105, 8),
    "rare": (lambda number: _three(number) if number == 7 else (), 105, 8),
}


def squares(number: int, scene: str = "images") -> tuple[Square, ...]:
    """The squares of one image of a scene."""
    return SCENES[scene][0](number)


def image(number: int, scene: str = "images") -> npt.NDArray[np.uint8]:
    """One image (HEIGHT, WIDTH, 3) uint8 RGB: squares before a slope of grey, with noise."""
    _, level, noise = SCENES[scene]
    dice = np.random.default_rng(number)
    slope = np.linspace(level * 0.6, level * 1.3, WIDTH)[None, :, None]
    made = slope + dice.normal(0, noise, (HEIGHT, WIDTH, 3))
    for square in squares(number, scene):
        region = made[square.top : square.top + SIDE, square.left : square.left + SIDE]
        region[:] = COLORS[square.kind] + dice.normal(0, noise * 0.7, region.shape)
    return np.clip(made, 0, 255).astype(np.uint8)


def write_scenes(folder: Path, scenes: Iterable[str] = SCENES) -> None:
    """Write a folder of PNG files for each scene."""
    from PIL import Image

    for scene in scenes:
        (folder / scene).mkdir(parents=True)
        for number in range(COUNT):
            made = Image.fromarray(image(number, scene))
            made.save(folder / scene / f"{number:03}.png", compress_level=1)
