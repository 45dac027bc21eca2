"""Objects that a program adds, changes and drops."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.meta import Detections, FrameMeta, Space, table


@pytest.fixture
def meta() -> FrameMeta:
    """A cat (class 0) and a dog (class 1) found by component 1."""
    found = FrameMeta("s", 0, 0, 0, 100, 80)
    boxes = Detections([[1, 2, 3, 4], [10, 20, 30, 40]], [0.5, 0.9], [0, 1], space=Space.FRAME)  # type: ignore[arg-type]
    found.objects.append(boxes, 1, labels=("cat", "dog"))
    return found


def test_an_added_object_is_like_any_other(meta: FrameMeta) -> None:
    obj = meta.objects.add(5, 6, 7, 8, label="dog", confidence=0.25, component_id=1)
    assert (obj.rect, obj.class_id, obj.label) == ((5, 6, 7, 8), 1, "dog")
    assert (obj.confidence, obj.component_id, obj.track_id) == (0.25, 1, None)
    assert table.to_rows(meta)[-1]["label"] == "dog"
    assert len(meta.objects) == 3


def test_without_a_model_classes_are_made_as_they_are_named() -> None:
    objects = FrameMeta("s", 0, 0, 0, 10, 10).objects
    named = [objects.add(0, 0, 1, 1, label=name) for name in ("zone", "line", "zone")]
    assert [o.class_id for o in named] == [0, 1, 0]
    assert objects.add(0, 0, 1, 1, class_id=4, label="far").label == "far"
    assert [o.label for o in objects] == ["zone", "line", "zone", "far"]
    assert objects.add(0, 0, 1, 1).class_id == 0


def test_the_names_of_other_frames_stay(meta: FrameMeta) -> None:
    names = meta.objects.labels[1]
    meta.objects.add(0, 0, 1, 1, label="cow", component_id=1)
    assert names == ("cat", "dog")
    assert [o.label for o in meta.objects] == ["cat", "dog", "cow"]


def test_a_class_has_one_name(meta: FrameMeta) -> None:
    with pytest.raises(ValueError, match="class 0 is 'cat'"):
        meta.objects.add(0, 0, 1, 1, class_id=0, label="cow", component_id=1)
    with pytest.raises(ValueError, match="cannot have a name"):
        meta.objects.add(0, 0, 1, 1, class_id=-1, label="cow")
    assert len(meta.objects) == 2


def test_an_added_object_may_have_a_parent(meta: FrameMeta) -> None:
    obj = meta.objects.add(1, 1, 1, 1, label="ear", parent=meta.objects[1])
    assert obj.parent == meta.objects[1]
    assert meta.objects[1].children == [obj]
    other = FrameMeta("s", 0, 1, 0, 100, 80)
    with pytest.raises(ValueError, match="another frame"):
        other.objects.add(0, 0, 1, 1, parent=obj)


def test_keep_takes_a_question(meta: FrameMeta) -> None:
    meta.objects.add(1, 1, 1, 1, label="cat", component_id=1)
    meta.objects.keep(lambda obj: obj.label == "cat")
    assert [o.label for o in meta.objects] == ["cat", "cat"]
    meta.objects.keep(lambda obj: False)
    assert len(meta.objects) == 0
    meta.objects.keep(lambda obj: True)


def test_a_box_is_changed_as_a_whole(meta: FrameMeta) -> None:
    meta.objects[0].rect = (9, 8, 7, 6)
    assert meta.objects.rects[0].tolist() == [9, 8, 7, 6]
    meta.objects[0].object_id = 12
    assert meta.objects[0].track_id == 12


def test_a_pixel_mask_is_as_large_as_the_frame(meta: FrameMeta) -> None:
    boxes = Detections(
        np.array([[10, 20, 4, 6]], np.float32),
        np.array([1], np.float32),
        np.array([0], np.int32),
        masks=[np.ones((3, 2), np.float32)],
        space=Space.FRAME,
    )
    meta.objects.append(boxes, 2, mask_threshold=0.5)
    mask = meta.pixel_mask(meta.objects[2])
    assert mask is not None
    assert mask.shape == (80, 100)
    assert mask.sum() == 24
    assert mask[20:26, 10:14].all()
    assert meta.pixel_mask(meta.objects[0]) is None


def test_tables_take_pairs_of_frame_and_metadata(meta: FrameMeta) -> None:
    pairs = [(None, meta), (None, meta)]
    assert table.to_rows(pairs) == table.to_rows([meta, meta])
