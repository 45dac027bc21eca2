"""Objects of a frame: parallel arrays, views on them, what an overlay shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.meta import (
    UNTRACKED_OBJECT_ID,
    ClassifierMeta,
    ClassStyle,
    Detections,
    FrameMeta,
    LabelInfo,
    Objects,
    Space,
    mask_border_colors,
)

RED = (1.0, 0.0, 0.0, 1.0)


def found(count: int, **kwargs: Any) -> Detections:
    boxes = np.arange(4 * count, dtype=np.float32).reshape(-1, 4)
    scores, ids = np.full(count, 0.5), np.arange(count)
    return Detections(boxes, scores, ids, space=Space.FRAME, **kwargs)


def at(left: float, top: float) -> Any:
    objects = Objects()
    objects.append(Detections([[left, top, 5, 5]], [0.5], [0], space=Space.FRAME), 1)  # type: ignore[arg-type]
    return objects[0]


def test_only_frame_space_is_attached() -> None:
    with pytest.raises(ValueError, match="network space"):
        Objects().append(Detections.empty(), 1)


def test_components_keep_their_labels_and_styles() -> None:
    objects = Objects()
    green = ClassStyle(border_color=(0, 1, 0, 1))
    objects.append(found(2), 1, labels=["car", "bus"], styles={1: green})
    objects.append(found(3), 2, labels=["plate"])
    assert [o.label for o in objects] == ["car", "bus", "plate", "", ""]
    assert [o.display_text for o in objects] == ["car", "bus", "plate", None, None]
    assert [o.component_id for o in objects] == [1, 1, 2, 2, 2]
    assert [o.style.border_color for o in objects] == [RED, (0, 1, 0, 1), RED, RED, RED]
    assert {o.object_id for o in objects} == {UNTRACKED_OBJECT_ID}


def test_indexing_is_that_of_a_list() -> None:
    objects = Objects()
    objects.append(found(4), 1)
    assert [o.class_id for o in objects[1:3]] == [1, 2]
    assert objects[-1].class_id == 3
    with pytest.raises(IndexError, match="object 4 of 4"):
        objects[4]


@pytest.mark.parametrize("first", [False, True])
def test_objects_with_and_without_angles_masks_and_colours_mix(first: bool) -> None:
    rich = found(2, angles=np.array([30, 60]), masks=[np.ones((2, 3)), np.empty((0, 0))])
    colors = np.array([[0.1, 0.2, 0.3, 1], [np.nan] * 4], np.float32)
    objects = Objects()
    if not first:
        objects.append(found(3), 1)
    objects.append(rich, 2, border_colors=colors, mask_threshold=0.5)
    if first:
        objects.append(found(3), 1)
    plain = [*range(2, 5)] if first else [*range(3)]
    start = 0 if first else 3
    assert [objects[i].angle for i in (start, start + 1)] == [30, 60]
    assert [objects[i].angle for i in plain] == [0, 0, 0]
    assert objects[start].mask is not None
    assert objects[start].mask.shape == (2, 3)  # type: ignore[union-attr]
    assert [objects[i].mask for i in (*plain, start + 1)] == [None] * 4
    assert objects[start].style.border_color == pytest.approx((0.1, 0.2, 0.3, 1))
    assert {objects[i].style.border_color for i in (*plain, start + 1)} == {RED}
    assert objects.mask_thresholds == {2: 0.5}


def test_nothing_is_kept_for_what_nobody_has() -> None:
    objects = Objects()
    objects.append(found(2), 1)
    objects.append(found(0), 2)
    assert objects.masks is objects.angles is objects.border_colors is None
    assert len(objects) == 2


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("x" * 127, "x" * 127),
        ("x" * 200, "x" * 127),
        ("x" * 126 + "é", "x" * 126),  # a character is not cut in two
        ("é" * 70, "é" * 63),
        ("\ud800", "\ud800"),  # not UTF-8, but no reason to fail
    ],
)
def test_labels_are_cut_at_127_bytes(text: str, label: str) -> None:
    objects = Objects()
    objects.append(found(1), 1, labels=[text])
    assert objects[0].display_text == text
    assert objects[0].label == label


@pytest.mark.parametrize(
    ("left", "top", "position"),
    [
        (100.9, 50.9, (100, 40)),
        (10, 4, (10, 0)),
        (-3, -50, (0, 0)),
        (math.nan, math.inf, (0, 0)),
        (1e30, 12, (0, 2)),
    ],
)
def test_text_is_above_the_object_but_in_the_frame(
    left: float, top: float, position: tuple[int, int]
) -> None:
    assert at(left, top).text_position == position


def test_mask_colours_are_the_same_sequence_every_time() -> None:
    mask, none = np.ones((1, 1), np.float32), np.empty((0, 0), np.float32)
    colors = mask_border_colors([none, mask, none, mask])
    assert colors[1] == pytest.approx([0.548813522, 0.592844605, 0.715189338, 1], abs=1e-6)
    assert colors[3] == pytest.approx([0.844265759, 0.602763355, 0.857945621, 1], abs=1e-6)
    assert np.isnan(colors[[0, 2]]).all()
    many = mask_border_colors([mask] * 5000)
    np.testing.assert_array_equal(many[:2], colors[[1, 3]])
    assert many[:, :3].max() < 1
    assert mask_border_colors([]).shape == (0, 4)


def test_a_frame_gives_its_objects_as_detections() -> None:
    frame = FrameMeta("a", 0, 7, 0, 100, 100)
    frame.objects.append(found(3), 1)
    everything = frame.to_detections()
    assert everything.space is Space.FRAME
    assert everything.class_ids.tolist() == [0, 1, 2]


def test_many_classifications_at_once_are_those_one_by_one() -> None:
    def objects() -> Objects:
        made = Objects()
        boxes = np.ones((4, 4), np.float32)
        classes = np.array([0, 1, 7, -1])
        made.append(Detections(boxes, np.ones(4), classes, space=Space.FRAME), 1, labels=["a", "b"])
        made.append(Detections(boxes, np.ones(4), classes, space=Space.FRAME), 2, labels=["c"])
        made.texts[5] = "changed"
        return made

    says = [ClassifierMeta(3, (LabelInfo(0, i, 0.5, f"v{i}"),), f"v{i} ") for i in range(8)]
    rounds = [([0, 2, 3, 5, 6], [says[0], None, *says[1:4]]), ([0, 1, 2], says[4:7]), ([], [])]
    at_once, one_by_one = objects(), objects()
    for indices, metas in rounds:
        at_once.add_classifiers(indices, metas)
        for index, meta in zip(indices, metas, strict=True):
            if meta is not None:
                one_by_one.add_classifier(index, meta)
    assert at_once.classifiers == one_by_one.classifiers
    assert at_once.texts == one_by_one.texts
