"""What metadata look like in a console and a notebook, and as supervision's detections."""

from __future__ import annotations

from html.parser import HTMLParser
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace.media import Frame, PixelFormat
from headrace.media.draw import show
from headrace.media.pixel_format import plane_shapes
from headrace.meta import (
    ClassifierMeta,
    Detections,
    FrameMeta,
    InputTensor,
    LabelInfo,
    Roi,
    SegmentationMeta,
    Space,
)


def meta_of(count: int = 3, **extra: Any) -> FrameMeta:
    meta = FrameMeta("cam", 0, 7, 1_500_000_000, 64, 48, inferred=True)
    boxes = np.array([[4 * i, 2, 10, 20] for i in range(count)], np.float32).reshape(-1, 4)
    ids = np.arange(count) % 2
    found = Detections(boxes, np.full(count, 0.5), ids, space=Space.FRAME, **extra)  # type: ignore[arg-type]
    meta.objects.append(found, 1, labels=["car", "<bus>"], mask_threshold=0.5)
    return meta


def rich_meta() -> FrameMeta:
    masks = [np.ones((2, 2)), np.empty((0, 0)), np.zeros((4, 3))]
    meta = meta_of(3, masks=masks)
    meta.objects.object_ids[0] = 12
    meta.objects.parents[2] = 0
    info = LabelInfo(0, 1, 0.75, "r&d")
    meta.objects.add_classifier(1, ClassifierMeta(2, (info,), "r&d "))
    classes = np.zeros((4, 4), np.int32)
    classes[0] = 1
    classes[1] = -1
    meta.segmentations.append(SegmentationMeta(3, 2, classes, None, None, ["sky"]))
    return meta


def test_reprs_show_counts_and_shapes() -> None:
    assert repr(meta_of(0).objects) == "Objects(0 objects)"
    assert repr(rich_meta().objects) == (
        "Objects(3 objects: 2 car, 1 <bus>; 1 tracked, 1 children, 2 masks, 1 classified)"
    )
    assert repr(rich_meta()) == (
        "FrameMeta(frame 7 of 'cam', 64x48, 1.500 s, 3 objects: 2 car, 1 <bus>; 1 tracked, "
        "1 children, 2 masks, 1 classified, SegmentationMeta(4x4, 2 classes))"
    )
    empty = FrameMeta("cam", 0, 0, 0, 8, 8)
    assert repr(empty) == "FrameMeta(frame 0 of 'cam', 8x8, 0.000 s, not inferred)"
    many = meta_of(12)
    many.objects.class_ids[:] = np.arange(12)
    assert "1 class 3, 8 others" in repr(many.objects)
    found = rich_meta().to_detections()
    assert repr(found) == "Detections(3 boxes in frame space, classes [0, 1], scores 0.50 to 0.50)"
    tensor = InputTensor("in", np.zeros((1, 3, 8, 8), np.float32), [Roi(0, 0, 0, 8, 8)], [1, 2])
    assert repr(tensor) == "InputTensor('in', float32 1x3x8x8, for 1, 2)"


class Cells(HTMLParser):
    """The texts of table cells, and what is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_notebook_shows_a_table_of_objects() -> None:
    page = Cells()
    page.feed(rich_meta()._repr_html_())
    assert not page.open
    assert page.rows[0][1:4] == ["text", "id", "confidence"]
    assert page.rows[1] == ["0", "car", "12", "0.50", "0.0", "2.0", "10.0", "20.0", "", "mask 2x2"]
    assert page.rows[2][1] == "<bus> r&d"
    assert page.rows[2][-1] == "r&d 0.75"
    assert page.rows[3][8] == "0"
    assert "sky 50 %, class 1 25 %" in page.text


def test_long_tables_are_cut_and_odd_text_is_escaped() -> None:
    meta = meta_of(100)
    meta.objects.labels[1] = ["<script>\ud800"]
    page = Cells()
    html = meta._repr_html_()
    html.encode()
    page.feed(html)
    assert len(page.rows) == 32
    assert page.rows[-1][0] == "and 70 more"
    assert "<script>" not in html
    meta_of(0)._repr_html_().encode()


@pytest.mark.parametrize("format", list(PixelFormat))
@pytest.mark.parametrize("width", [64, 1920])
@pytest.mark.sampled
def test_a_notebook_shows_a_frame(format: PixelFormat, width: int) -> None:
    height = width * 3 // 4
    planes = [np.full(s, 128, np.uint8) for s in plane_shapes(format, width, height)]
    frame = Frame(tuple(planes), format, width, height)
    image = Image.open(BytesIO(frame._repr_png_()))
    assert image.size == (min(width, 960), min(width, 960) * 3 // 4)
    assert image.mode == "RGB"
    drawn = show(frame, meta_of(1), labels=False)
    assert drawn._repr_png_() != frame._repr_png_()


def test_supervision_gets_everything() -> None:
    supervision = pytest.importorskip("supervision")
    meta = rich_meta()
    found = meta.to_supervision()
    assert isinstance(found, supervision.Detections)
    assert found.xyxy.tolist() == [[0, 2, 10, 22], [4, 2, 14, 22], [8, 2, 18, 22]]
    assert found.class_id.tolist() == [0, 1, 0]
    assert found.tracker_id.tolist() == [12, -1, -1]
    assert found.data["class_name"].tolist() == ["car", "<bus>", "car"]
    assert found.mask.shape == (3, 48, 64)
    assert found.mask.sum(axis=(1, 2)).tolist() == [200, 0, 0]
    assert found.mask[0, 2:22, 0:10].all()
    found.xyxy[:] = 0
    assert meta.objects.rects[0, 2] == 10
    image = np.zeros((48, 64, 3), np.uint8)
    assert supervision.MaskAnnotator().annotate(image, meta.to_supervision()).any()


def test_supervision_gets_keypoints() -> None:
    supervision = pytest.importorskip("supervision")
    meta = meta_of(1)  # an object without
    for count in (3, 2):
        points = np.full((1, count, 3), count, np.float32)
        found = Detections([[1, 2, 3, 4]], [0.5], [count], space=Space.FRAME, keypoints=points)
        meta.objects.append(found, 1)
    found = meta.to_supervision_keypoints()
    assert isinstance(found, supervision.KeyPoints)
    assert found.class_id.tolist() == [3, 2]
    assert found.xy.tolist() == [[[3, 3]] * 3, [[2, 2], [2, 2], [0, 0]]]
    assert found.keypoint_confidence.tolist() == [[3, 3, 3], [2, 2, 0]]
    assert len(meta_of(2).to_supervision_keypoints()) == 0


def test_supervision_without_objects_masks_or_tracking() -> None:
    assert len(meta_of(0).to_supervision()) == 0
    found = meta_of(2).to_supervision()
    assert found.mask is found.tracker_id is None
