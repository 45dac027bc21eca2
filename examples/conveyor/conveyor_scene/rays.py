"""View rays against simple solids: which point of the solid each sub-pixel shows.

A solid stands on the belt with its centre over the origin, turned by `yaw` around the vertical.
Since the view is parallel, a ray that enters and leaves a convex solid shows the point where it
leaves towards the camera.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .camera import COS, SIN, SUPERSAMPLE, Floats

__all__ = ["Canvas", "Hits", "cuboid", "heights", "lying_cylinder", "standing_cylinder"]

TOP, FRONT, SIDE = 0, 1, 2


@dataclass(frozen=True)
class Canvas:
    """A sub-pixel grid: `width` x `height` pixels whose corner is (left, top) from the origin."""

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def around(cls, reach_x: float, reach_y: float, tall: float) -> Canvas:
        """Room for a solid that reaches so far in X and Y and is so tall."""
        left = -math.ceil(reach_x) - 2
        top = -math.ceil(reach_y * SIN + tall * COS) - 2
        bottom = math.ceil(reach_y * SIN) + 2
        return cls(left, top, -2 * left, bottom - top)

    @property
    def shape(self) -> tuple[int, int]:
        return self.height * SUPERSAMPLE, self.width * SUPERSAMPLE

    def ground(self) -> tuple[Floats, Floats]:
        """World X and Y where each ray meets the belt, shape `self.shape`."""
        step = 1.0 / SUPERSAMPLE
        rows, columns = self.shape
        x = self.left + (np.arange(columns, dtype=np.float32) + 0.5) * step
        y = -(self.top + (np.arange(rows, dtype=np.float32) + 0.5) * step) / SIN
        return np.broadcast_to(x, self.shape), np.broadcast_to(y[:, None], self.shape)


@dataclass(frozen=True)
class Hits:
    """What N rays show.

    Attributes:
        index: (N,) flat sub-pixel numbers.
        face: (N,) TOP, FRONT or SIDE.
        u, v: (N,) position on the face in units, from its left and upper edge.
        normal: (N, 3) world unit normals.
        height: (N,) Z of the point.
    """

    index: np.ndarray
    face: np.ndarray
    u: Floats
    v: Floats
    normal: Floats
    height: Floats


def _local(canvas: Canvas, yaw: float) -> tuple[Floats, Floats, float, float]:
    """Ray origins on the belt and ray direction, in the solid's own axes a (long) and b."""
    x, y = canvas.ground()
    c, s = math.cos(yaw), math.sin(yaw)
    return x * c + y * s, y * c - x * s, -COS * s, -COS * c


def _world(na: Floats, nb: Floats, nz: Floats, yaw: float) -> Floats:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.stack([na * c - nb * s, na * s + nb * c, nz], axis=-1).astype(np.float32)


def cuboid(canvas: Canvas, yaw: float, length: float, depth: float, tall: float) -> Hits:
    """A box: TOP spans (length, depth), FRONT (length, tall), SIDE (depth, tall)."""
    a, b, da, db = _local(canvas, yaw)
    da = da if abs(da) > 1e-6 else 1e-6
    exit_a = (math.copysign(length / 2, da) - a) / da
    enter_a = (-math.copysign(length / 2, da) - a) / da
    exit_b, enter_b = (-depth / 2 - b) / db, (depth / 2 - b) / db
    exit_z = np.float32(tall / SIN)
    leave = np.minimum(np.minimum(exit_a, exit_b), exit_z)
    enter = np.maximum(np.maximum(enter_a, enter_b), 0.0)
    index = np.flatnonzero(leave > enter)
    t = leave.ravel()[index]
    pa, pb, pz = a.ravel()[index] + t * da, b.ravel()[index] + t * db, t * SIN
    side = exit_a.ravel()[index] <= t
    front = ~side & (exit_b.ravel()[index] <= t)
    face = np.where(side, SIDE, np.where(front, FRONT, TOP)).astype(np.uint8)
    sign = np.float32(math.copysign(1.0, da))
    along = pa + length / 2
    u = np.where(side, (pb * sign) + depth / 2, along)
    v = np.where(face == TOP, depth / 2 - pb, tall - pz)
    normal = _world(
        np.where(side, sign, 0.0), np.where(front, -1.0, 0.0), np.where(face == TOP, 1.0, 0.0), yaw
    )
    return Hits(index, face, u, v, normal, pz)


def standing_cylinder(canvas: Canvas, yaw: float, radius: float, tall: float) -> Hits:
    """A drum: TOP spans (2r, 2r); FRONT is the wall, u = arc length around, v = depth below rim."""
    a, b, da, db = _local(canvas, yaw)
    qa, qb, qc = da * da + db * db, a * da + b * db, a * a + b * b - radius * radius
    disc = qb * qb - qa * qc
    root = np.sqrt(np.maximum(disc, 0.0))
    leave = np.minimum((-qb + root) / qa, tall / SIN)
    enter = np.maximum((-qb - root) / qa, 0.0)
    index = np.flatnonzero((disc > 0) & (leave > enter))
    t = leave.ravel()[index]
    pa, pb, pz = a.ravel()[index] + t * da, b.ravel()[index] + t * db, t * SIN
    wall = pz < tall - 1e-3
    face = np.where(wall, FRONT, TOP).astype(np.uint8)
    angle = np.arctan2(pb, pa)
    u = np.where(wall, (angle + math.pi) * radius, pa + radius)
    v = np.where(wall, tall - pz, radius - pb)
    flat = np.where(wall, 1.0 / radius, 0.0)
    normal = _world(pa * flat, pb * flat, np.where(wall, 0.0, 1.0), yaw)
    return Hits(index, face, u, v, normal, pz)


def lying_cylinder(canvas: Canvas, yaw: float, length: float, radius: float) -> Hits:
    """A tube on its side: TOP is the wall (length, arc from the far side), SIDE the end cap."""
    a, b, da, db = _local(canvas, yaw)
    da = da if abs(da) > 1e-6 else 1e-6
    qa, qb, qc = db * db + SIN * SIN, b * db - radius * SIN, b * b
    disc = qb * qb - qa * qc
    root = np.sqrt(np.maximum(disc, 0.0))
    exit_a = (math.copysign(length / 2, da) - a) / da
    enter_a = (-math.copysign(length / 2, da) - a) / da
    leave = np.minimum((-qb + root) / qa, exit_a)
    enter = np.maximum((-qb - root) / qa, enter_a)
    index = np.flatnonzero((disc > 0) & (leave > enter))
    t = leave.ravel()[index]
    pa, pb, pz = a.ravel()[index] + t * da, b.ravel()[index] + t * db, t * SIN
    cap = exit_a.ravel()[index] <= t
    face = np.where(cap, SIDE, TOP).astype(np.uint8)
    angle = np.arctan2(pb, pz - radius)  # 0 on the ridge, positive on the far side
    u = np.where(cap, pb + radius, pa + length / 2)
    v = np.where(cap, 2 * radius - pz, (math.pi - angle) * radius)
    sign = np.float32(math.copysign(1.0, da))
    normal = _world(
        np.where(cap, sign, 0.0),
        np.where(cap, 0.0, pb / radius),
        np.where(cap, 0.0, (pz - radius) / radius),
        yaw,
    )
    return Hits(index, face, u, v, normal, pz)


def heights(canvas: Canvas, yaw: float, length: float, depth: float, relief: Floats) -> Hits:
    """A soft thing: a height field over a (length, depth) rectangle, nothing where it is 0.

    `relief` (rows, columns) has its first row on the far side. The point a ray shows is found by
    fixed-point steps, good for slopes below about 45 degrees.
    """
    a, b, da, db = _local(canvas, yaw)
    rows, columns = relief.shape
    padded = np.pad(relief, 1)
    per_a, per_b = columns / length, rows / depth

    def cell(pa: Floats, pb: Floats) -> tuple[np.ndarray, np.ndarray]:
        column = np.clip(((pa + length / 2) * per_a).astype(np.int32) + 1, 0, columns + 1)
        row = np.clip(((depth / 2 - pb) * per_b).astype(np.int32) + 1, 0, rows + 1)
        return row, column

    z = np.zeros(canvas.shape, np.float32)
    for _ in range(4):
        z = padded[cell(a + z * (da / SIN), b + z * (db / SIN))]
    index = np.flatnonzero(z > 0.0)
    z = z.ravel()[index]
    pa, pb = a.ravel()[index] + z * (da / SIN), b.ravel()[index] + z * (db / SIN)
    where = cell(pa, pb)
    slope_b, slope_a = np.gradient(np.pad(relief, 1, mode="edge"))
    normal = _world(
        -slope_a[where] * per_a, slope_b[where] * per_b, np.ones(len(index), np.float32), yaw
    )
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    face = np.full(len(index), TOP, np.uint8)
    return Hits(index, face, pa + length / 2, depth / 2 - pb, normal, z)
