"""Seeded images of labelled parcels on a conveyor belt, with exact ground truth."""

from .parcels import CLASSES, CODE_LENGTH
from .scene import FPS, MIN_VISIBLE, Scene, Truth
from .surroundings import HEIGHT, WIDTH
from .textures import ALPHABET

__all__ = [
    "ALPHABET",
    "CLASSES",
    "CODE_LENGTH",
    "FPS",
    "HEIGHT",
    "MIN_VISIBLE",
    "WIDTH",
    "Scene",
    "Truth",
]
