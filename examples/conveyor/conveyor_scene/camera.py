"""The camera and the lamp: one oblique parallel projection and one key light for everything.

World axes, in units that are one pixel wide on the image: X along the belt, Y across it (away
from the viewer), Z up. A world point lands at image x = X, y = -Y * SIN - Z * COS, plus the
origin. The view ray of an image point has no X component, so two parcels side by side on one
lane can never hide each other; only the nearer lane hides the farther one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["COS", "HALF", "LIGHT", "SIN", "SUPERSAMPLE", "TEXELS", "VIEW", "Floats", "shade"]

Floats = npt.NDArray[np.float32]

ELEVATION = math.radians(57.0)
SIN, COS = math.sin(ELEVATION), math.cos(ELEVATION)
VIEW = np.array([0.0, -COS, SIN], np.float32)
"""Unit vector from the scene towards the camera."""

SUPERSAMPLE = 3
"""Rays per pixel and axis; also the number of sub-pixel positions a parcel can have."""

TEXELS = 4
"""Texture pixels per world unit."""


def _unit(x: float, y: float, z: float) -> Floats:
    vector = np.array([x, y, z], np.float32)
    return vector / np.float32(np.linalg.norm(vector))


LIGHT = _unit(-0.50, 0.30, 0.81)
"""Towards the key lamp: above, left, a little behind, so shadows fall to the lower right."""

HALF = (LIGHT + VIEW) / np.float32(np.linalg.norm(LIGHT + VIEW))
"""Half-way vector of the specular highlight."""


def shade(normals: Floats, height: Floats) -> Floats:
    """Diffuse brightness of surface points, 1.0 for a horizontal face.

    Args:
        normals: (N, 3) world unit normals.
        height: (N,) height over the belt; the lowest 30 units get darker, as light is scarce there.
    """
    key = np.clip(normals @ LIGHT, 0.0, None) * np.float32(0.66 / LIGHT[2])
    sky = 0.31 + 0.03 * normals[:, 2]
    contact = 0.76 + 0.24 * np.clip(height / 30.0, 0.0, 1.0)
    return np.asarray((key + sky) * contact, np.float32)
