"""The renderer of the demo scene: equal seeds give equal videos, and its truth is exact."""

from __future__ import annotations

import numpy as np
import pytest
from conveyor_scene import (
    ALPHABET,
    CLASSES,
    CODE_LENGTH,
    HEIGHT,
    WIDTH,
    Scene,
)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(6)


@pytest.mark.slow
def test_equal_seeds_give_equal_frames_and_truths_in_any_order() -> None:
    first, second = Scene(41), Scene(41)
    forward = [first.frame(t) for t in (0, 60, 140)]
    backward = [second.frame(t) for t in (140, 60, 0)][::-1]
    for (image, truths), (again, truths_again) in zip(forward, backward, strict=True):
        assert image.shape == (HEIGHT, WIDTH, 3)
        assert image.dtype == np.uint8
        assert np.array_equal(image, again)
        assert truths == truths_again


@pytest.mark.slow
def test_different_seeds_give_different_videos() -> None:
    a, b = (Scene(seed).frame(50)[0].astype(int) for seed in (1, 2))
    assert np.abs(a - b).mean() > 5


@pytest.mark.slow
def test_boxes_are_tight_around_the_pixels_a_parcel_owns(scene: Scene) -> None:
    for t in (0, 75, 133, 290):
        _, truths = scene.frame(t)
        owners = scene.owners(t)
        assert {truth.parcel for truth in truths} == set(owners[owners >= 0].tolist())
        for truth in truths:
            rows, columns = np.nonzero(owners == truth.parcel)
            left, top, width, height = truth.box
            assert (left, top) == (columns.min(), rows.min())
            assert (left + width, top + height) == (columns.max() + 1, rows.max() + 1)


@pytest.mark.slow
def test_a_parcel_is_where_its_truth_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking one parcel out of the scene changes the pixels it owns, and few others."""
    scene, t = Scene(9), 100
    image, truths = scene.frame(t)
    owners = scene.owners(t)
    placed = scene._placed(t)
    for truth in truths:
        if truth.visible < 0.9:
            continue
        rest = [p for p in placed if p.parcel.number != truth.parcel]
        monkeypatch.setattr(scene, "_placed", lambda t, rest=rest: rest)
        without, _ = scene.frame(t)
        changed = np.abs(image.astype(int) - without).max(axis=2) > 6
        mine = owners == truth.parcel
        assert changed[mine].mean() > 0.93, truth.label
        # Beyond its own pixels and the lens blur there is only its shadow, which never brightens.
        brighter = (image.astype(int) - without).max(axis=2) > 6
        left, top, width, height = (int(v) for v in truth.box)
        brighter[max(top - 2, 0) : top + height + 2, max(left - 2, 0) : left + width + 2] = False
        assert not brighter.any(), truth.label


@pytest.mark.slow
def test_truth_is_complete_and_consistent(scene: Scene) -> None:
    seen: dict[int, tuple[str, str]] = {}
    kinds, partly_hidden = set(), 0
    for t in range(0, 400, 25):
        for truth in scene.frame(t)[1]:
            assert CLASSES[truth.class_id] == truth.label
            assert len(truth.code) == len(truth.characters) == CODE_LENGTH
            assert set(truth.code) <= set(ALPHABET)
            assert 0 < truth.visible <= 1
            assert seen.setdefault(truth.parcel, (truth.label, truth.code)) == (
                truth.label,
                truth.code,
            )
            kinds.add(truth.label)
            partly_hidden += truth.visible < 0.95
            if truth.readable:
                left, top, width, height = truth.box
                xs = [x for x, _, _, _ in truth.characters]
                assert xs == sorted(xs), "characters run from left to right"
                for x, y, w, h in truth.characters:
                    assert h >= 14, "characters must be legible at frame resolution"
                    assert left - 1 <= x <= x + w <= left + width + 1
                    assert top - 1 <= y <= y + h <= top + height + 1
    assert kinds == set(CLASSES)
    assert partly_hidden > 10


@pytest.mark.slow
def test_parcels_move_with_the_belt(scene: Scene) -> None:
    before = {t.parcel: t for t in scene.frame(100)[1]}
    after = {t.parcel: t for t in scene.frame(103)[1]}  # three frames: a whole number of pixels
    moved = [
        (after[n].box[0] - before[n].box[0], after[n].box[1] - before[n].box[1])
        for n in before.keys() & after.keys()
        if before[n].visible == after[n].visible == 1.0
    ]
    assert moved
    assert set(moved) == {(float(scene.speed), 0.0)}


def test_characters_are_dark_ink_on_a_light_label(scene: Scene) -> None:
    image, truths = scene.frame(100)
    readable = [truth for truth in truths if truth.readable]
    assert readable
    for truth in readable:
        for x, y, w, h in truth.characters:
            ink = image[int(y) : int(y + h), int(x) : int(x + w)].mean(axis=2)
            assert np.percentile(ink, 90) - np.percentile(ink, 10) > 50
