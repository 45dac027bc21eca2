"""The place of an object in space, from a tracker library of the user."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from headrace._core.plain_record import PlainRecord

FloatArray = npt.NDArray[np.float32]


class TrackGeometry(PlainRecord, frozen=True, eq=False):
    """One object in space. Fields that the library does not give are None.

    Attributes:
        visibility: share of the object that is not hidden, 0 to 1.
        foot: x, y of where it stands, in pixels of the frame.
        world_foot: x, y of the same on the ground, in the units of the library's camera model.
        hull: (N, 2) int32, the outline of its body in pixels of the frame.
        box_3d: (12,) float32 in the world: x, y, z of centre, length, rotation and velocity.
        corners: (8, 2) float32, the corners of that box in pixels of the frame.
    """

    visibility: float | None = None
    foot: FloatArray | None = None
    world_foot: FloatArray | None = None
    hull: npt.NDArray[np.int32] | None = None
    box_3d: FloatArray | None = None
    corners: FloatArray | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the library gave none of it."""
        return all(getattr(self, field.name) is None for field in fields(self))
