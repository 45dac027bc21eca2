"""Views of a wide lens' images: perspective, cylinders and others, as `nvdewarper` makes them."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import MediaError
from headrace.config.dewarper_file import PROJECTIONS, DewarpedSurface, DewarperConfig, Lens
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, is_full
from headrace.media.resizing import scaled
from headrace.media.sources.base import Source

if TYPE_CHECKING:
    from headrace.media.pixel_format import Plane

Array = npt.NDArray[np.float64]
Map = npt.NDArray[np.float32]
_ROUND = (Lens.FISHEYE, Lens.EQUIRECTANGULAR, Lens.VERTICAL_CYLINDER)  # rows are angles
_MOST_SIZES = 4
_WIDEST = 1e6  # of a plane, in focal lengths: it holds less than half a turn


class Dewarper:
    """Makes the views of one config; maps are kept for each size of image.

    Args:
        config: its surfaces.
        only: the number of the surface that is made; None makes all.
    """

    def __init__(self, config: DewarperConfig, only: int | None = None) -> None:
        self.surfaces = config.surfaces if only is None else config.surfaces[only : only + 1]
        self.size = config.size
        self._maps: dict[tuple[int, int, bool], list[tuple[Map, Map | None]]] = {}

    def views(self, frame: Frame) -> list[Frame]:
        """The views of a frame, in its own format, all of the config's output size."""
        subsampled = frame.format in (PixelFormat.I420, PixelFormat.NV12)
        key = frame.width, frame.height, subsampled
        maps = self._maps.get(key)
        if maps is None:
            if len(self._maps) >= _MOST_SIZES:
                self._maps.clear()
            maps = self._maps[key] = [_maps(one, *key) for one in self.surfaces]
        return [
            scaled(_view(frame, surface, *pair), *self.size)
            for surface, pair in zip(self.surfaces, maps, strict=True)
        ]


class DewarpedSource(Source):
    """One view of another source's frames.

    Args:
        source: closed with this one.
        dewarper: of one surface.
    """

    def __init__(self, source: Source, dewarper: Dewarper) -> None:
        super().__init__(source.name, source.source_id)
        self.uri = source.uri
        self._source, self._dewarper = source, dewarper
        self.width, self.height = dewarper.size
        self.live, self.fps, self.frames = source.live, source.fps, source.frames
        self.notices, self.files, self.decoder = source.notices, source.files, source.decoder

    def rename(self, name: str) -> None:
        """Give this source and the one behind it another name."""
        super().rename(name)
        self._source.rename(name)

    def rewind(self) -> bool:
        """Begin again at the first frame, if the source behind can."""
        if not self._source.rewind():
            return False
        self._generator = None
        return True

    def _read(self) -> Generator[Frame, None, None]:
        for frame in self._source:
            self.reconnects, self.skipped = self._source.reconnects, self._source.skipped
            self.decoder = self._source.decoder
            yield self._dewarper.views(frame)[0]

    def _interrupt(self) -> None:
        self._source.close()

    def _release(self) -> None:
        self._source.close()


def _view(frame: Frame, surface: DewarpedSurface, whole: Map, half: Map | None) -> Frame:
    dark = 16 if half is not None and not is_full(frame.color) else 0
    planes: list[Plane] = []
    for number, plane in enumerate(frame.planes):
        places = whole if half is None or not number else half
        out = np.empty((*places.shape[:2], *plane.shape[2:]), np.uint8)
        black = 128 if half is not None and number else dark
        _native.remap(plane, places, out, black, surface.is_bordered)
        planes.append(out)
    size: dict[str, Any] = {"width": surface.width, "height": surface.height}
    return replace(frame, planes=tuple(planes), owner=None, **size)


def _maps(
    surface: DewarpedSurface, width: int, height: int, subsampled: bool
) -> tuple[Map, Map | None]:
    """Where each pixel of a view lies in the image, and each pair of colours; NaN nowhere."""
    columns, rows = (np.arange(size, dtype=float) for size in (surface.width, surface.height))
    whole = _places(surface, width, height, columns[None, :], rows[:, None])
    if not subsampled:
        return whole.astype(np.float32), None
    half = _places(
        surface, width, height,
        columns[None, ::2] + 0.5,
        rows[::2, None] + 0.5,
    )  # fmt: skip
    return whole.astype(np.float32), ((half - 0.5) / 2).astype(np.float32)


def _places(surface: DewarpedSurface, width: int, height: int, x: Array, y: Array) -> Array:
    """Coordinates (x, y) in the image of each pixel of a view."""
    lens, view = PROJECTIONS[surface.projection]
    focal = surface.focal or _focal(surface, lens, height)
    middle = (width - 1) / 2, (height - 1) / 2
    center = [middle[i] if (c := surface.center[i]) is None else c for i in (0, 1)]
    view_focal, view_center = _of_view(surface, view, focal, center, middle)
    if surface.view_focal is not None:
        view_focal = surface.view_focal
    if surface.view_center is not None:
        view_center = surface.view_center
    u, v = np.broadcast_arrays((x - view_center[0]) / view_focal[0],
                               (y - view_center[1]) / view_focal[1])  # fmt: skip
    with np.errstate(all="ignore"):  # what lies nowhere becomes NaN
        rays = np.stack(_rays(view, u, v, surface.control))
        right, down, ahead = np.tensordot(_rotation(surface), rays, 1)
        at_x, at_y = _onto(lens, right, down, ahead, surface.distortion)
        places = np.stack((at_x * focal[0] + center[0], at_y * focal[1] + center[1]), -1)
    places[~np.isfinite(places).all(-1)] = np.nan
    return places


def _focal(surface: DewarpedSurface, lens: Lens, height: int) -> tuple[float, float]:
    """The focal length of an image, from its vertical angle of view."""
    radius = (height if surface.fov == 180 else height - 1) / 2
    angle = math.radians(surface.fov / 2)
    reach = math.tan(angle) if lens is Lens.PERSPECTIVE else angle
    if lens is not Lens.EQUIRECTANGULAR:
        count = 3 if lens is Lens.PERSPECTIVE else 4
        reach *= 1 + sum(k * reach ** (2 * n) for n, k in enumerate(surface.distortion[:count], 1))
    if not 0 < reach < _WIDEST:
        raise MediaError(
            f"src-fov={surface.fov:g} fits no {lens} image",
            expected="less than 180 degrees for perspective images, and a positive distortion",
        )
    return radius / reach, radius / reach


def _of_view(
    surface: DewarpedSurface, view: Lens, focal: tuple[float, float], center: list[float],
    middle: tuple[float, float],
) -> tuple[tuple[float, float], tuple[float, float]]:  # fmt: skip
    """Focal lengths and centre of a view: of its angles, or as the image has them."""
    half = (surface.width - 1) / 2, (surface.height - 1) / 2
    if not (surface.top or surface.bottom):
        return focal, (half[0] + center[0] - middle[0], half[1] + center[1] - middle[1])
    top, bottom = math.radians(surface.top), math.radians(surface.bottom)
    if view in _ROUND:
        upper, lower = top, bottom
    elif view is Lens.STEREOGRAPHIC:
        upper, lower = (
            math.sin(a) / (math.cos(a) + surface.control) * (1 + surface.control)
            for a in (top, bottom)
        )
    else:
        upper, lower = math.tan(top), math.tan(bottom)
    if not lower < upper:
        raise MediaError(
            f"top-angle={surface.top:g} and bottom-angle={surface.bottom:g} fit no {view} view",
            expected="angles between -90 and 90 degrees",
        )
    of_view = (surface.height - 1) / (upper - lower)
    return (of_view, of_view), (half[0], of_view * upper)


def _rays(view: Lens, u: Array, v: Array, control: float) -> tuple[Array, Array, Array]:
    """The direction (right, down, ahead) of a view's pixels, of any length."""
    one = np.ones_like(u)
    if view is Lens.PERSPECTIVE:
        return u, v, one
    if view is Lens.PUSHBROOM:
        return u * np.sqrt(u * u * control + 1), v, one
    if view is Lens.CYLINDER:
        return np.sin(u), v, np.cos(u)
    if view is Lens.VERTICAL_CYLINDER:
        return u, np.sin(v), np.cos(v)
    if view is Lens.EQUIRECTANGULAR:
        return np.sin(u), np.tan(v), np.cos(u)
    if view is Lens.FISHEYE:
        angle = np.hypot(u, v)
        ratio = np.sinc(angle / np.pi)
        return u * ratio, v * ratio, np.cos(angle)
    u, v = u / (1 + control), v / (1 + control)
    square = u * u if view is Lens.PANINI else u * u + v * v
    # the point of the unit circle on the line from (0, -control)
    ahead = (np.sqrt(1 + (1 - control * control) * square) - control * square) / (1 + square)
    return u * (control + ahead), v * (control + ahead), ahead


def _onto(
    lens: Lens, x: Array, y: Array, z: Array, distortion: tuple[float, ...]
) -> tuple[Array, Array]:
    """Where directions fall on the plane of an image, in focal lengths from its centre."""
    if lens is Lens.EQUIRECTANGULAR:
        return np.arctan2(x, z), np.arctan2(y, np.hypot(x, z))
    k1, k2, k3, k4, k5 = distortion
    if lens is Lens.FISHEYE:
        radius = np.hypot(x, y)
        angle = np.arctan2(radius, z)
        square = angle * angle
        bent = angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4))))
        ratio = np.divide(bent, radius, out=np.zeros_like(bent), where=radius > 0)
        return x * ratio, y * ratio
    z = np.where(z > 0, z, np.nan)  # behind the lens
    x, y = x / z, y / z
    square = x * x + y * y
    radial = 1 + square * (k1 + square * (k2 + square * k3))
    return (
        x * radial + 2 * k4 * x * y + k5 * (square + 2 * x * x),
        y * radial + 2 * k5 * x * y + k4 * (square + 2 * y * y),
    )


def _rotation(surface: DewarpedSurface) -> Array:
    """(3, 3), from the view's directions to the image's."""
    if surface.matrix is not None:
        return np.array(surface.matrix).reshape(3, 3).T
    angles = {"X": surface.pitch, "Y": surface.yaw, "Z": surface.roll}
    whole = np.eye(3)
    for axis in surface.axes:
        cos, sin = (f(math.radians(angles[axis])) for f in (math.cos, math.sin))
        turns = {
            "X": [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]],
            "Y": [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]],
            "Z": [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]],
        }
        whole = whole @ np.array(turns[axis])
    return whole
