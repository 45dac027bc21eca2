"""Views of wide lenses: a light in a known direction lies where the geometry of the view has it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace._core.errors import MediaError
from headrace.config.dewarper_file import PROJECTIONS, DewarpedSurface, DewarperConfig, Lens
from headrace.media.dewarping import Dewarper
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.resizing import reformatted

SIZE = 401  # of the image; views are 201 x 201
FOCAL = 110.0
MIDDLE = (SIZE - 1) / 2


def place(lens: Lens, yaw: float, pitch: float) -> tuple[float, float]:
    """Where the light of a direction falls on an image: degrees rightward, then upward."""
    across, up = math.radians(yaw), math.radians(pitch)
    x, y, z = math.cos(up) * math.sin(across), -math.sin(up), math.cos(up) * math.cos(across)
    if lens is Lens.EQUIRECTANGULAR:
        u, v = across, -up
    elif lens is Lens.PERSPECTIVE:
        u, v = x / z, y / z
    else:
        angle, length = math.acos(z), math.hypot(x, y) or 1.0
        u, v = x / length * angle, y / length * angle
    return MIDDLE + u * FOCAL, MIDDLE + v * FOCAL


def light_at(x: float, y: float) -> Frame:
    rows, columns = np.mgrid[:SIZE, :SIZE]
    image = 255 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 50)
    return Frame.from_array(image.astype(np.uint8), PixelFormat.GRAY)


def seen(frame: Frame, surface: DewarpedSurface) -> tuple[float, float]:
    """Column and row of the light in the view."""
    view = Dewarper(DewarperConfig((surface,), (surface.width, surface.height))).views(frame)[0]
    image = view.planes[0].astype(float)
    rows, columns = np.mgrid[: view.height, : view.width]
    total = image.sum()
    assert total > 0
    return float((columns * image).sum() / total), float((rows * image).sum() / total)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_view_that_is_turned_to_a_light_has_it_in_its_middle(projection: int) -> None:
    frame = light_at(*place(PROJECTIONS[projection][0], 25, 15))
    surface = DewarpedSurface(
        projection, 0, 201, 201, 40, -40, pitch=15, yaw=25, focal=(FOCAL, FOCAL)
    )
    assert seen(frame, surface) == pytest.approx((100, 100), abs=1.5)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_the_edges_of_a_view_are_its_angles(projection: int) -> None:
    lens = PROJECTIONS[projection][0]
    surface = DewarpedSurface(projection, 0, 201, 201, 40, -20, focal=(FOCAL, FOCAL))
    x, y = seen(light_at(*place(lens, 0, 30)), surface)
    lower = seen(light_at(*place(lens, 0, -10)), surface)
    level = seen(light_at(*place(lens, 0, 0)), surface)
    assert x == pytest.approx(100, abs=1)
    assert y < level[1] < lower[1]
    view = PROJECTIONS[projection][1]
    if view in (Lens.FISHEYE, Lens.EQUIRECTANGULAR, Lens.VERTICAL_CYLINDER):
        assert (y, level[1]) == pytest.approx((200 * 10 / 60, 200 * 40 / 60), abs=2)
    elif view is not Lens.STEREOGRAPHIC:
        top, bottom = (math.tan(math.radians(a)) for a in (40, -20))
        at = 200 * (top - math.tan(math.radians(30))) / (top - bottom)
        assert (y, level[1]) == pytest.approx((at, 200 * top / (top - bottom)), abs=2)


@pytest.mark.parametrize(
    ("turn", "quadrant"),
    [({"yaw": 20}, (-1, 0)), ({"pitch": 20}, (0, 1)), ({"roll": 90}, (0, 0))],
)
def test_turns_go_rightward_upward_and_clockwise(
    turn: dict[str, float], quadrant: tuple[int, int]
) -> None:
    surface = DewarpedSurface(4, 0, 201, 201, 40, -40, focal=(FOCAL, FOCAL), **turn)
    x, y = seen(light_at(*place(Lens.FISHEYE, 0, 0)), surface)
    assert (round((x - 100) / 100), round((y - 100) / 100)) == (0, 0) or quadrant != (0, 0)
    assert (np.sign(round(x - 100)), np.sign(round(y - 100))) == quadrant
    if "roll" in turn:  # the camera turns clockwise: what is above it goes to the left
        x, y = seen(light_at(*place(Lens.FISHEYE, 0, 20)), surface)
        assert (x < 80, round(y)) == (True, 100)


def test_a_view_like_the_image_is_the_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    frame = Frame.from_array(pixels, PixelFormat.RGB, pts_ns=7, frame=3, source_id=2)
    surface = DewarpedSurface(3, 0, 120, 90, focal=(100.0, 100.0))
    view = Dewarper(DewarperConfig((surface,), (120, 90))).views(frame)[0]
    assert np.array_equal(view.planes[0], pixels)
    assert (view.pts_ns, view.frame, view.source_id) == (7, 3, 2)


def test_a_lens_that_bends_lines_is_made_straight() -> None:
    k1, k2, p1 = -0.2, 0.05, 0.01
    bent = (k1, k2, 0.0, p1, 0.0)
    x = y = 0.6
    square = x * x + y * y
    radial = 1 + k1 * square + k2 * square**2
    frame = light_at(
        MIDDLE + FOCAL * (x * radial + 2 * p1 * x * y),
        MIDDLE + FOCAL * (y * radial + p1 * (square + 2 * y * y)),
    )
    surface = DewarpedSurface(3, 0, SIZE, SIZE, focal=(FOCAL, FOCAL), distortion=bent)
    at = MIDDLE + 0.6 * FOCAL
    assert seen(frame, surface) == pytest.approx((at, at), abs=1)


def test_colours_of_half_size_lie_where_the_image_has_them() -> None:
    rows, columns = np.mgrid[:200, :300]
    pixels = np.stack((rows, columns * 0.8, 255 - rows), -1).astype(np.uint8)
    rgb = Frame.from_array(pixels, PixelFormat.RGB)
    planes = reformatted(rgb, "yuv420p", 0, 0)
    from headrace.media.pixels import plane_views

    yuv = Frame(plane_views(planes, PixelFormat.I420, 300, 200), PixelFormat.I420, 300, 200)
    surface = DewarpedSurface(4, 0, 160, 120, 30, -30, yaw=10, roll=20, focal=(90.0, 90.0))
    dewarper = Dewarper(DewarperConfig((surface,), (160, 120)))
    one, other = (dewarper.views(frame)[0].to_rgb().astype(int) for frame in (rgb, yuv))
    assert np.abs(one - other).mean() < 3


@pytest.mark.parametrize(("bordered", "value"), [(True, 0), (False, 200)])
def test_beyond_the_image_is_black_or_its_edge(bordered: bool, value: int) -> None:
    frame = Frame.from_array(np.full((50, 50), 200, np.uint8), PixelFormat.GRAY)
    surface = DewarpedSurface(
        4, 0, 60, 60, 60, -60, focal=(10.0,) * 2, is_bordered=bordered, yaw=120
    )
    view = Dewarper(DewarperConfig((surface,), (60, 60))).views(frame)[0]
    assert view.planes[0][30, 59] == value


def test_views_are_scaled_to_the_output_and_made_only_as_asked() -> None:
    frame = light_at(MIDDLE, MIDDLE)
    surfaces = tuple(DewarpedSurface(4, i, 100, 80, 40, -40, yaw=i * 90, fov=180) for i in range(3))
    config = DewarperConfig(surfaces, (64, 48))
    assert [(v.width, v.height) for v in Dewarper(config).views(frame)] == [(64, 48)] * 3
    (only,) = Dewarper(config, 1).views(frame)
    assert only.planes[0].max() < 10  # the light is ahead, this view looks to the right


def test_angles_that_no_view_has_are_refused_by_name() -> None:
    frame = light_at(0, 0)
    for surface, text in (
        (DewarpedSurface(3, 0, 10, 10, fov=190), "src-fov=190 fits no perspective image"),
        (DewarpedSurface(4, 0, 10, 10, 95, -95, fov=180), "fit no perspective view"),
    ):
        with pytest.raises(MediaError, match=text):
            Dewarper(DewarperConfig((surface,), (10, 10))).views(frame)
