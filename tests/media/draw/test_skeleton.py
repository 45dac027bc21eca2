"""Keypoints on frames: bones between points that are sure, and a dot on each."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.media import as_frame
from headrace.media.draw import Painter
from headrace.media.draw.skeleton import skeleton_overlays
from headrace.meta import ClassStyle, Detections, FrameMeta, Space
from headrace.meta.shapes import skeleton_of
from headrace.meta.skeletons import FACE, PERSON

SIZE = (200, 100)
BLUE = (0, 0, 255)


def painted(points: list[tuple[float, float, float]], bones: tuple = ()) -> np.ndarray:
    """Opacity 0 to 1 of everything drawn, (height, width)."""
    seen = np.zeros(SIZE[::-1])
    for overlay in skeleton_overlays(np.array(points, np.float32), bones, 2, BLUE, SIZE):
        h, w = overlay.slots.shape
        part = seen[overlay.top : overlay.top + h, overlay.left : overlay.left + w]
        np.maximum(part, np.array(overlay.opacities)[overlay.slots], out=part)
    return seen


def test_a_bone_joins_two_points() -> None:
    seen = painted([(20, 50, 0.9), (180, 50, 0.9)], ((0, 1),))
    assert seen[50, 20:180].min() == 1
    assert seen[:45].max() == 0
    assert seen[56:].max() == 0


@pytest.mark.parametrize("score", [0.49, float("nan")])
def test_a_point_that_is_not_sure_is_left_out_with_its_bones(score: float) -> None:
    seen = painted([(20, 50, 0.9), (180, 50, score)], ((0, 1),))
    assert seen[50, 20] == 1
    assert seen[:, 30:].max() == 0


@pytest.mark.parametrize("far", [(5000.0, 50.0), (1e30, 50.0), (-300.0, -300.0)])
def test_points_outside_of_the_frame(far: tuple[float, float]) -> None:
    seen = painted([(20, 50, 0.9), (*far, 0.9)], ((0, 1),))
    assert seen[50, 20] == 1
    assert painted([(*far, 0.9)]).max() == 0


def test_the_bones_of_the_config_win() -> None:
    assert skeleton_of(17) is PERSON
    assert skeleton_of(5) is FACE
    assert skeleton_of(17, ()).bones == ()
    assert skeleton_of(3, ((0, 1), (1, 3))).bones == ((0, 1),)  # there is no fourth point
    assert skeleton_of(3).names == ("point_0", "point_1", "point_2")


@pytest.mark.parametrize("bones", [None, ((0, 2),)])
def test_a_painter_draws_the_skeleton_of_the_class(bones: tuple | None) -> None:
    meta = FrameMeta("t", 0, 0, 0, *SIZE)
    points = np.array([[[60, 20, 1], [100, 20, 1], [140, 20, 1]]], np.float32)
    found = Detections([[40, 10, 120, 80]], [0.9], [0], space=Space.FRAME, keypoints=points)
    style = ClassStyle(bones=bones)
    meta.objects.append(found, component_id=1, styles={0: style})
    grey = np.full((100, 200, 3), 128, np.uint8)
    drawn = Painter(labels=False, boxes=False).draw(as_frame(grey), meta).to_rgb()
    changed = (np.asarray(drawn) != 128).any(axis=2)
    assert changed[20, [60, 100, 140]].all()
    assert changed[20, 75:90].all() == (bones is not None)
    assert not changed[40:].any()
