"""Mapping and filters against the slow oracle; what reaches the frame's metadata."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ClassAttrs
from headrace.config.model_config import ModelConfig
from headrace.errors import ConfigError
from headrace.infer.attach import Attacher, DropReason, Generation
from headrace.infer.geometry import Rect, ScaleTransform, fit
from headrace.infer.parsers.labels import Labels
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, FrameMeta, Space
from tests.infer import oracle_cluster as oracle
from tests.profiles import examples


def config(*classes: ClassAttrs, **values: Any) -> ModelConfig:
    return ModelConfig(
        num_detected_classes=len(classes), classes=dict(enumerate(classes)), **values
    )


def frame(width: int = 640, height: int = 640) -> FrameMeta:
    return FrameMeta("test", 0, 0, 0, width, height)


def boxes(*ltwh: tuple[float, ...], class_ids: Any = None, **kwargs: Any) -> Detections:
    n = len(ltwh)
    ids = np.zeros(n, int) if class_ids is None else class_ids
    return Detections(np.array(ltwh).reshape(-1, 4), np.full(n, 0.5), ids, **kwargs)


SAME = fit(Rect(0, 0, 640, 640), 640, 640)

SMALL = st.sampled_from([0, 0, 0, 5, 16, 32, 100])
ATTRS = st.builds(
    ClassAttrs,
    detected_min_w=SMALL,
    detected_min_h=SMALL,
    detected_max_w=SMALL,
    detected_max_h=SMALL,
    roi_top_offset=SMALL,
    roi_bottom_offset=SMALL | st.sampled_from([700, 2**31 - 1]),
)
NUMBER = st.sampled_from([-10.0, -0.5, 0.0, 5.0, 16.0, 32.0, 99.9, 100.0, 300.0]) | st.floats(
    -700, 1400, width=32, allow_subnormal=False
)
RECT = st.none() | st.tuples(*[st.floats(0, 300, width=32, allow_subnormal=False)] * 4)


@settings(max_examples=examples(300))
@given(
    data=st.lists(st.tuples(st.integers(0, 2), *[NUMBER] * 4), max_size=8),
    classes=st.tuples(ATTRS, ATTRS, ATTRS),
    filtered=st.sets(st.integers(-1, 4), max_size=2),
    crop=st.booleans(),
    keep_aspect=st.booleans(),
    generation=st.sampled_from(["9.1", "6.2"]),
    roi=RECT,
    clip=st.booleans(),
    parent=RECT,
    frame_wh=st.sampled_from([(640, 640), (1920, 1080), (333, 97)]),
)
def test_same_as_the_oracle(
    data: list[tuple[Any, ...]],
    classes: tuple[ClassAttrs, ...],
    filtered: set[int],
    crop: bool,
    keep_aspect: bool,
    generation: Generation,
    roi: tuple[float, ...] | None,
    clip: bool,
    parent: tuple[float, ...] | None,
    frame_wh: tuple[int, int],
) -> None:
    cfg = config(*classes, filter_out_class_ids=tuple(filtered), crop_objects_to_roi_boundary=crop)
    transform = fit(
        Rect(0, 0, *frame_wh), 416, 320, maintain_aspect_ratio=keep_aspect, symmetric_padding=True
    )
    found = boxes(*(row[1:] for row in data), class_ids=[row[0] for row in data])
    meta = frame(*frame_wh)
    result = Attacher(cfg, clip_to_roi=clip)(
        found,
        transform,
        meta,
        generation,
        roi=roi and Rect(*roi),
        parent=parent and Rect(*parent),
    )
    kept: dict[int, Any] = {}
    dropped: dict[int, str] = {}
    for row, (class_id, *ltwh) in enumerate(data):
        attrs = classes[class_id]
        keys = {
            f"{part.replace('_', '-')}": getattr(attrs, part)
            for part in ClassAttrs.__slots__
            if part.startswith(("detected", "roi"))
        }
        rect, why = oracle.attach(
            ltwh,
            (transform.ratio_x, transform.ratio_y),
            (transform.offset_x, transform.offset_y),
            frame_wh,
            keys,
            filtered=class_id in filtered,
            crop=crop,
            generation=generation,
            roi=roi,
            clip=clip,
            parent=parent,
        )
        if rect is None:
            dropped[row] = why or ""
        else:
            kept[row] = rect
    assert result.kept.tolist() == list(kept)
    np.testing.assert_array_equal(meta.objects.rects, np.array([*kept.values()]).reshape(-1, 4))
    keys_of = {
        int(row): DropReason(reason).key
        for row, reason in zip(result.dropped, result.reasons, strict=True)
    }
    assert keys_of == dropped


@given(
    data=st.lists(
        st.tuples(*[st.floats(-1e4, 1e4, width=32, allow_subnormal=False)] * 4), max_size=5
    ),
    frame_wh=st.tuples(st.integers(2, 4000), st.integers(2, 4000)),
    keep_aspect=st.booleans(),
    roi=RECT,
)
def test_maps_as_the_transform_does(
    data: list[tuple[float, ...]],
    frame_wh: tuple[int, int],
    keep_aspect: bool,
    roi: tuple[float, ...] | None,
) -> None:
    transform = fit(
        Rect(0, 0, *frame_wh), 640, 544, maintain_aspect_ratio=keep_aspect, symmetric_padding=True
    )
    found = boxes(*data)
    meta = frame(10**6, 10**6)
    result = Attacher(config(ClassAttrs()), generation="6.2", clip_to_roi=False)(
        found, transform, meta, roi=roi and Rect(*roi)
    )
    expected = transform.to_frame(found.boxes, *(roi or (0, 0))[:2])
    np.testing.assert_array_equal(meta.objects.rects, expected[result.kept])


def test_an_unknown_generation_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"generation '5\.1'"):
        Attacher(config(ClassAttrs()))(boxes(), SAME, frame(), "5.1")  # type: ignore[arg-type]


def test_objects_are_appended_with_what_the_config_says() -> None:
    style = ClassAttrs(border_color=(0, 1, 0, 1), bg_color=(0.1, 0.2, 0.3, 0.4))
    attacher = Attacher(config(ClassAttrs(), style, gie_unique_id=7), ["car", "bus"])
    meta = frame()
    attacher(boxes((10, 20, 30, 40)), SAME, meta)
    result = attacher(boxes((1, 2, 3, 4), (1, 600, 3, 99), class_ids=[1, 1]), SAME, meta)
    assert result.detections.space is Space.FRAME
    assert result.kept.tolist() == [0]
    assert result.dropped.tolist() == [1]
    assert len(meta.objects) == 2
    car, bus = meta.objects
    assert (car.label, car.component_id, car.object_id) == ("car", 7, UNTRACKED_OBJECT_ID)
    assert (bus.label, bus.confidence) == ("bus", 0.5)
    assert (bus.left, bus.top, bus.width, bus.height) == (1, 2, 3, 4)
    assert (bus.style.border_color, bus.style.bg_color) == ((0, 1, 0, 1), (0.1, 0.2, 0.3, 0.4))
    assert (car.style.border_color, car.style.bg_color) == ((1, 0, 0, 1), None)


def test_a_frame_without_objects_is_still_inferred() -> None:
    meta = frame()
    result = Attacher(config())(Detections.empty(), SAME, meta)
    assert meta.inferred
    assert len(result.detections) == len(result.dropped) == len(meta.objects) == 0


def test_a_class_without_a_name_is_attached() -> None:
    meta = frame()
    Attacher(config(ClassAttrs(), ClassAttrs()), Labels((("only",),)))(
        boxes((0, 0, 5, 5), (0, 0, 5, 5), class_ids=[0, 1]), SAME, meta
    )
    assert [o.display_text for o in meta.objects] == ["only", None]
    assert [o.label for o in meta.objects] == ["only", ""]


def test_angles_become_degrees() -> None:
    meta = frame()
    attacher = Attacher(config(ClassAttrs()))
    attacher(boxes((0, 0, 5, 5)), SAME, meta)
    attacher(boxes((0, 0, 5, 5), angles=np.array([np.pi / 2])), SAME, meta)
    assert [o.angle for o in meta.objects] == pytest.approx([0, 90])


def test_the_input_is_left_alone() -> None:
    found = boxes((-5, -5, 20, 20), angles=np.array([1.0]))
    before = found.boxes.copy()
    transform = ScaleTransform(Rect(0, 0, 640, 640), Rect(0, 0, 640, 640), 1.0, 1.0, 0, 0)
    Attacher(config(ClassAttrs(), crop_objects_to_roi_boundary=True))(found, transform, frame())
    np.testing.assert_array_equal(found.boxes, before)
    assert found.space is Space.NETWORK


def test_masks_are_attached_on_request_with_the_colours_of_the_generation() -> None:
    masks = [np.ones((2, 3)), np.empty((0, 0)), np.zeros((1, 1))]
    found = boxes(*[(0, 0, 5, 5)] * 3, masks=masks)
    plain, wanted = frame(), frame()
    Attacher(config(ClassAttrs()))(found, SAME, plain)
    assert [o.mask for o in plain.objects] == [None] * 3
    cfg = config(ClassAttrs(), output_instance_mask=True, segmentation_threshold=0.5)
    for _ in range(2):  # the colours restart with every call
        Attacher(cfg)(found, SAME, wanted)
    shapes = [None if o.mask is None else o.mask.shape for o in wanted.objects]
    assert shapes == [(2, 3), None, (1, 1)] * 2
    assert wanted.objects.mask_thresholds == {1: 0.5}
    colors = [o.style.border_color for o in wanted.objects]
    assert colors[:3] == colors[3:]
    assert colors[0] == pytest.approx((0.5488135, 0.5928446, 0.7151894, 1))
    assert colors[1] == (1, 0, 0, 1)
    assert colors[2] == pytest.approx((0.8442658, 0.6027634, 0.8579456, 1))
    old = frame()
    Attacher(cfg)(found, SAME, old, "6.2")
    assert {o.style.border_color for o in old.objects} == {(1, 0, 0, 1)}


@given(points=st.lists(st.tuples(*[st.integers(-50, 900)] * 2), min_size=1, max_size=4))
@settings(max_examples=examples(30))
def test_keypoints_are_mapped_as_corners_of_boxes_are(points: list[tuple[int, int]]) -> None:
    transform = fit(Rect(100, 50, 320, 160), 640, 640, maintain_aspect_ratio=True)
    keypoints = np.array([[(x, y, 0.25) for x, y in points]], np.float32)
    attacher, meta = Attacher(config(ClassAttrs())), frame()
    parent = Rect(100, 50, 320, 160)
    attacher(boxes((5, 5, 9, 9), keypoints=keypoints), transform, meta, parent=parent)
    attacher(boxes((5, 5, 9, 9)), transform, meta, parent=parent)
    found = meta.objects[0].keypoints
    assert found is not None
    corners = transform.to_frame([(x, y, 0, 0) for x, y in points])[:, :2] + parent[:2]
    np.testing.assert_allclose(found[:, :2], corners, atol=1e-3)
    assert found[:, 2].tolist() == [0.25] * len(points)
    assert meta.objects[1].keypoints is None


def test_keypoints_stay_with_their_object_when_others_are_dropped() -> None:
    keypoints = np.arange(18).reshape(3, 2, 3)
    found = boxes(*[(0, 0, 5, 5)] * 3, class_ids=[0, 1, 0], keypoints=keypoints)
    meta = frame()
    Attacher(config(ClassAttrs(), ClassAttrs(), filter_out_class_ids=(0,)))(found, SAME, meta)
    (kept,) = meta.objects
    np.testing.assert_array_equal(kept.keypoints, keypoints[1])


def test_bones_of_the_config_are_those_of_every_class() -> None:
    meta = frame()
    Attacher(config(ClassAttrs(), ClassAttrs(), keypoint_skeleton=(0, 1, 1, 2)))(
        boxes((0, 0, 5, 5)), SAME, meta
    )
    assert {style.bones for style in meta.objects.styles[1].values()} == {((0, 1), (1, 2))}
    Attacher(config(ClassAttrs()))(boxes((0, 0, 5, 5)), SAME, meta)
    assert meta.objects.styles[1][0].bones is None
